// SPDX-License-Identifier: Apache-2.0
//! ReplicaSets: so many pods of one template.

use std::{cmp::Ordering, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetSpec, ReplicaSetStatus},
    core::v1::Pod,
};

use crate::{
    controller::{Controller, Moment, Plan, Refusal},
    kinds::{Object, View},
    labels,
    shelf::Key,
    workload::{
        available_at, by_dispensability, claim, concerned, from_template, is_active, is_available, is_ready,
        is_terminating, node_of, phase, some, time, whole,
    },
};

/// Pods that are created or deleted in one go.
const MOST_AT_ONCE: usize = 500;
const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

#[derive(Debug)]
pub struct ReplicaSets;

impl Controller for ReplicaSets {
    fn name(&self) -> &'static str {
        "replicaset-controller"
    }

    fn concerns(&self, object: &Object, view: &View) -> Vec<Key> {
        match object {
            Object::ReplicaSet(set) => vec![Key::of(&set.metadata)],
            Object::Pod(pod) => concerned(&pod.metadata, &view.replica_sets, |set| Some(&set.spec.as_ref()?.selector)),
            _ => Vec::new(),
        }
    }

    fn plan(&mut self, key: &Key, view: &View, moment: &Moment<'_>) -> Plan {
        let mut plan = Plan::default();
        let Some((set, spec)) = view.replica_sets.get(key).and_then(|set| Some((set, set.spec.as_ref()?))) else {
            return plan;
        };
        let selects = |pod: &Pod| labels::selects(Some(&spec.selector), pod.metadata.labels.as_ref());
        let claimed = claim(&mut plan, &**set, selects, &view.pods, None);
        if claimed.changed {
            return plan;
        }
        let active: Vec<_> = claimed.objects.iter().filter(|pod| is_active(pod)).cloned().collect();
        let going = claimed.objects.iter().filter(|pod| is_terminating(pod)).count();
        let refusal = moment.refusal.filter(|_| active.len() < wanted(spec));
        let status = status(set, spec, &active, going, refusal, moment.now);
        let told = set.status.as_ref() != Some(&status);
        let updated = ReplicaSet { status: Some(status), ..ReplicaSet::clone(set) };
        if let (Some(refusal), true) = (refusal, told) {
            plan.status(&updated);
            plan.warning(&**set, "FailedCreate", format!("Error creating: {}", refusal.message));
        }
        if set.metadata.deletion_timestamp.is_none() {
            rescale(&mut plan, set, spec, &active);
        }
        if refusal.is_none() && told {
            plan.status(&updated);
        }
        let later = active.iter().filter_map(|pod| available_at(pod, spec.min_ready_seconds.unwrap_or_default()));
        later.filter(|at| *at > moment.now).for_each(|at| plan.again_at(at));
        plan
    }
}

fn wanted(spec: &ReplicaSetSpec) -> usize {
    usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or_default()
}

fn rescale(plan: &mut Plan, set: &ReplicaSet, spec: &ReplicaSetSpec, active: &[Arc<Pod>]) {
    let wanted = wanted(spec);
    if let Some(template) = spec.template.as_ref() {
        for _ in 0..wanted.saturating_sub(active.len()).min(MOST_AT_ONCE) {
            plan.create_pod(&from_template(template, set), set);
        }
    }
    let mut dispensable: Vec<_> = active.iter().collect();
    dispensable.sort_by(|a, b| by_cost(a, b, active));
    for pod in dispensable.into_iter().take(active.len().saturating_sub(wanted).min(MOST_AT_ONCE)) {
        plan.delete_pod(pod, set);
    }
}

/// Like the order of all pods, but among pods in the same state the owner's word counts, then crowded nodes.
fn by_cost(a: &Pod, b: &Pod, all: &[Arc<Pod>]) -> Ordering {
    let state = |pod: &Pod| (node_of(pod).is_some(), phase(pod) == "Running", is_ready(pod));
    let cost = |pod: &Pod| {
        let text = pod.metadata.annotations.as_ref().and_then(|all| all.get(COST));
        text.and_then(|text| text.parse::<i32>().ok()).unwrap_or_default()
    };
    let beside =
        |pod: &Pod| all.iter().filter(|other| node_of(pod).is_some() && node_of(other) == node_of(pod)).count();
    state(a)
        .cmp(&state(b))
        .then_with(|| cost(a).cmp(&cost(b)))
        .then_with(|| beside(b).cmp(&beside(a)))
        .then_with(|| by_dispensability(a, b))
}

fn status(
    set: &ReplicaSet,
    spec: &ReplicaSetSpec,
    active: &[Arc<Pod>],
    going: usize,
    refusal: Option<&Refusal>,
    now: Timestamp,
) -> ReplicaSetStatus {
    let template = spec.template.as_ref().and_then(|template| template.metadata.as_ref()?.labels.as_ref());
    let count = |fits: &dyn Fn(&Pod) -> bool| whole(active.iter().filter(|pod| fits(pod)).count());
    let before = set.status.clone().unwrap_or_default();
    let mut conditions = before.conditions.unwrap_or_default();
    match refusal {
        None => conditions.retain(|one| one.type_ != "ReplicaFailure"),
        Some(_) if conditions.iter().any(|one| one.type_ == "ReplicaFailure") => {}
        Some(refusal) => conditions.push(ReplicaSetCondition {
            type_: "ReplicaFailure".to_owned(),
            status: "True".to_owned(),
            reason: Some("FailedCreate".to_owned()),
            message: Some(refusal.message.clone()),
            last_transition_time: Some(time(now)),
        }),
    }
    let min_ready = spec.min_ready_seconds.unwrap_or_default();
    ReplicaSetStatus {
        replicas: whole(active.len()),
        fully_labeled_replicas: some(count(&|pod| labels::contains(pod.metadata.labels.as_ref(), template))),
        ready_replicas: some(count(&|pod| is_ready(pod))),
        available_replicas: some(count(&|pod| is_available(pod, min_ready, now))),
        terminating_replicas: Some(whole(going)),
        observed_generation: set.metadata.generation,
        conditions: Some(conditions).filter(|all| !all.is_empty()),
    }
}
