// SPDX-License-Identifier: Apache-2.0
//! How many pods may be evicted: the status of PodDisruptionBudgets, by which the API server decides.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        core::v1::Pod,
        policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus},
    },
    apimachinery::pkg::{
        apis::meta::v1::{Condition, Time},
        util::intstr::IntOrString,
    },
};

use crate::{
    controller::{Controller, Moment, Plan},
    kinds::{Object, View},
    labels,
    shelf::Key,
    workload::{Round, controller_of, is_ready, share, time, whole},
};

/// An eviction that was allowed must lead to a deletion within this time.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub struct DisruptionBudgets;

impl Controller for DisruptionBudgets {
    fn name(&self) -> &'static str {
        "controllermanager"
    }

    fn concerns(&self, object: &Object, view: &View) -> Vec<Key> {
        let meta = object.meta();
        let all = || view.disruption_budgets.in_namespace(meta.namespace.as_deref().unwrap_or_default());
        let keys = |one: &Arc<PodDisruptionBudget>| Key::of(&one.metadata);
        match object {
            Object::PodDisruptionBudget(budget) => vec![Key::of(&budget.metadata)],
            Object::Pod(pod) => all().filter(|budget| selects(budget, pod)).map(keys).collect(),
            // Their sizes are what percentages are of.
            Object::Deployment(_) | Object::ReplicaSet(_) | Object::StatefulSet(_) => all().map(keys).collect(),
            _ => Vec::new(),
        }
    }

    fn plan(&mut self, key: &Key, view: &View, moment: &Moment<'_>) -> Plan {
        let mut plan = Plan::default();
        let Some((budget, spec)) = view.disruption_budgets.get(key).and_then(|one| Some((one, one.spec.as_ref()?)))
        else {
            return plan;
        };
        let pods: Vec<_> = view.pods.in_namespace(&key.namespace).filter(|pod| selects(budget, pod)).collect();
        let status = match expected(spec, &pods, view) {
            Ok(expected) => status(budget, &pods, expected, moment.now, &mut plan),
            Err(why) => failed(budget, &why, moment.now),
        };
        if budget.status.as_ref() != Some(&status) {
            if pods.is_empty() {
                plan.event(&**budget, "NoPods", "No matching pods found");
            }
            plan.status(&PodDisruptionBudget { status: Some(status), ..PodDisruptionBudget::clone(budget) });
        }
        plan
    }
}

fn selects(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    labels::selects(selector, pod.metadata.labels.as_ref())
}

/// How many pods there should be, and how many of them healthy.
fn expected(spec: &PodDisruptionBudgetSpec, pods: &[&Arc<Pod>], view: &View) -> Result<(i32, i32), String> {
    match (&spec.max_unavailable, &spec.min_available) {
        (Some(most), _) => {
            let size = size(pods, view)?;
            Ok((size, (size - share(Some(most), size, Round::Up)).max(0)))
        }
        (None, Some(IntOrString::Int(least))) => Ok((whole(pods.len()), *least)),
        (None, Some(part)) => {
            let size = size(pods, view)?;
            Ok((size, share(Some(part), size, Round::Up)))
        }
        (None, None) => Ok((0, 0)),
    }
}

/// The sizes of all controllers of the pods, each once. Pods without a controller are not counted.
fn size(pods: &[&Arc<Pod>], view: &View) -> Result<i32, String> {
    let mut sizes: BTreeMap<&str, i32> = BTreeMap::new();
    for pod in pods {
        let Some(owner) = controller_of(&pod.metadata) else { continue };
        let key = Key::new(pod.metadata.namespace.clone().unwrap_or_default(), &owner.name);
        match owner.kind.as_str() {
            "ReplicaSet" => {
                let Some(set) = view.replica_sets.get(&key) else { continue };
                let above = controller_of(&set.metadata).filter(|above| above.kind == "Deployment");
                let deployment = above.and_then(|above| view.deployments.get(&Key::new(&key.namespace, &above.name)));
                match deployment {
                    Some(one) => {
                        let replicas = one.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
                        sizes.insert(one.metadata.uid.as_deref().unwrap_or_default(), replicas)
                    }
                    None => sizes.insert(&owner.uid, set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)),
                };
            }
            "StatefulSet" => {
                let spec = view.stateful_sets.get(&key).and_then(|set| set.spec.as_ref());
                sizes.insert(&owner.uid, spec.and_then(|spec| spec.replicas).unwrap_or(1));
            }
            kind => {
                let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
                return Err(format!("{}s.{group} does not implement the scale subresource", kind.to_lowercase()));
            }
        }
    }
    Ok(sizes.values().sum())
}

fn status(
    budget: &PodDisruptionBudget,
    pods: &[&Arc<Pod>],
    (expected, desired): (i32, i32),
    now: Timestamp,
    plan: &mut Plan,
) -> PodDisruptionBudgetStatus {
    let before = budget.status.clone().unwrap_or_default();
    let mut disrupted: BTreeMap<String, Time> = BTreeMap::new();
    let known = before.disrupted_pods.clone().unwrap_or_default();
    let staying = || pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    for pod in staying() {
        let name = pod.metadata.name.clone().unwrap_or_default();
        let Some(since) = known.get(&name) else { continue };
        let until = since.0.checked_add(PATIENCE).unwrap_or(Timestamp::MAX);
        if until >= now {
            disrupted.insert(name, since.clone());
            plan.again_at(until.checked_add(Duration::from_millis(1)).unwrap_or(until));
        }
    }
    let leaving = |pod: &Pod| pod.metadata.name.as_ref().is_some_and(|name| disrupted.contains_key(name));
    let healthy = whole(staying().filter(|pod| is_ready(pod) && !leaving(pod)).count());
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    let (truth, reason) = if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    PodDisruptionBudgetStatus {
        current_healthy: Some(healthy),
        desired_healthy: Some(desired),
        expected_pods: Some(expected),
        disruptions_allowed: Some(allowed),
        disrupted_pods: Some(disrupted).filter(|pods| !pods.is_empty()),
        observed_generation: budget.metadata.generation,
        conditions: Some(vec![condition(&before, truth, reason, "", budget.metadata.generation, now)]),
    }
}

fn failed(budget: &PodDisruptionBudget, why: &str, now: Timestamp) -> PodDisruptionBudgetStatus {
    let before = budget.status.clone().unwrap_or_default();
    let observed = before.observed_generation;
    PodDisruptionBudgetStatus {
        disruptions_allowed: Some(0),
        current_healthy: Some(before.current_healthy.unwrap_or_default()),
        desired_healthy: Some(before.desired_healthy.unwrap_or_default()),
        expected_pods: Some(before.expected_pods.unwrap_or_default()),
        conditions: Some(vec![condition(&before, "False", "SyncFailed", why, observed, now)]),
        ..before
    }
}

/// Since when it holds is kept for as long as it does.
fn condition(
    before: &PodDisruptionBudgetStatus,
    truth: &str,
    reason: &str,
    message: &str,
    observed: Option<i64>,
    now: Timestamp,
) -> Condition {
    let known = before.conditions.iter().flatten().find(|one| one.type_ == "DisruptionAllowed" && one.status == truth);
    Condition {
        type_: "DisruptionAllowed".to_owned(),
        status: truth.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: observed.filter(|observed| *observed != 0),
        last_transition_time: known.map_or_else(|| time(now), |known| known.last_transition_time.clone()),
    }
}
