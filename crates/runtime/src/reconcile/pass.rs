// SPDX-License-Identifier: Apache-2.0
//! One pass over one object: look, plan, write the difference, look again, tell.

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};

use futures::StreamExt;
use jiff::Timestamp;
use kube::{
    Resource, ResourceExt,
    core::{ApiResource, DynamicObject},
};

use super::{
    Reconciler,
    apply::{Dressed, Writer, dress},
    children::{Children, Failure},
    error::Error,
    memory::Memory,
    plan::{Child, Note, Plan},
    status,
};
use crate::{events::Events, metrics::Metrics, mirror::Key};

/// A plan settles in two rounds: one that writes, one that finds nothing left. More happen when somebody
/// interferes; many more mean that a plan contradicts itself.
const ROUNDS: usize = 4;
/// Writes of one stage that may be under way at once.
const WIDTH: usize = 8;
/// When to look at the outside again after acting there, unless the plan says otherwise.
const AFTER_EFFECT: Duration = Duration::from_secs(1);

/// Everything a pass needs besides the object.
pub(super) struct Engine<R> {
    pub reconciler: R,
    pub children: Children,
    pub writer: Writer,
    pub events: Events,
    pub clock: Arc<dyn bivouac_core::clock::Clock>,
    pub metrics: Arc<Metrics>,
    /// What we wrote and may not have seen come back yet.
    pub memory: Memory,
    /// Tells two wishes for a child apart.
    pub hasher: RandomState,
}

type PlanOf<R> = Plan<<R as Reconciler>::Status, <R as Reconciler>::Effect>;

impl<R: Reconciler> Engine<R> {
    /// Forgets an object that is gone.
    pub fn forget(&self, key: &Key) {
        let before = self.memory.said(key, None);
        self.metrics.ready(R::NAME, before, None);
        self.memory.forget_status(key);
        self.memory.told(key);
        self.memory.forget_made(key);
    }

    /// Returns how long to wait before looking again; `None` waits for a change.
    pub async fn pass(&self, object: &R::Kind) -> Result<Option<Duration>, Error> {
        let deleting = object.meta().deletion_timestamp.is_some();
        match (R::FINALIZER, deleting) {
            // Ownership cleans up.
            (None, true) => return Ok(None),
            (Some(finalizer), true) if !has_finalizer(object, finalizer) => return Ok(None),
            (Some(finalizer), false) if !has_finalizer(object, finalizer) => {
                let finalizers = [object.finalizers(), &[finalizer.to_owned()]].concat();
                self.writer.finalizers(object, &finalizers).await?;
                // The write comes back as a change and starts the real pass.
                return Ok(None);
            }
            _ => {}
        }
        let mut failures = Vec::new();
        let mut acted = false;
        for _ in 0..ROUNDS {
            let now = self.clock.now();
            let world = self.reconciler.observe(object, &self.children.look(&failures)).await?;
            let mut plan = if deleting {
                self.reconciler.release(object, &world, now)
            } else {
                self.reconciler.plan(object, &world, now)
            };
            let released = deleting && plan.is_done();
            let mut work = self.difference(object, &mut plan);
            if acted {
                // An effect is done once a pass. Whether it took is for the next look to say.
                (work.effects, work.deeds) = (Vec::new(), Vec::new());
            }
            if !failures.is_empty() || work.is_empty() {
                let again = self.conclude(object, &plan, failures, released, now).await?;
                return Ok(if acted && again.is_none() { Some(AFTER_EFFECT) } else { again });
            }
            if work.creates() && self.memory.has_made(object) && !self.writer.lives(object).await? {
                // Its children went with it, and we did not hear of it yet. New ones would go at once, again and again.
                return Ok(None);
            }
            acted |= !work.effects.is_empty();
            self.memory.made(object);
            failures = self.execute(object, work).await;
        }
        Err(Error::Restless(ROUNDS))
    }

    /// What of the plan is not true yet.
    fn difference(&self, object: &R::Kind, plan: &mut PlanOf<R>) -> Work<R::Effect> {
        let stages = std::mem::take(&mut plan.stages);
        // Children of an object that goes are left to ownership.
        let prune = plan.prune && object.meta().deletion_timestamp.is_none();
        let surplus = if prune { self.surplus(object, &stages) } else { Vec::new() };
        let open = |stage: Vec<Child>| stage.into_iter().filter_map(|child| self.open(object, child)).collect();
        let stages = stages.into_iter().map(open).filter(|stage: &Vec<_>| !stage.is_empty()).collect();
        Work { stages, surplus, effects: std::mem::take(&mut plan.effects), deeds: std::mem::take(&mut plan.deeds) }
    }

    /// The child in its dress, unless what exists holds all of it. What was compared once is not compared again while
    /// neither side changes: in a pass over a settled object that is nearly all there is to do.
    fn open(&self, object: &R::Kind, child: Child) -> Option<Dressed> {
        let wish = self.hasher.hash_one((&child.body, object.meta().uid.as_deref()));
        let (live, holds) = self.children.live(&child);
        if live.is_some() && holds == Some(wish) {
            return None;
        }
        let dressed = Dressed { child: dress(child, object), live, wish };
        if !dressed.stands() {
            return Some(dressed);
        }
        let version = dressed.live.as_ref().and_then(|live| live.resource_version());
        self.children.holds(&dressed.child, version.as_deref(), wish);
        None
    }

