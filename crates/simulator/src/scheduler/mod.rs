// SPDX-License-Identifier: Apache-2.0
//! The scheduler: gives each pod the node that is best for it, or says why there is none.
//!
//! One pass goes through all pods that wait, the most important first. A [`board::Board`] holds who is where; what the
//! pass decides is put on it at once, so that later pods see it.

mod board;
mod company;
mod look;
mod preempt;
mod score;
mod spread;
mod words;

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodCondition, PodStatus};

use self::{
    board::{Board, priority},
    look::Look,
    preempt::Choice,
};
use crate::{
    controller::{Controller, Moment, Plan},
    kinds::{Object, View},
    request::Propagation,
    room::{self, Amounts},
    shelf::Key,
    workload::{condition, node_of, phase, time},
};

/// Pods that are decided in one pass.
const MOST_AT_ONCE: usize = 500;
const NAME: &str = "default-scheduler";

/// A new reason to wait is told no sooner after the last one: in a busy cluster it changes all the time.
const CALM: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub struct Scheduler {
    /// When those who wait were last told why.
    told: BTreeMap<Key, Timestamp>,
}

impl Controller for Scheduler {
    fn name(&self) -> &'static str {
        NAME
    }

    /// There is one key: who comes first is a question about all pods.
    fn concerns(&self, object: &Object, view: &View) -> Vec<Key> {
        let matters = match object {
            Object::Node(node) => node_matters(node, view),
            Object::Pod(pod) => pod_matters(pod, view),
            _ => false,
        };
        if matters { vec![Key::bare("pods")] } else { Vec::new() }
    }

    fn plan(&mut self, _: &Key, view: &View, moment: &Moment<'_>) -> Plan {
        let mut waiting: Vec<_> = view.pods_on("").filter(|pod| is_ours(pod)).collect();
        self.told.retain(|key, _| view.pods.get(key).is_some_and(|pod| node_of(pod).is_none()));
        if waiting.is_empty() {
            return Plan::default();
        }
        waiting.sort_by_cached_key(|pod| {
            let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
            (Reverse(priority(pod)), created, Key::of(&pod.metadata))
        });
        let mut pass = Pass {
            plan: Plan::default(),
            board: Board::new(view),
            now: moment.now,
            hopeless: None,
            told: &mut self.told,
        };
        for pod in waiting {
            if pass.plan.writes.len() > 2 * MOST_AT_ONCE {
                pass.plan.again_at(moment.now);
                break;
            }
            pass.decide(pod);
        }
        pass.plan
    }
}

fn is_ours(pod: &Pod) -> bool {
    let gated = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.scheduling_gates.iter().flatten().count() > 0);
    let scheduler = pod.spec.as_ref().and_then(|spec| spec.scheduler_name.as_deref());
    scheduler.is_none_or(|name| name == NAME)
        && pod.metadata.deletion_timestamp.is_none()
        && !matches!(phase(pod), "Succeeded" | "Failed")
        && !gated(pod)
}

/// Whether something about a pod changed that can change a decision. Containers that start do not.
fn pod_matters(pod: &Pod, view: &View) -> bool {
    let facts = |pod: &Pod| {
        let stopped = matches!(phase(pod), "Succeeded" | "Failed");
        (node_of(pod).map(str::to_owned), stopped, pod.metadata.deletion_timestamp.clone(), pod.metadata.labels.clone())
    };
    match view.pods.get(&Key::of(&pod.metadata)) {
        Some(now) if now.metadata.resource_version == pod.metadata.resource_version => node_of(pod).is_none(),
        Some(now) => facts(now) != facts(pod),
        None => true,
    }
}

/// Heartbeats do not matter.
fn node_matters(node: &k8s_openapi::api::core::v1::Node, view: &View) -> bool {
    let Some(now) = view.nodes.get(&Key::of(&node.metadata)) else { return true };
    let allocatable = |node: &k8s_openapi::api::core::v1::Node| node.status.as_ref()?.allocatable.clone();
    let first = node.metadata.resource_version == now.metadata.resource_version;
    first
        || now.spec != node.spec
        || now.metadata.labels != node.metadata.labels
        || allocatable(now) != allocatable(node)
}

/// One pass over all pods that wait.
struct Pass<'a> {
    plan: Plan,
    board: Board,
    now: Timestamp,
    /// The last pod that fitted nowhere, and why: as long as nothing is decided, one like it does not fit either.
    hopeless: Option<(Arc<Pod>, String)>,
    told: &'a mut BTreeMap<Key, Timestamp>,
}

