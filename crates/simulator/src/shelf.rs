// SPDX-License-Identifier: Apache-2.0
//! All objects of one kind, always current.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use bivouac_apiserver::store::{self, Keyspace, Range, Store, Watcher};
use k8s_openapi::{Metadata, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use serde::de::DeserializeOwned;

use crate::kinds::{Change, Object};

/// Events that are read in one go.
const BATCH: usize = 1_000;

/// The name of an object, of a kind that the context tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Empty for objects that are in no namespace.
    pub namespace: String,
    pub name: String,
}

/// All objects of one kind.
#[derive(Debug)]
pub struct Shelf<K> {
    objects: BTreeMap<Key, Arc<K>>,
    /// Who is owned by a uid, as its controller.
    owned: BTreeMap<String, BTreeSet<Key>>,
    keyspace: Keyspace,
    watcher: Option<Watcher>,
}

/// What a kind must be able to do to stand on a shelf.
pub trait Kept: Metadata<Ty = ObjectMeta> + DeserializeOwned {
    fn wrap(object: Arc<Self>) -> Object;
}

// === impl Key ===

impl Key {
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The key of something that is in no namespace.
    pub fn bare(name: impl Into<String>) -> Self {
        Self::new("", name)
    }

    pub fn of(meta: &ObjectMeta) -> Self {
        Self::new(meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slash = if self.namespace.is_empty() { "" } else { "/" };
        write!(f, "{}{slash}{}", self.namespace, self.name)
    }
}

// === impl Shelf ===

impl<K: Kept> Shelf<K> {
    pub(crate) fn new(keyspace: Keyspace) -> Self {
        Self { objects: BTreeMap::new(), owned: BTreeMap::new(), keyspace, watcher: None }
    }

    pub fn get(&self, key: &Key) -> Option<&Arc<K>> {
        self.objects.get(key)
    }

    /// All of them, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<K>> {
        self.objects.values()
    }

    pub fn len(&self) -> usize {
        self.objects.len()
    }

    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    pub fn in_namespace<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Arc<K>> {
        let from = Key::new(namespace, "");
        self.objects.range(from..).take_while(move |(key, _)| key.namespace == namespace).map(|(_, object)| object)
    }

    /// Those whose controller has this uid.
    pub fn owned_by<'a>(&'a self, uid: &str) -> impl Iterator<Item = &'a Arc<K>> {
        self.owned.get(uid).into_iter().flatten().filter_map(|key| self.objects.get(key))
    }

    /// Takes in what happened since the last look, and tells it.
    pub(crate) fn follow(&mut self, store: &Store, changes: &mut Vec<Change>) {
        loop {
            let Some(events) = self.watcher.as_mut().map(|watcher| watcher.ready(BATCH)) else {
                return self.begin(store, changes);
            };
            match events {
                Ok(events) if events.is_empty() => return,
                Ok(events) => {
                    for event in events {
                        let now = (event.kind != store::Kind::Deleted).then(|| parse::<K>(event.now.body())).flatten();
                        self.put(&key(event.now.key()), now, changes);
                    }
                }
                // Too far behind to follow: begin again.
                Err(_) => self.watcher = None,
            }
        }
    }

    /// Reads everything. What is the same as before is not told again.
    fn begin(&mut self, store: &Store, changes: &mut Vec<Change>) {
        let Ok(page) = store.range(&self.keyspace, &Range::default(), |_| true) else { return };
        let mut gone: BTreeSet<Key> = self.objects.keys().cloned().collect();
        for stored in &page.items {
            let key = key(stored.key());
            gone.remove(&key);
            self.put(&key, parse(stored.body()), changes);
        }
        for key in gone {
            self.put(&key, None, changes);
        }
        self.watcher = store.watch(&self.keyspace, page.revision).ok();
    }

    fn put(&mut self, key: &Key, now: Option<K>, changes: &mut Vec<Change>) {
        let now = now.map(Arc::new);
        let before = match &now {
            Some(now) => self.objects.insert(key.clone(), now.clone()),
            None => self.objects.remove(key),
        };
        let version = |object: &Arc<K>| object.metadata().resource_version.clone();
        if before.as_ref().map(version) == now.as_ref().map(version) {
            return;
        }
        if let Some(uid) = before.as_ref().and_then(|object| controller(object.metadata()))
            && let Some(keys) = self.owned.get_mut(uid)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.owned.remove(uid);
            }
        }
        if let Some(uid) = now.as_ref().and_then(|object| controller(object.metadata())) {
            self.owned.entry(uid.to_owned()).or_default().insert(key.clone());
        }
        changes.push(Change { before: before.map(K::wrap), after: now.map(K::wrap) });
    }
}

/// The uid of the owner that is the controller.
fn controller(meta: &ObjectMeta) -> Option<&str> {
    let owners = meta.owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.controller == Some(true)).map(|owner| owner.uid.as_str())
}

fn key(stored: &str) -> Key {
    match stored.split_once('/') {
        Some((namespace, name)) => Key::new(namespace, name),
        None => Key::bare(stored),
    }
}

/// The server checks what it stores, so what cannot be read is our mistake; it is told and left out.
fn parse<K: Kept>(body: &[u8]) -> Option<K> {
    match serde_json::from_slice(body) {
        Ok(object) => Some(object),
        Err(error) => {
            tracing::warn!(kind = K::KIND, %error, "an object cannot be read");
            None
        }
    }
}
