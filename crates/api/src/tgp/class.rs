// SPDX-License-Identifier: Apache-2.0
//! GPUNodeClass: which clouds may be used, and how machines join.

use super::{SecretKeyRef, TailscaleConfig, TalosConfig};
use crate::crd::schema::{atomic_conditions, embedded};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What an administrator allows. This is the union of all generations of the kind.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "tgp.io",
    version = "v1",
    kind = "GPUNodeClass",
    plural = "gpunodeclasses",
    singular = "gpunodeclass",
    shortname = "gpuclass",
    status = "GPUNodeClassStatus",
    derive = "Default",
    derive = "PartialEq",
    cel,
    doc = "Which clouds may be used for GPU machines, and how the machines join.",
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Nodes", type_ = "integer", json_path = ".status.activeNodes"),
    printcolumn(name = "GPUs", type_ = "integer", json_path = ".status.gpus"),
    printcolumn(name = "$/H", type_ = "string", json_path = ".status.hourlyCost"),
    printcolumn(name = "Spent", type_ = "string", json_path = ".status.totalCost"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct GPUNodeClassSpec {
    /// The clouds. Their order has no meaning; `priority` has.
    pub providers: Vec<ProviderConfig>,
    /// Talos for all providers that have none of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub talos_config: Option<TalosConfig>,
    /// The tailnet that the machines join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tailscale_config: Option<TailscaleConfig>,
    /// What every machine must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_requirements: Option<InstanceRequirements>,
    /// What all machines of the class together may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<NodeClassLimits>,
    /// Tags for every machine at the cloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<BTreeMap<String, String>>,
}

/// One cloud account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderConfig {
    /// The cloud, such as `runpod` or `gcp`. Any name passes here, so that a new cloud needs no new CRD.
    pub name: String,
    /// Handicap: a price counts as `price × (1 + priority / 10)`. Lower is preferred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Where the credential is.
    pub credentials_ref: SecretKeyRef,
    /// Whether machines may be bought here; true when absent. Machines that exist are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The only regions that may be used; all when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<String>,
    /// Talos for this cloud, in place of the class's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub talos_config: Option<TalosConfig>,
}

/// What every machine of a class must have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceRequirements {
    /// GPU models; any when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpu_types: Vec<String>,
    /// Regions that are preferred.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<String>,
    /// Whether machines may be bought that the cloud can take back; false when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot_allowed: Option<bool>,
    /// Fewest CPUs.
    #[serde(default, rename = "minVCPU", skip_serializing_if = "Option::is_none")]
    pub min_vcpu: Option<i32>,
    /// Least main memory.
    #[serde(default, rename = "minMemoryGiB", skip_serializing_if = "Option::is_none")]
    pub min_memory_gib: Option<i32>,
    /// Least memory of one GPU.
    #[serde(default, rename = "minGPUMemoryGiB", skip_serializing_if = "Option::is_none")]
    pub min_gpu_memory_gib: Option<i32>,
}

/// What all machines of a class together may be, counting those that are on their way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClassLimits {
    /// Most machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self >= 1", "maxNodes must be at least 1; use spec.providers[].enabled to stop buying"))]
    pub max_nodes: Option<i32>,
    /// Most dollars per hour, a decimal number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = (
        "self.matches('^[0-9]+([.][0-9]+)?$')",
        "maxHourlyCost must be a decimal number of dollars, such as \"50.0\""
    ))]
    pub max_hourly_cost: Option<String>,
    /// Most of each resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "embedded::<BTreeMap<String, Quantity>>")]
    pub resources: Option<BTreeMap<String, Quantity>>,
}

/// What is known about a class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GPUNodeClassStatus {
    /// `Ready`, `ProviderValidation`, `<provider>Ready` and `DeletionBlocked`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "atomic_conditions")]
    pub conditions: Vec<Condition>,
    /// The generation that the conditions speak of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Machines of this class, counting those that are on their way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_nodes: Option<i32>,
    /// GPUs of these machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<i32>,
    /// Dollars per hour of these machines, a decimal number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hourly_cost: Option<String>,
    /// Dollars booked so far, a decimal number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_cost: Option<String>,
    /// State of each cloud account, by provider name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub providers: Option<BTreeMap<String, ProviderStatus>>,
    /// What each cloud offers, by provider name.
    #[serde(default, rename = "availableGPUs", skip_serializing_if = "Option::is_none")]
    pub available_gpus: Option<BTreeMap<String, Vec<GPUAvailability>>>,
    /// When the offers were last read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_inventory_update: Option<Time>,
    /// When they will be read again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_inventory_update: Option<Time>,
}

/// State of one cloud account.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProviderStatus {
    /// Whether the cloud took the credential.
    pub credentials_valid: bool,
    /// When it was last tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_credential_check: Option<Time>,
    /// What went wrong, without the credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When prices were last read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_pricing_update: Option<Time>,
    /// Whether offers are read from this cloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inventory_enabled: Option<bool>,
}

/// One kind of GPU that a cloud offers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GPUAvailability {
    /// Model.
    pub gpu_type: String,
    /// Regions that have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<String>,
    /// Lowest price on demand in dollars, a decimal number.
    pub price_per_hour: String,
    /// Memory of one GPU in GB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<i64>,
    /// Whether it can be bought now.
    pub available: bool,
    /// How many can be bought, where the cloud says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_count: Option<i32>,
    /// Lowest spot price in dollars, a decimal number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot_price: Option<String>,
    /// When the cloud said this.
    pub last_updated: Time,
}