impl Pass<'_> {
    fn decide(&mut self, pod: &Arc<Pod>) {
        if self.board.spots.is_empty() {
            return self.tell(pod, words::NO_NODES.to_owned(), None);
        }
        if let Some((_, why)) = self.hopeless.as_ref().filter(|(known, _)| is_alike(known, pod)) {
            let why = why.clone();
            return self.tell(pod, why, None);
        }
        let needs = room::needs(pod);
        let Some(look) = Look::new(pod, &needs, &self.board) else { return };
        let (mut fit, mut refusals) = (Vec::new(), Vec::new());
        for (at, spot) in self.board.spots.iter().enumerate() {
            match look.refusal(spot) {
                None => fit.push(at),
                Some(refusal) => refusals.push(refusal),
            }
        }
        if let Some(best) = score::best(pod, &look, &self.board, &fit) {
            return self.bind(pod, needs, best);
        }
        if self.waits_for_its_place(pod, &needs) {
            return;
        }
        let refused = words::refused(&refusals);
        match preempt::choose(pod, &needs, &self.board, &refusals) {
            Ok(choice) => self.preempt(pod, needs, choice, refused),
            Err(why) => {
                let why = words::in_vain(&refused, &why);
                self.hopeless = Some((pod.clone(), why.clone()));
                self.tell(pod, why, None);
            }
        }
    }

    fn bind(&mut self, pod: &Arc<Pod>, needs: Amounts, at: usize) {
        self.hopeless = None;
        let Some(spot) = self.board.spots.get_mut(at) else { return };
        let node = spot.name().to_owned();
        spot.seat(pod.clone(), needs);
        self.plan.bind(pod, &node);
        self.plan.event(&**pod, "Scheduled", format!("Successfully assigned {} to {node}", Key::of(&pod.metadata)));
    }

    /// Those whose place it takes are on their way out: nobody of less importance may be faster.
    fn waits_for_its_place(&mut self, pod: &Arc<Pod>, needs: &Amounts) -> bool {
        let nominated = pod.status.as_ref().and_then(|status| status.nominated_node_name.clone()).unwrap_or_default();
        let Some(spot) = self.board.spot_mut(&nominated) else { return false };
        let leaving = |other: &Pod| other.metadata.deletion_timestamp.is_some() && priority(other) < priority(pod);
        let waits = spot.guests.iter().any(|guest| leaving(&guest.pod));
        if waits {
            spot.seat(pod.clone(), needs.clone());
            self.hopeless = None;
        }
        waits
    }

    fn preempt(&mut self, pod: &Arc<Pod>, needs: Amounts, choice: Choice, refused: String) {
        for victim in choice.victims.iter().filter(|victim| victim.metadata.deletion_timestamp.is_none()) {
            let mut marked = Pod::clone(victim);
            let new = PodCondition {
                type_: "DisruptionTarget".to_owned(),
                status: "True".to_owned(),
                reason: Some("PreemptionByScheduler".to_owned()),
                message: Some(format!("{NAME}: preempting to accommodate a higher priority pod")),
                last_transition_time: Some(time(self.now)),
                observed_generation: victim.metadata.generation,
                ..PodCondition::default()
            };
            put(marked.status.get_or_insert_default(), new);
            self.plan.status(&marked);
            self.plan.delete(&**victim, Propagation::Background);
            let uid = pod.metadata.uid.as_deref().unwrap_or_default();
            self.plan.event(&**victim, "Preempted", format!("Preempted by pod {uid} on node {}", choice.node));
        }
        self.tell(pod, refused, Some(&choice.node));
        if let Some(spot) = self.board.spot_mut(&choice.node) {
            spot.seat(pod.clone(), needs);
        }
        self.hopeless = None;
    }

    /// Says why a pod waits, once.
    fn tell(&mut self, pod: &Arc<Pod>, why: String, nominated: Option<&str>) {
        let told = condition(pod, "PodScheduled");
        let status = pod.status.clone().unwrap_or_default();
        if told.and_then(|told| told.message.as_deref()) == Some(&why)
            && (nominated.is_none() || status.nominated_node_name.as_deref() == nominated)
        {
            return;
        }
        let again = self.told.get(&Key::of(&pod.metadata)).and_then(|last| last.checked_add(CALM).ok());
        if let Some(again) = again.filter(|again| nominated.is_none() && *again > self.now) {
            return self.plan.again_at(again);
        }
        self.told.insert(Key::of(&pod.metadata), self.now);
        let kept = told.filter(|told| told.status == "False").and_then(|told| told.last_transition_time.clone());
        let mut waiting = Pod { status: Some(status), ..Pod::clone(pod) };
        let status = waiting.status.get_or_insert_default();
        let new = PodCondition {
            type_: "PodScheduled".to_owned(),
            status: "False".to_owned(),
            reason: Some("Unschedulable".to_owned()),
            message: Some(why.clone()),
            last_transition_time: kept.or_else(|| Some(time(self.now))),
            observed_generation: pod.metadata.generation,
            ..PodCondition::default()
        };
        put(status, new);
        if let Some(node) = nominated {
            status.nominated_node_name = Some(node.to_owned());
        }
        self.plan.status(&waiting);
        self.plan.warning(&**pod, "FailedScheduling", why);
    }
}

/// Pods that look the same to the scheduler.
fn is_alike(a: &Pod, b: &Pod) -> bool {
    (&a.spec, &a.metadata.labels, &a.metadata.namespace) == (&b.spec, &b.metadata.labels, &b.metadata.namespace)
}

fn put(status: &mut PodStatus, new: PodCondition) {
    let all = status.conditions.get_or_insert_default();
    match all.iter_mut().find(|known| known.type_ == new.type_) {
        Some(known) => *known = new,
        None => all.push(new),
    }
}