    /// Children that are ours, by label or by controller reference, and that no stage names any more.
    fn surplus(&self, object: &R::Kind, stages: &[Vec<Child>]) -> Vec<(ApiResource, Arc<DynamicObject>)> {
        let Some(uid) = object.uid() else { return Vec::new() };
        let planned = |resource: &ApiResource, key: &Key| {
            stages.iter().flatten().any(|child| {
                (&child.resource.group, &child.resource.kind, &child.key) == (&resource.group, &resource.kind, key)
            })
        };
        let mut owned = self.children.prunable(&uid);
        owned.retain(|(resource, live)| {
            live.metadata.deletion_timestamp.is_none() && !planned(resource, &Key::of(&**live))
        });
        owned
    }

    /// Writes stage after stage, then removes, then acts outside. Stops after the first stage that fails.
    async fn execute(&self, object: &R::Kind, work: Work<R::Effect>) -> Vec<Failure> {
        for stage in work.stages {
            let writes =
                stage.into_iter().map(|dressed| async move { self.writer.apply(dressed, &self.children).await.err() });
            let failures = collect(writes).await;
            if !failures.is_empty() {
                return failures;
            }
        }
        let removals = work.surplus.into_iter().map(|(resource, object)| async move {
            let failed = self.writer.delete(&resource, &object, &self.children).await.err();
            failed.map(|error| Failure { kind: resource.kind, key: Key::of(&*object), error })
        });
        let mut failures = collect(removals).await;
        for effect in work.effects {
            let kind = format!("{effect:?}").chars().take_while(|c| c.is_alphanumeric()).collect();
            if let Err(error) = self.reconciler.perform(object, effect).await {
                failures.push(Failure { kind, key: Key::new("", ""), error });
            }
        }
        if failures.is_empty() {
            for note in &work.deeds {
                self.events.publish(&object.object_ref(&()), note, self.clock.now()).await;
            }
        }
        failures
    }

    /// Nothing is left to write, or a write was refused: tell it, and let go of the object when it is released.
    async fn conclude(
        &self,
        object: &R::Kind,
        plan: &PlanOf<R>,
        failures: Vec<Failure>,
        released: bool,
        now: Timestamp,
    ) -> Result<Option<Duration>, Error> {
        if let Some(labels) = plan.labels.as_ref().map(|own| own.missing_from(object.meta())).filter(|l| !l.is_empty())
        {
            self.writer.labels(object, &labels).await?;
        }
        let due = if released { None } else { self.tell(object, plan, now).await? };
        if let Some(failure) = failures.into_iter().next() {
            return Err(failure.error);
        }
        if let (true, Some(finalizer)) = (released, R::FINALIZER) {
            let rest: Vec<String> = object.finalizers().iter().filter(|name| *name != finalizer).cloned().collect();
            self.writer.finalizers(object, &rest).await?;
        }
        Ok([plan.requeue, due].into_iter().flatten().min())
    }

    /// Writes the status if it changed. One that may wait is written when its time has come, which is the answer.
    async fn tell(&self, object: &R::Kind, plan: &PlanOf<R>, now: Timestamp) -> Result<Option<Duration>, Error> {
        let Some(wanted) = &plan.status else { return Ok(None) };
        let ready = plan.conditions.iter().find(|verdict| verdict.type_ == "Ready").map(|verdict| verdict.status);
        let before = self.memory.said(&Key::of(object), ready);
        self.metrics.ready(R::NAME, before, ready);
        let wanted = serde_json::to_value(wanted).unwrap_or_default();
        let live = self.memory.status(object);
        let generation = object.meta().generation;
        let Some(change) = status::change(live.as_ref(), wanted, &plan.conditions, generation, now) else {
            self.memory.told(&Key::of(object));
            return Ok(None);
        };
        let left = self.memory.patience_left(&Key::of(object), plan.patience);
        if !left.is_zero() {
            return Ok(Some(left));
        }
        let written = self.writer.status(object, &change.body, &change.leftovers).await?;
        self.memory.wrote_status(&written);
        self.memory.told(&Key::of(object));
        if change.transition {
            for note in &plan.events {
                self.events.publish(&object.object_ref(&()), note, now).await;
            }
        }
        Ok(None)
    }
}

/// What a round has to do.
struct Work<Effect> {
    stages: Vec<Vec<Dressed>>,
    surplus: Vec<(ApiResource, Arc<DynamicObject>)>,
    effects: Vec<Effect>,
    deeds: Vec<Note>,
}

impl<Effect> Work<Effect> {
    fn creates(&self) -> bool {
        self.stages.iter().flatten().any(|dressed| dressed.live.is_none())
    }

    fn is_empty(&self) -> bool {
        self.stages.is_empty() && self.surplus.is_empty() && self.effects.is_empty()
    }
}

async fn collect(tasks: impl Iterator<Item = impl Future<Output = Option<Failure>>>) -> Vec<Failure> {
    futures::stream::iter(tasks).buffer_unordered(WIDTH).filter_map(std::future::ready).collect().await
}

fn has_finalizer<K: Resource>(object: &K, finalizer: &str) -> bool {
    object.finalizers().iter().any(|name| name == finalizer)
}
