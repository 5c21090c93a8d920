// SPDX-License-Identifier: Apache-2.0
//! GPUNodePool: what nodes a group of pods needs, and what they may cost.

use crate::crd::schema::{atomic_conditions, embedded};
use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a tenant wants.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "tgp.io",
    version = "v1",
    kind = "GPUNodePool",
    plural = "gpunodepools",
    singular = "gpunodepool",
    shortname = "gpupool",
    shortname = "gnp",
    namespaced,
    status = "GPUNodePoolStatus",
    derive = "Default",
    derive = "PartialEq",
    cel,
    doc = "GPU nodes that are bought when pods need them, and given back when they do not.",
    printcolumn(name = "Class", type_ = "string", json_path = ".spec.nodeClassRef.name"),
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Nodes", type_ = "integer", json_path = ".status.nodeCount"),
    printcolumn(name = "GPUs", type_ = "integer", json_path = ".status.gpus"),
    printcolumn(name = "$/H", type_ = "string", json_path = ".status.hourlyCost"),
    printcolumn(name = "Spent", type_ = "string", json_path = ".status.totalCost"),
    printcolumn(name = "Weight", type_ = "integer", json_path = ".spec.weight", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct GPUNodePoolSpec {
    /// The class that the machines are bought from.
    pub node_class_ref: NodeClassRef,
    /// What the nodes look like.
    pub template: NodeTemplate,
    /// When nodes are given back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disruption: Option<Disruption>,
    /// What all nodes of the pool together may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<NodePoolLimits>,
    /// Most dollars per hour for one machine, a decimal number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = (
        "self.matches('^[0-9]+([.][0-9]+)?$')",
        "maxHourlyPrice must be a decimal number of dollars, such as \"2.0\""
    ))]
    pub max_hourly_price: Option<String>,
    /// Which pool is asked first when several fit: the higher. 10 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self >= 1 && self <= 100", "weight must be between 1 and 100"))]
    pub weight: Option<i32>,
}

/// Names a GPUNodeClass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClassRef {
    /// `tgp.io`; not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// `GPUNodeClass`; not looked at.
    pub kind: String,
    /// Name of the class.
    pub name: String,
}

/// What a node looks like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeTemplate {
    /// Labels and annotations of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<NodeTemplateMetadata>,
    /// What machine is wanted, and its taints.
    pub spec: NodeTemplateSpec,
}

/// Labels and annotations of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeTemplateMetadata {
    /// Labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
}

/// What machine is wanted, and the taints of its node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeTemplateSpec {
    /// All of these must hold for a machine.
    // The bound lets the API server price the rules of an item.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub requirements: Vec<NodeRequirement>,
    /// Taints that stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "embedded::<Vec<Taint>>")]
    pub taints: Vec<Taint>,
    /// Taints that somebody else removes; the node is not initialized before they are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "embedded::<Vec<Taint>>")]
    pub startup_taints: Vec<Taint>,
}

/// A condition on one label of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)",
        "In and NotIn need at least one value"
    ),
    validation = (
        "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || size(self.values) == 0",
        "Exists and DoesNotExist take no values"
    ),
    validation = (
        "!(self.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || (has(self.values) && size(self.values) == 1 \
         && self.values[0].matches('^[0-9]+$'))",
        "Gt, Lt, Gte and Lte need exactly one whole number"
    )
)]
pub struct NodeRequirement {
    /// The label.
    pub key: String,
    /// How the label relates to the values.
    pub operator: RequirementOperator,
    /// The values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(length(max = 1024)))]
    pub values: Vec<String>,
}

/// How a label relates to the values of a requirement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum RequirementOperator {
    #[default]
    In,
    NotIn,
    Exists,
    DoesNotExist,
    Gt,
    Lt,
    Gte,
    Lte,
}

/// When nodes are given back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// Which nodes may be given back; `WhenIdle` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consolidation_policy: Option<ConsolidationPolicy>,
    /// How long a node must be quiet before it is given back: a Go duration, or `Never`. 10m when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = (
        "self.matches('^(Never|0|([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+)$')",
        "consolidateAfter must be a duration such as \"30m\" or \"1h30m\", or Never"
    ))]
    pub consolidate_after: Option<String>,
    /// How old a node may get: a Go duration, or `Never`. No limit when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = (
        "self.matches('^(Never|0|([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+)$')",
        "expireAfter must be a duration such as \"24h\", or Never"
    ))]
    pub expire_after: Option<String>,
    /// How long a drain may take before the machine goes anyway: a Go duration. 10m when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = (
        "self.matches('^(0|([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+)$')",
        "terminationGracePeriod must be a duration such as \"10m\""
    ))]
    pub termination_grace_period: Option<String>,
}

/// Which nodes may be given back. The second name of a policy is Karpenter's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ConsolidationPolicy {
    /// Nodes without work.
    #[default]
    WhenIdle,
    /// The same as `WhenIdle`.
    WhenEmpty,
    /// Nodes without work, and nodes whose work fits elsewhere for less.
    WhenUnderutilized,
    /// The same as `WhenUnderutilized`.
    WhenEmptyOrUnderutilized,
    /// No nodes.
    Never,
}

/// What all nodes of a pool together may be, counting those that are on their way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolLimits {
    /// Most of each resource, such as `nvidia.com/gpu`; `nodes` counts machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "embedded::<BTreeMap<String, Quantity>>")]
    pub resources: Option<BTreeMap<String, Quantity>>,
}

/// What is known about a pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GPUNodePoolStatus {
    /// `NodeClassReady` and `Ready`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "atomic_conditions")]
    pub conditions: Vec<Condition>,
    /// The generation that the conditions speak of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What the machines have together, counting those that are on their way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "embedded::<BTreeMap<String, Quantity>>")]
    pub resources: Option<BTreeMap<String, Quantity>>,
    /// Machines, counting those that are on their way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_count: Option<i32>,
    /// GPUs of these machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<i32>,
    /// Dollars per hour of these machines, a decimal number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hourly_cost: Option<String>,
    /// Dollars booked so far, a decimal number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_cost: Option<String>,
}
