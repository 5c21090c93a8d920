// SPDX-License-Identifier: Apache-2.0
//! Connects a [`Reconciler`] to its watches and runs it until told to stop.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, stream::BoxStream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{
    Api, Resource, ResourceExt,
    core::{ApiResource, DeserializeGuard, DynamicObject, GroupVersionKind, error_boundary::InvalidObject},
    runtime::{
        WatchStreamExt,
        controller::{self, Action, Controller},
        reflector::{self, ObjectRef, Store},
        watcher,
    },
};
use serde_json::json;
use tracing::Instrument;

use super::{
    Reconciler,
    apply::Writer,
    backoff::{Backoff, jittered},
    children::Children,
    crowd::together,
    error::{Category, Error},
    gather::gather,
    memory::Memory,
    pass::Engine,
    plan::Note,
};
use crate::{Runtime, capabilities::Presence, events::Events, metrics::Outcome, mirror::Key, readiness::Waiting};

/// A pass that takes longer hangs on something; it is given up and retried.
const PASS_LIMIT: Duration = Duration::from_secs(60);
/// A settled object is looked at again after about this time, without any request.
const RESYNC: Duration = Duration::from_secs(50 * 60);
/// A pass hears of its own writes for about so long. A child that somebody else edited can wait as well.
const ECHO: Duration = Duration::from_millis(100);

/// All objects of the controller's own kind that could be read.
#[derive(Clone, Debug)]
pub struct Objects<K: Resource<DynamicType = ()> + 'static>(Store<DeserializeGuard<K>>);

impl<K: super::Kind> Objects<K> {
    /// The objects that pass the test.
    pub fn filter(&self, wanted: impl Fn(&K) -> bool) -> Vec<Arc<DeserializeGuard<K>>> {
        self.0.state_filter(|guard| guard.0.as_ref().is_ok_and(&wanted))
    }
}

/// What a controller brings to the harness besides itself.
pub struct Setup<R: Reconciler> {
    pub children: Children,
    /// Further objects to look at, found by watching something that is no child.
    pub triggers: Vec<BoxStream<'static, ObjectRef<R::Kind>>>,
    /// Passes that may run at once.
    pub concurrency: u16,
    /// Which objects nothing was done for yet, where they often come in crowds.
    pub is_new: Option<fn(&R::Kind) -> bool>,
}

/// Runs one controller until the runtime stops. `build` gets the store of its own kind.
pub async fn run<R: Reconciler>(runtime: &Runtime, build: impl FnOnce(Objects<R::Kind>) -> (R, Setup<R>)) {
    let waiting = runtime.readiness.wait_for(R::NAME);
    let own = ApiResource::erase::<R::Kind>(&());
    let crd = format!("{}.{}", own.plural, own.group);
    let own = GroupVersionKind::gvk(&own.group, &own.version, &own.kind);
    if runtime.capabilities.presence(&own) != Presence::Served {
        waiting.set(format!("the CRD {crd}: install it with `bivouac crds | kubectl apply --server-side -f -`"));
    }
    if runtime.stop.run_until_cancelled(runtime.capabilities.wait(&own, Presence::Served)).await.is_none() {
        return;
    }

    let (reader, writer) = reflector::store();
    let (reconciler, setup) = build(Objects(reader.clone()));
    setup.children.follow(&runtime.client, &runtime.watching, &runtime.stop);
    if runtime.stop.run_until_cancelled(first_lists(&setup.children, &waiting)).await.is_none() {
        return;
    }
    waiting.done();
    tracing::info!(controller = R::NAME, "controller runs");

    let coming = futures::stream::select(setup.children.comings_and_goings(), runtime.capabilities.changes());
    let touched = gather(setup.children.owners_touched::<R::Kind>().boxed(), ECHO).map(guarded_ref);
    let triggers = futures::stream::select_all(setup.triggers).map(guarded_ref);
    let engine = Arc::new(Guarded {
        engine: engine(runtime, reconciler, setup.children),
        backoff: Backoff::default(),
        runtime: runtime.clone(),
    });

    let api = Api::<DeserializeGuard<R::Kind>>::all(runtime.client.clone());
    let objects = watcher(api, runtime.watching.clone())
        .default_backoff()
        .modify(|object| object.managed_fields_mut().clear())
        .reflect(writer)
        .touched_objects();
    let is_new = move |object: &DeserializeGuard<R::Kind>| match (&object.0, setup.is_new) {
        (Ok(object), Some(is_new)) => is_new(object),
        _ => false,
    };
    Controller::for_stream(together(objects.boxed(), is_new), reader)
        .with_config(controller::Config::default().concurrency(setup.concurrency))
        .reconcile_on(touched)
        .reconcile_on(triggers)
        .reconcile_all_on(coming)
        .graceful_shutdown_on(runtime.stop.clone().cancelled_owned())
        .run(Guarded::reconcile, Guarded::error_policy, engine.clone())
        .for_each(|result| {
            match result {
                Err(controller::Error::QueueError(error)) => {
                    tracing::warn!(controller = R::NAME, %error, "watch interrupted, trying again");
                }
                // It was deleted; that is how we hear of it.
                Err(controller::Error::ObjectNotFound(gone)) => {
                    engine.forget(&Key::new(gone.namespace.as_deref().unwrap_or_default(), &gone.name))
                }
                _ => {}
            }
            std::future::ready(())
        })
        .await;
    runtime.metrics.silence(R::NAME);
}

