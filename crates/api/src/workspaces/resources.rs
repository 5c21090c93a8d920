// SPDX-License-Identifier: Apache-2.0
//! What a workspace needs; the same shape in class, deployment and status.

use crate::crd::schema::embedded;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Resources of a workspace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceResourceSpec {
    /// Number of replicas.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub replicas: i32,
    /// What each replica gets.
    pub per_replica: ReplicaResources,
}

impl Default for WorkspaceResourceSpec {
    fn default() -> Self {
        Self { replicas: one(), per_replica: ReplicaResources::default() }
    }
}

fn one() -> i32 {
    1
}

/// Resources of one replica.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaResources {
    /// CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "embedded::<Quantity>")]
    pub cpu: Option<Quantity>,
    /// Main memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "embedded::<Quantity>")]
    pub memory: Option<Quantity>,
    /// Disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "embedded::<Quantity>")]
    pub storage: Option<Quantity>,
    /// Whole GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub gpu_count: Option<i32>,
    /// Maker of the GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_vendor: Option<GpuVendor>,
    /// Exact canonical model. Only a deployment may choose it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<String>,
    /// Exact node labels in place of a model. Only a deployment may choose them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_node_selector: Option<BTreeMap<String, String>>,
}

/// Maker of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum GpuVendor {
    #[serde(rename = "NVIDIA")]
    Nvidia,
    #[serde(rename = "AMD")]
    Amd,
}

/// A sum of resources over all replicas or all nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTotals {
    /// CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "embedded::<Quantity>")]
    pub cpu: Option<Quantity>,
    /// Main memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "embedded::<Quantity>")]
    pub memory: Option<Quantity>,
    /// Disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "embedded::<Quantity>")]
    pub storage: Option<Quantity>,
    /// Whole GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_count: Option<i32>,
    /// Maker of the GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_vendor: Option<GpuVendor>,
    /// Model of the GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<String>,
}
