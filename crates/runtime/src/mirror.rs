// SPDX-License-Identifier: Apache-2.0
//! A mirror holds every watched object of one kind in memory.
//!
//! It is fed by two sources: the watch, and the answers to our own writes. An older resourceVersion never
//! replaces a newer one. So a pass that follows a write sees that write, even when the watch lags, and the echo
//! of our own write does not start another pass.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use futures::{Stream, StreamExt, TryStreamExt};
use kube::{
    Api, Resource, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};
use serde::de::DeserializeOwned;
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};

use state::{State, revision};

/// The label that names the owner of an object we wrote. Pruning goes by it.
pub const OWNER_LABEL: &str = "bivouac.dev/owner-uid";

/// How many changes a slow subscriber may lag before the watch waits for it.
const SUBSCRIBER_BUFFER: usize = 1024;

/// Where an object lives; `namespace` is empty for cluster-scoped objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub namespace: String,
    pub name: String,
}

impl Key {
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    pub fn of<K: Resource>(object: &K) -> Self {
        Self { namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() { f.write_str(&self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}

/// One difference between two moments of a mirror.
#[derive(Clone, Debug)]
pub struct Change<K> {
    pub before: Option<Arc<K>>,
    pub after: Option<Arc<K>>,
}

/// Everything of one kind that is watched.
#[derive(Debug)]
pub struct Mirror<K> {
    name: String,
    trim: fn(&mut K),
    /// Which objects are held at all, asked before they are trimmed.
    keep: fn(&K) -> bool,
    state: RwLock<State<K>>,
    ready: watch::Sender<bool>,
    subscribers: Mutex<Vec<mpsc::Sender<Change<K>>>>,
    /// Why the last attempt to list or watch failed, until one succeeds.
    trouble: Mutex<Option<String>>,
}

// === impl Mirror ===

impl<K: Resource + Clone> Mirror<K> {
    /// `trim` drops what nobody reads; managedFields always go.
    pub fn new(name: impl Into<String>, trim: fn(&mut K)) -> Arc<Self> {
        Self::of_some(name, trim, |_| true)
    }

    /// As [`Mirror::new`], but holds only what passes the test. For what no selector of the API server can tell.
    pub fn of_some(name: impl Into<String>, trim: fn(&mut K), keep: fn(&K) -> bool) -> Arc<Self> {
        let state = State {
            objects: HashMap::new(),
            by_owner: HashMap::new(),
            incoming: None,
            told: 0,
            erased: BTreeSet::new(),
        };
        Arc::new(Self {
            name: name.into(),
            trim,
            keep,
            state: RwLock::new(state),
            ready: watch::Sender::new(false),
            subscribers: Mutex::new(Vec::new()),
            trouble: Mutex::new(None),
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.read().objects.get(key).map(|entry| entry.object.clone())
    }

    /// The object, and the hash of the wish that it holds as far as anybody compared.
    pub fn compared(&self, key: &Key) -> (Option<Arc<K>>, Option<u64>) {
        let state = self.read();
        let entry = state.objects.get(key);
        (entry.map(|entry| entry.object.clone()), entry.and_then(|entry| entry.holds))
    }

    /// Notes that this version of an object holds a wish. Forgotten as soon as somebody asks for something else.
    pub fn holds(&self, key: &Key, version: Option<&str>, wish: u64) {
        let mut state = self.write();
        let entry =
            state.objects.get_mut(key).filter(|entry| entry.object.meta().resource_version.as_deref() == version);
        if let Some(entry) = entry {
            entry.holds = Some(wish);
        }
    }

    /// The objects that name `uid` as their owner, by our label or by a controller reference.
    pub fn owned_by(&self, uid: &str) -> Vec<Arc<K>> {
        let state = self.read();
        let keys = state.by_owner.get(uid).into_iter().flatten();
        keys.filter_map(|key| state.objects.get(key)).map(|entry| entry.object.clone()).collect()
    }

    /// Everything there is.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.read().objects.values().map(|entry| entry.object.clone()).collect()
    }

    pub fn len(&self) -> usize {
        self.read().objects.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn is_ready(&self) -> bool {
        *self.ready.borrow()
    }

    /// Resolves when the first complete list has arrived.
    pub async fn wait_ready(&self) {
        // The sender lives in self, so the wait cannot fail.
        let _ = self.ready.subscribe().wait_for(|ready| *ready).await;
    }

    /// Ticks when the mirror becomes ready and when it loses its content.
    pub fn readiness(&self) -> impl Stream<Item = ()> + Send + use<K> {
        futures::stream::unfold(self.ready.subscribe(), |mut ready| async move {
            ready.changed().await.ok()?;
            Some(((), ready))
        })
    }

    /// Every later change, in order. A slow reader holds the watch back: nothing is lost.
    pub fn changes(&self) -> impl Stream<Item = Change<K>> + Send + use<K>
    where
        K: Send + Sync + 'static,
    {
        let (sender, receiver) = mpsc::channel(SUBSCRIBER_BUFFER);
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
        futures::stream::unfold(receiver, |mut receiver| async move { Some((receiver.recv().await?, receiver)) })
    }

    /// Takes the server's answer to our own write.
    pub fn wrote(&self, mut object: K) {
        self.prune(&mut object);
        let key = Key::of(&object);
        let mut state = self.write();
        let told = revision(&object).is_some_and(|written| written <= state.told);
        if !told && state.is_news(&key, &object) {
            state.put(key, Arc::new(object), Some(Instant::now()));
        }
    }

    /// Takes an object that was asked for, because no watch shows it.
    pub fn found(&self, mut object: K) {
        self.prune(&mut object);
        let key = Key::of(&object);
        let mut state = self.write();
        if state.is_news(&key, &object) {
            state.put(key, Arc::new(object), Some(Instant::now()));
        }
    }

    /// Takes note that the server confirmed our own deletion.
    pub fn erased(&self, key: &Key) {
        let mut state = self.write();
        if let Some(uid) = state.take(key).and_then(|object| object.uid()) {
            state.erased.insert(uid);
        }
    }

    /// Forgets everything, because the API itself is gone.
    pub fn clear(&self) {
        let mut state = self.write();
        state.objects.clear();
        state.by_owner.clear();
        state.told = 0;
        state.erased.clear();
        drop(state);
        self.doubt();
    }

    /// What it holds stays, but is no longer everything: that is so again after the next complete list.
    fn doubt(&self) {
        self.ready.send_if_modified(|ready| std::mem::replace(ready, false));
    }

    /// Feeds one watch event and returns what it changed.
    pub fn take_event(&self, event: watcher::Event<K>) -> Vec<Change<K>> {
        match event {
            watcher::Event::Init => {
                self.write().incoming = Some((Instant::now(), HashMap::new()));
                Vec::new()
            }
            watcher::Event::InitApply(object) if !(self.keep)(&object) => Vec::new(),
            watcher::Event::InitApply(mut object) => {
                self.prune(&mut object);
                if let Some((_, incoming)) = &mut self.write().incoming {
                    incoming.insert(Key::of(&object), Arc::new(object));
                }
                Vec::new()
            }
            watcher::Event::InitDone => {
                self.set_trouble(None);
                let changes = self.write().relist();
                self.ready.send_if_modified(|ready| !std::mem::replace(ready, true));
                changes
            }
            watcher::Event::Apply(object) if (self.keep)(&object) => {
                let mut object = object;
                self.prune(&mut object);
                self.write().apply(object).into_iter().collect()
            }
            watcher::Event::Apply(object) | watcher::Event::Delete(object) => {
                self.write().delete(&object).into_iter().collect()
            }
        }
    }

    /// What stands between this mirror and its content, in words.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_trouble(&self, trouble: Option<String>) -> Option<String> {
        std::mem::replace(&mut *self.trouble.lock().unwrap_or_else(PoisonError::into_inner), trouble)
    }

    /// Notes a failed list or watch. A missing right is told once and loudly: only a person can mend it.
    fn stumble(&self, error: &watcher::Error) {
        let (text, denied) = words(error);
        let before = self.set_trouble(Some(text.clone()));
        if denied && before.as_ref() != Some(&text) {
            tracing::error!(
                mirror = self.name,
                "a right is missing: {text}. `bivouac rbac` prints what the operator needs"
            );
        } else if !denied {
            tracing::warn!(mirror = self.name, error = text, "watch interrupted, trying again");
        }
    }

    fn prune(&self, object: &mut K) {
        object.managed_fields_mut().clear();
        (self.trim)(object);
    }

    fn read(&self) -> RwLockReadGuard<'_, State<K>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State<K>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> Mirror<K>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
{
    /// Watches until dropped. Errors are retried with backoff and never empty the mirror.
    pub async fn follow(self: Arc<Self>, api: Api<K>, config: watcher::Config) {
        self.follow_until(api, config, std::future::pending()).await;
    }

    /// As [`Mirror::follow`], but ends between two events: what was taken in is told to all subscribers.
    async fn follow_until(&self, api: Api<K>, config: watcher::Config, end: impl Future<Output = ()>) {
        let mut events = std::pin::pin!(watcher(api, config).default_backoff());
        let mut end = std::pin::pin!(end);
        loop {
            let next = tokio::select! {
                biased;
                () = &mut end => return,
                next = events.try_next() => next,
            };
            match next {
                Ok(Some(event)) => self.publish(self.take_event(event)).await,
                Ok(None) => return,
                Err(error) => self.stumble(&error),
            }
        }
    }
}

impl<K: Resource + Clone> Mirror<K> {
    async fn publish(&self, changes: Vec<Change<K>>) {
        if changes.is_empty() {
            return;
        }
        let subscribers = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for change in changes {
            futures::stream::iter(&subscribers)
                // A closed channel is a subscriber that went away; it is not worth an error.
                .for_each(|subscriber| async { drop(subscriber.send(change.clone()).await) })
                .await;
        }
    }
}

/// What the server said, and whether it refused for want of rights.
fn words(error: &watcher::Error) -> (String, bool) {
    let status = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status,
        other => return (other.to_string(), false),
    };
    (status.message.clone(), matches!(status.code, 401 | 403))
}

pub mod on_demand;
mod state;
#[cfg(test)]
mod tests;
pub mod widening;
