// SPDX-License-Identifier: Apache-2.0
//! What a kubelet says about its node.
//!
//! Heartbeats are arithmetic: a lease promises a day of them, and is shortened when the node dies. A node at rest
//! writes once a day.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        coordination::v1::{Lease, LeaseSpec},
        core::v1::{Node, NodeAddress, NodeCondition, NodeStatus, NodeSystemInfo},
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference},
    },
};
use serde_json::json;

use super::{addresses, script::PREFIX};
use crate::{controller::Plan, kinds::View, shelf::Key, workload::time};

pub const LEASES: &str = "kube-node-lease";
/// How long after its last heartbeat a node is missed.
const MISSED: i32 = 40;
const DAY: i32 = 86_400;
const VERSION: &str = "v1.36.3";

/// The only nodes that have kubelets here.
pub fn is_simulated(node: &Node) -> bool {
    says(node, "node")
}

/// Nobody is there any more.
pub fn is_dead(node: &Node) -> bool {
    says(node, "dead")
}

fn says(node: &Node, word: &str) -> bool {
    annotation(node, word) == Some("true")
}

fn annotation<'a>(node: &'a Node, word: &str) -> Option<&'a str> {
    Some(node.metadata.annotations.as_ref()?.get(&format!("{PREFIX}/{word}"))?.as_str())
}

/// When the last heartbeat that the lease promises is too long ago.
pub fn missed_at(lease: &Lease) -> Option<Timestamp> {
    let spec = lease.spec.as_ref()?;
    let wait = Duration::from_secs(u64::try_from(spec.lease_duration_seconds?).ok()?);
    spec.renew_time.as_ref()?.0.checked_add(wait).ok()
}

pub fn plan(node: &Node, view: &View, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let name = node.metadata.name.clone().unwrap_or_default();
    let lease = view.leases.get(&Key::new(LEASES, &name));
    if is_dead(node) {
        let alive = |lease: &&std::sync::Arc<Lease>| {
            lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds) != Some(MISSED)
        };
        if let Some(lease) = lease.filter(alive) {
            plan.update(&renewed(node, Some(lease), MISSED, now));
        }
        return plan;
    }
    if register(&mut plan, node, view, &name) {
        return plan;
    }
    let status = status(node, now);
    if node.status.as_ref() != Some(&status) {
        plan.status(&Node { status: Some(status), ..node.clone() });
    }
    renew(&mut plan, node, lease.map(|lease| &**lease), now);
    plan
}

/// The labels that every node has, and a range for its pods.
fn register(plan: &mut Plan, node: &Node, view: &View, name: &str) -> bool {
    let mut labels = BTreeMap::from([
        ("kubernetes.io/arch", "amd64"),
        ("kubernetes.io/hostname", name),
        ("kubernetes.io/os", "linux"),
    ]);
    labels.retain(|key, _| !node.metadata.labels.as_ref().is_some_and(|all| all.contains_key(*key)));
    let has_range = node.spec.as_ref().is_some_and(|spec| spec.pod_cidr.is_some());
    let range = if has_range { None } else { addresses::free_range(view) };
    if labels.is_empty() && range.is_none() {
        return false;
    }
    let mut body = json!({ "metadata": { "labels": labels } });
    if let (Some(range), Some(fields)) = (range, body.as_object_mut()) {
        fields.insert("spec".to_owned(), json!({ "podCIDR": range, "podCIDRs": [range] }));
    }
    plan.patch(node, body);
    true
}

fn renew(plan: &mut Plan, node: &Node, lease: Option<&Lease>, now: Timestamp) {
    let spec = lease.and_then(|lease| lease.spec.as_ref());
    let until = spec.filter(|spec| spec.lease_duration_seconds == Some(DAY + MISSED)).and_then(|spec| {
        let day = Duration::from_secs(u64::try_from(DAY).unwrap_or_default());
        spec.renew_time.as_ref()?.0.checked_add(day).ok()
    });
    match (lease, until.filter(|until| *until > now)) {
        (_, Some(until)) => plan.again_at(until),
        (Some(lease), None) => plan.update(&renewed(node, Some(lease), DAY + MISSED, now)),
        (None, None) => plan.create(&renewed(node, None, DAY + MISSED, now)),
    }
}

fn renewed(node: &Node, lease: Option<&Lease>, seconds: i32, now: Timestamp) -> Lease {
    let name = node.metadata.name.clone().unwrap_or_default();
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Node".to_owned(),
        name: name.clone(),
        uid: node.metadata.uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    };
    let metadata = ObjectMeta {
        name: Some(name.clone()),
        namespace: Some(LEASES.to_owned()),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    let spec = LeaseSpec {
        holder_identity: Some(name),
        lease_duration_seconds: Some(seconds),
        renew_time: Some(MicroTime(now)),
        ..LeaseSpec::default()
    };
    Lease { metadata: lease.map_or(metadata, |lease| lease.metadata.clone()), spec: Some(spec) }
}

fn status(node: &Node, now: Timestamp) -> NodeStatus {
    let known = node.status.clone().unwrap_or_default();
    let said = || annotation(node, "capacity").and_then(|text| serde_json::from_str(text).ok());
    let capacity = known.capacity.clone().filter(|all| !all.is_empty()).or_else(said).unwrap_or_else(usual);
    let allocatable = known.allocatable.clone().filter(|all| !all.is_empty()).unwrap_or_else(|| capacity.clone());
    let address = |kind: &str, address: String| NodeAddress { type_: kind.to_owned(), address };
    let name = node.metadata.name.clone().unwrap_or_default();
    let addresses = vec![address("InternalIP", addresses::of_node(node)), address("Hostname", name)];
    NodeStatus {
        conditions: Some(conditions(&known, now)),
        addresses: known.addresses.clone().filter(|all| !all.is_empty()).or(Some(addresses)),
        node_info: Some(system(node)),
        capacity: Some(capacity),
        allocatable: Some(allocatable),
        ..known
    }
}

fn usual() -> BTreeMap<String, Quantity> {
    let usual = [("cpu", "16"), ("memory", "64Gi"), ("pods", "110"), ("ephemeral-storage", "200Gi")];
    usual.map(|(name, text)| (name.to_owned(), Quantity(text.to_owned()))).into()
}

fn conditions(known: &NodeStatus, now: Timestamp) -> Vec<NodeCondition> {
    let mut all = known.conditions.clone().unwrap_or_default();
    let wanted = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ];
    for (kind, truth, reason, message) in wanted {
        let at = all.iter().position(|one| one.type_ == kind);
        if at.and_then(|at| all.get(at)).is_some_and(|one| one.status == truth) {
            continue;
        }
        let new = NodeCondition {
            type_: kind.to_owned(),
            status: truth.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_heartbeat_time: Some(time(now)),
            last_transition_time: Some(time(now)),
        };
        match at.and_then(|at| all.get_mut(at)) {
            Some(known) => *known = new,
            None => all.push(new),
        }
    }
    all
}

fn system(node: &Node) -> NodeSystemInfo {
    let uid = node.metadata.uid.clone().unwrap_or_default();
    NodeSystemInfo {
        architecture: "amd64".to_owned(),
        operating_system: "linux".to_owned(),
        os_image: "Bivouac simulated node".to_owned(),
        kernel_version: "simulated".to_owned(),
        container_runtime_version: "simulated://1".to_owned(),
        kubelet_version: VERSION.to_owned(),
        boot_id: uid.clone(),
        machine_id: uid.replace('-', ""),
        system_uuid: uid,
        ..NodeSystemInfo::default()
    }
}