/// Waits for the children's lists, and says meanwhile what is missing.
async fn first_lists(children: &Children, waiting: &Waiting) {
    let mut ready = std::pin::pin!(children.wait_ready());
    loop {
        waiting.set(format!("the first lists of {}", children.unready().join(", ")));
        if tokio::time::timeout(Duration::from_secs(2), &mut ready).await.is_ok() {
            return;
        }
    }
}

fn engine<R: Reconciler>(runtime: &Runtime, reconciler: R, children: Children) -> Engine<R> {
    let manager = format!("bivouac-{}", R::NAME);
    Engine {
        reconciler,
        children,
        events: Events::new(runtime.client.clone(), manager.clone(), runtime.identity.clone()),
        writer: Writer { client: runtime.client.clone(), manager, predecessors: R::PREDECESSORS },
        clock: runtime.clock.clone(),
        metrics: runtime.metrics.clone(),
        memory: Memory::default(),
        hasher: Default::default(),
    }
}

fn guarded_ref<K: super::Kind>(object: ObjectRef<K>) -> ObjectRef<DeserializeGuard<K>> {
    let reference = ObjectRef::new(&object.name);
    match &object.namespace {
        Some(namespace) => reference.within(namespace),
        None => reference,
    }
}

/// The engine behind walls: time limit, panics, objects that do not parse, backoff, metrics, one span per pass.
struct Guarded<R: Reconciler> {
    engine: Engine<R>,
    backoff: Backoff,
    runtime: Runtime,
}

impl<R: Reconciler> Guarded<R> {
    fn forget(&self, key: &Key) {
        self.engine.forget(key);
        self.backoff.succeeded(key);
    }

    async fn reconcile(object: Arc<DeserializeGuard<R::Kind>>, this: Arc<Self>) -> Result<Action, Error> {
        let key = Key::of(&*object);
        let span =
            tracing::info_span!("pass", controller = R::NAME, object = %key, generation = object.meta().generation);
        this.timed(&object, &key).instrument(span).await
    }

    async fn timed(&self, object: &DeserializeGuard<R::Kind>, key: &Key) -> Result<Action, Error> {
        let started = tokio::time::Instant::now();
        let work = async {
            match &object.0 {
                Ok(object) => self.engine.pass(object).await,
                Err(invalid) => self.refuse(invalid).await,
            }
        };
        let result = match tokio::time::timeout(PASS_LIMIT, AssertUnwindSafe(work).catch_unwind()).await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => Err(Error::Panicked(words(&*panic))),
            Err(_) => Err(Error::TooSlow(PASS_LIMIT)),
        };
        let outcome = match &result {
            Ok(None) => Outcome::Settled,
            Ok(Some(_)) => Outcome::Waiting,
            Err(error) => Outcome::Failed(error.category()),
        };
        self.runtime.metrics.pass(R::NAME, outcome, started.elapsed());
        tracing::debug!(outcome = outcome.as_str(), "pass ended");
        result.map(|again| {
            self.backoff.succeeded(key);
            Action::requeue(again.unwrap_or_else(|| jittered(RESYNC)))
        })
    }

    fn error_policy(object: Arc<DeserializeGuard<R::Kind>>, error: &Error, this: Arc<Self>) -> Action {
        let key = Key::of(&*object);
        let delay = this.backoff.failed(&key, error);
        match error.category() {
            Category::Conflict | Category::NotLeader => {
                tracing::info!(controller = R::NAME, object = %key, %error, ?delay, "pass interrupted");
            }
            _ => tracing::warn!(controller = R::NAME, object = %key, %error, ?delay, "pass failed"),
        }
        Action::requeue(delay)
    }

    /// The object is stored but is not what its kind says: tell its owner, and go on with the others.
    async fn refuse(&self, invalid: &InvalidObject) -> Result<Option<Duration>, Error> {
        let text = format!("this object cannot be read as a {}: {}", R::Kind::kind(&()), invalid.error);
        let resource = ApiResource::erase::<R::Kind>(&());
        let mut object = DynamicObject::new(invalid.metadata.name.as_deref().unwrap_or_default(), &resource);
        object.metadata = invalid.metadata.clone();
        let now = self.engine.clock.now();
        let condition = Condition {
            type_: "Ready".into(),
            status: "False".into(),
            reason: "InvalidObject".into(),
            message: text.clone(),
            observed_generation: invalid.metadata.generation,
            last_transition_time: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
                invalid.metadata.creation_timestamp.as_ref().map_or(now, |created| created.0),
            ),
        };
        self.engine.writer.raw_status(&resource, &object, &json!({ "conditions": [condition] })).await?;
        let note = Note { warning: true, reason: "InvalidObject", action: "Read", text };
        self.engine.events.publish(&object.object_ref(&resource), &note, now).await;
        Ok(None)
    }
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
