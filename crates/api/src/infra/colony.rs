// SPDX-License-Identifier: Apache-2.0
//! Colony: several clusters, on several clouds or on premises, as one object.

use crate::crd::schema::{any_object, atomic_conditions, embedded_atomic};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The clusters of a colony.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "infra.exalsius.ai",
    version = "v1",
    kind = "Colony",
    plural = "colonies",
    singular = "colony",
    namespaced,
    status = "ColonyStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Several clusters, on several clouds or on premises, as one object.",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Ready Clusters", type_ = "integer", json_path = ".status.readyClusters"),
    printcolumn(name = "Total Clusters", type_ = "integer", json_path = ".status.totalClusters"),
    printcolumn(name = "GPUs", type_ = "integer", json_path = ".status.gpus"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ColonySpec {
    /// The clusters. Each becomes a ClusterDeployment named `<colony>-<clusterName>`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub colony_clusters: Vec<ColonyCluster>,
}

/// One cluster of a colony.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ColonyCluster {
    /// Name within the colony.
    pub cluster_name: String,
    /// Spec of the ClusterDeployment, passed on as it is. An entry without it is skipped and not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub cluster_deployment_spec: Option<Map<String, Value>>,
    /// Labels for the ClusterDeployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_labels: Option<BTreeMap<String, String>>,
    /// Annotations for the ClusterDeployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_annotations: Option<BTreeMap<String, String>>,
}

/// What is known about a colony.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ColonyStatus {
    /// `Provisioning`, `Ready`, `Degraded` or `Deleting`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// `ClustersReady`, with the reason when it is not so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "atomic_conditions")]
    pub conditions: Vec<Condition>,
    /// The ClusterDeployments of this colony.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "atomic_references")]
    pub cluster_deployment_refs: Vec<ObjectReference>,
    /// Clusters that have a ClusterDeployment spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_clusters: Option<i32>,
    /// Clusters that are ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_clusters: Option<i32>,
    /// GPUs of all clusters together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<i64>,
    /// What GPUs each cluster has, by ClusterDeployment name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_inventory: Option<BTreeMap<String, ClusterGpuInventory>>,
}

/// GPUs of one cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterGpuInventory {
    /// When the cluster last answered. An old time means that it cannot be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<Time>,
    /// One entry per kind of GPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offerings: Vec<GpuOffering>,
}

/// One kind of GPU in a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GpuOffering {
    /// Canonical model name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Node labels that select this model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<BTreeMap<String, String>>,
    /// Maker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// Extended resource that pods ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
    /// GPUs on all nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<i64>,
    /// Nodes that have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<i32>,
    /// Other labels that these nodes share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
}

/// References are replaced as a whole.
fn atomic_references(generator: &mut SchemaGenerator) -> Schema {
    embedded_atomic::<Vec<ObjectReference>>(generator, &["/items"])
}
