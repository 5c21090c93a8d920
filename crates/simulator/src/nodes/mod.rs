// SPDX-License-Identifier: Apache-2.0
//! The life of nodes as the cluster sees it: who is missed, what that means for new pods, and for those already there.

mod evictions;
mod lost_pods;
mod taints;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, NodeCondition, Pod, PodCondition};
use serde_json::json;

pub use self::{evictions::Evictions, lost_pods::LostPods};
use crate::{
    controller::{Controller, Moment, Plan},
    kinds::{Object, View},
    kubelets::{LEASES, is_simulated, missed_at},
    shelf::Key,
    workload::{is_ready, node_of, time},
};

const KINDS: [&str; 4] = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"];

#[derive(Debug)]
pub struct Nodes;

impl Controller for Nodes {
    fn name(&self) -> &'static str {
        "node-controller"
    }

    fn concerns(&self, object: &Object, _: &View) -> Vec<Key> {
        match object {
            Object::Node(node) => vec![Key::of(&node.metadata)],
            Object::Lease(lease) if lease.metadata.namespace.as_deref() == Some(LEASES) => {
                vec![Key::bare(lease.metadata.name.clone().unwrap_or_default())]
            }
            _ => Vec::new(),
        }
    }

    fn plan(&mut self, key: &Key, view: &View, moment: &Moment<'_>) -> Plan {
        let mut plan = Plan::default();
        let Some(node) = view.nodes.get(key) else { return plan };
        let lease = view.leases.get(&Key::new(LEASES, &key.name)).filter(|_| is_simulated(node));
        if let Some(missed) = lease.and_then(|lease| missed_at(lease)) {
            if missed > moment.now {
                plan.again_at(missed);
            } else if ready(node).is_some_and(|ready| ready.status != "Unknown") {
                miss(&mut plan, node, moment.now);
                return plan;
            }
        }
        if let Some(wanted) = taints::wanted(node, moment.now) {
            let version = node.metadata.resource_version.as_deref();
            let body = json!({ "metadata": { "resourceVersion": version }, "spec": { "taints": wanted } });
            plan.patch(&**node, body);
        }
        if ready(node).is_some_and(|ready| ready.status != "True") {
            let pods = view.pods_on(&key.name).filter(|pod| is_ready(pod));
            pods.for_each(|pod| hide(&mut plan, pod, moment.now));
        }
        plan
    }
}

fn ready(node: &Node) -> Option<&NodeCondition> {
    node.status.as_ref()?.conditions.as_ref()?.iter().find(|one| one.type_ == "Ready")
}

/// Nobody knows any more how the node is.
fn miss(plan: &mut Plan, node: &Node, now: Timestamp) {
    let mut missed = node.clone();
    let all = missed.status.get_or_insert_default().conditions.get_or_insert_default();
    for one in all.iter_mut().filter(|one| KINDS.contains(&one.type_.as_str())) {
        one.status = "Unknown".to_owned();
        one.reason = Some("NodeStatusUnknown".to_owned());
        one.message = Some("Kubelet stopped posting node status.".to_owned());
        one.last_transition_time = Some(time(now));
    }
    plan.status(&missed);
    let name = node.metadata.name.as_deref().unwrap_or_default();
    plan.event(node, "NodeNotReady", format!("Node {name} status is now: NodeNotReady"));
}

/// Pods of such a node get no more requests.
fn hide(plan: &mut Plan, pod: &Pod, now: Timestamp) {
    let mut hidden = pod.clone();
    let all = hidden.status.get_or_insert_default().conditions.get_or_insert_default();
    for one in all.iter_mut().filter(|one| one.type_ == "Ready") {
        one.status = "False".to_owned();
        one.last_transition_time = Some(time(now));
    }
    plan.status(&hidden);
    plan.warning(pod, "NodeNotReady", "Node is not ready");
}

/// The pods to look at when a pod or its node changes.
fn pods_of(object: &Object, view: &View) -> Vec<Key> {
    match object {
        Object::Pod(pod) if node_of(pod).is_some() => vec![Key::of(&pod.metadata)],
        Object::Node(node) => {
            let name = node.metadata.name.as_deref().unwrap_or_default();
            view.pods_on(name).map(|pod| Key::of(&pod.metadata)).collect()
        }
        _ => Vec::new(),
    }
}

/// The pod as it is when somebody other than its owner ends it.
fn disrupted(pod: &Pod, reason: &str, message: &str, now: Timestamp) -> Pod {
    let mut pod = pod.clone();
    let generation = pod.metadata.generation;
    let all = pod.status.get_or_insert_default().conditions.get_or_insert_default();
    all.retain(|one| one.type_ != "DisruptionTarget");
    all.push(PodCondition {
        type_: "DisruptionTarget".to_owned(),
        status: "True".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_transition_time: Some(time(now)),
        observed_generation: generation,
        ..PodCondition::default()
    });
    pod
}
