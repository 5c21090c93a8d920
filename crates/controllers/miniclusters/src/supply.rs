// SPDX-License-Identifier: Apache-2.0
//! Nodes and pods, reduced to what decides about room. Clusters have many of them, so nothing else is kept.

use std::collections::BTreeMap;

use bivouac_core::Quantity;
use k8s_openapi::{
    api::core::v1::{Node, Pod, PodSpec, Taint},
    apimachinery::pkg::{api::resource::Quantity as Text, apis::meta::v1::ObjectMeta},
};
use kube::Resource;
use serde::Deserialize;

/// By the name of the resource. The cpu is counted in thousandths.
pub type Amounts = BTreeMap<String, i64>;

/// What a node offers.
#[derive(Clone, Debug, Default, PartialEq, Resource, Deserialize)]
#[resource(inherit = Node)]
#[serde(from = "NodeText")]
pub struct Machine {
    pub metadata: ObjectMeta,
    pub is_closed: bool,
    pub is_ready: bool,
    pub taints: Vec<Taint>,
    pub has: Amounts,
}

/// What a pod takes, and where.
#[derive(Clone, Debug, Default, PartialEq, Resource, Deserialize)]
#[resource(inherit = Pod)]
#[serde(from = "PodText")]
pub struct Occupant {
    pub metadata: ObjectMeta,
    pub node: Option<String>,
    /// False when it has ended: then it takes nothing.
    pub is_there: bool,
    pub needs: Amounts,
}

/// Keys of taints, or their beginnings, by which others announce that a machine goes away soon.
const GOING: [&str; 7] = [
    "ToBeDeletedByClusterAutoscaler",
    "aws-node-termination-handler/",
    "bivouac.dev/going",
    "cloud.google.com/impending-node-termination",
    "karpenter.sh/disrupted",
    "node.cloudprovider.kubernetes.io/shutdown",
    "node.kubernetes.io/out-of-service",
];

impl Machine {
    /// Whether somebody said that it goes away: by a notice of its cloud, or because it is not wanted any more.
    pub fn is_going(&self) -> bool {
        self.taints.iter().any(|taint| GOING.iter().any(|key| taint.key.starts_with(key)))
    }

    /// Whether it offers the same as another look at it. Heartbeats change nothing.
    pub fn offers_as(&self, other: &Self) -> bool {
        (self.is_closed, self.is_ready, &self.taints, &self.has, &self.metadata.labels)
            == (other.is_closed, other.is_ready, &other.taints, &other.has, &other.metadata.labels)
    }
}

/// Drops the metadata that nobody reads.
pub fn trim_machine(machine: &mut Machine) {
    machine.metadata.annotations = None;
    machine.metadata.owner_references = None;
}

/// The same for a pod.
pub fn trim_occupant(pod: &mut Occupant) {
    let meta = std::mem::take(&mut pod.metadata);
    pod.metadata = ObjectMeta {
        name: meta.name,
        namespace: meta.namespace,
        uid: meta.uid,
        resource_version: meta.resource_version,
        ..ObjectMeta::default()
    };
}

/// What a pod with this spec needs.
pub fn needs_of(spec: &PodSpec) -> Amounts {
    // Kubernetes types have string keys only: they always serialise.
    let text = serde_json::to_value(spec).unwrap_or_default();
    serde_json::from_value::<SpecText>(text).unwrap_or_default().needs()
}

// The parts of Kubernetes' own texts that matter.

#[derive(Deserialize)]
struct NodeText {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: NodeSpecText,
    #[serde(default)]
    status: NodeStatusText,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeSpecText {
    unschedulable: bool,
    taints: Vec<Taint>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeStatusText {
    allocatable: Option<Texts>,
    capacity: Texts,
    conditions: Vec<ConditionText>,
}

#[derive(Deserialize)]
struct ConditionText {
    #[serde(rename = "type")]
    type_: String,
    status: String,
}

#[derive(Deserialize)]
struct PodText {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: SpecText,
    #[serde(default)]
    status: PodStatusText,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodStatusText {
    phase: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SpecText {
    node_name: Option<String>,
    containers: Vec<ContainerText>,
    init_containers: Vec<ContainerText>,
    resources: ResourcesText,
    overhead: Texts,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ContainerText {
    restart_policy: String,
    resources: ResourcesText,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResourcesText {
    limits: Texts,
    requests: Texts,
}

type Texts = BTreeMap<String, Text>;

impl From<NodeText> for Machine {
    fn from(node: NodeText) -> Self {
        let is_ready = |one: &ConditionText| one.type_ == "Ready" && one.status == "True";
        Self {
            metadata: node.metadata,
            is_closed: node.spec.unschedulable,
            is_ready: node.status.conditions.iter().any(is_ready),
            taints: node.spec.taints,
            has: read(node.status.allocatable.as_ref().unwrap_or(&node.status.capacity), 0),
        }
    }
}

impl From<PodText> for Occupant {
    fn from(pod: PodText) -> Self {
        Self {
            metadata: pod.metadata,
            needs: pod.spec.needs(),
            node: pod.spec.node_name,
            is_there: !["Succeeded", "Failed"].contains(&pod.status.phase.as_str()),
        }
    }
}

impl SpecText {
    /// Containers run together; init containers before them, one by one, except those that stay. Then the pod itself is
    /// one of the pods that a node can have.
    fn needs(&self) -> Amounts {
        let (mut total, mut peak, mut staying) = (Amounts::new(), Amounts::new(), Amounts::new());
        self.containers.iter().for_each(|container| add(&mut total, &container.resources.asks()));
        for container in &self.init_containers {
            let mut then = staying.clone();
            add(&mut then, &container.resources.asks());
            if container.restart_policy == "Always" {
                staying.clone_from(&then);
            }
            raise(&mut peak, &then);
        }
        add(&mut total, &staying);
        raise(&mut total, &peak);
        total.extend(read(&self.resources.requests, i64::MAX));
        add(&mut total, &read(&self.overhead, i64::MAX));
        total.insert("pods".to_owned(), 1);
        total
    }
}

impl ResourcesText {
    /// A limit without a request is a request.
    fn asks(&self) -> Amounts {
        let mut asks = read(&self.limits, i64::MAX);
        asks.extend(read(&self.requests, i64::MAX));
        asks
    }
}

/// What cannot be read counts as `otherwise`: a need as endless, a supply as nothing.
fn read(texts: &Texts, otherwise: i64) -> Amounts {
    let amount = |name: &str, text: &Text| {
        let quantity = text.0.parse::<Quantity>().ok()?;
        if name == "cpu" { quantity.milli_value() } else { quantity.value() }
    };
    texts.iter().map(|(name, text)| (name.clone(), amount(name, text).unwrap_or(otherwise))).collect()
}

pub fn add(total: &mut Amounts, more: &Amounts) {
    for (name, more) in more {
        let known = total.entry(name.clone()).or_default();
        *known = known.saturating_add(*more);
    }
}

fn raise(total: &mut Amounts, least: &Amounts) {
    for (name, least) in least {
        let known = total.entry(name.clone()).or_default();
        *known = (*known).max(*least);
    }
}
