// SPDX-License-Identifier: Apache-2.0
//! GPUNodeClaim: the durable intent to hold one machine.
//!
//! The order of writes is what keeps money safe:
//!
//! 1. The plan picks an offer and creates the claim with our finalizer. All of the spec is decided here.
//! 2. `status.launch` names the attempt, the machine and the token. Only then is the cloud called.
//! 3. The cloud's answer goes to `status.providerID` at once. A crash before that is healed by listing the cloud for
//!    the machine's name.
//! 4. Deletion terminates the machine and counts in `status.termination` how often the cloud said that it is gone.
//!    The ledger is closed, and the finalizer goes last.
//!
//! A pool is namespaced and a claim is not, so a pool cannot own it in the Kubernetes sense. Labels and `poolRef` tie
//! them, and the pool's finalizer waits for its claims.

use super::{GPUNodeClaimStatus, NodeTemplate, SecretKeyRef};
use crate::crd::schema::embedded;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What was decided about one machine. The nodes controller writes all of it when it creates the claim. People may
/// change `expireAfter` and `terminationGracePeriod`; nobody may change the rest.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "tgp.io",
    version = "v1",
    kind = "GPUNodeClaim",
    plural = "gpunodeclaims",
    singular = "gpunodeclaim",
    shortname = "gpuclaim",
    shortname = "gnc",
    status = "GPUNodeClaimStatus",
    derive = "PartialEq",
    cel,
    doc = "The durable intent to hold one machine. It exists before the machine does and goes after it.",
    validation = Rule::new("size(self.metadata.name) <= 63")
        .message("metadata.name may have at most 63 characters: it is a label value on the node"),
    validation = Rule::new("!has(oldSelf.status) || has(self.status)")
        .message("status stays: it is the record of the machine and what it costs"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Cloud", type_ = "string", json_path = ".spec.offer.provider"),
    printcolumn(name = "GPU", type_ = "string", json_path = ".spec.offer.gpu.type"),
    printcolumn(name = "GPUs", type_ = "integer", json_path = ".spec.offer.gpu.count"),
    printcolumn(name = "$/H", type_ = "string", json_path = ".spec.price.hourly"),
    printcolumn(name = "Spent", type_ = "string", json_path = ".status.ledger.spent"),
    printcolumn(name = "Node", type_ = "string", json_path = ".status.nodeName"),
    printcolumn(name = "Pool", type_ = "string", json_path = ".spec.poolRef.name", priority = 1),
    printcolumn(name = "Region", type_ = "string", json_path = ".spec.offer.region", priority = 1),
    printcolumn(name = "Machine", type_ = "string", json_path = ".spec.offer.machineType", priority = 1),
    printcolumn(name = "Lease", type_ = "string", json_path = ".status.lease.expiresAt", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct GPUNodeClaimSpec {
    /// The pool that wanted the machine, and pays.
    #[x_kube(validation = ("self == oldSelf", "poolRef is immutable; delete the claim and let the pool make another"))]
    pub pool_ref: ClaimPoolRef,
    /// The class that allowed it.
    #[x_kube(validation = ("self == oldSelf", "nodeClassRef is immutable; delete the claim and let the pool make another"))]
    pub node_class_ref: ClaimClassRef,
    /// The credential that bought the machine, and must be there to end it, whatever the class says by then.
    #[x_kube(validation = ("self == oldSelf", "credentialsRef is immutable: the machine can only be ended with it"))]
    pub credentials_ref: SecretKeyRef,
    /// What is bought.
    #[x_kube(validation = ("self == oldSelf", "offer is immutable; another offer needs another claim"))]
    pub offer: ClaimOffer,
    /// What it costs.
    #[x_kube(validation = ("self == oldSelf", "price is immutable; another price needs another claim"))]
    pub price: ClaimPrice,
    /// Which try this is for the same demand, from 1. The next offer gets a new claim with the next number.
    #[schemars(range(min = 1))]
    #[x_kube(validation = ("self == oldSelf", "attempt is immutable; another attempt needs another claim"))]
    pub attempt: i32,
    /// What the node looks like, copied from the pool so that a change there does not reach this machine.
    #[x_kube(validation = ("self == oldSelf", "template is immutable; change the pool, and its claims are replaced"))]
    pub template: NodeTemplate,
    /// How old the machine may get, from the pool: a Go duration, or `Never`. May be changed to end it sooner or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = (
        "self.matches('^(Never|([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+)$')",
        "expireAfter must be a duration such as \"24h\", or Never"
    ))]
    pub expire_after: Option<String>,
    /// How long the drain may take, from the pool: a Go duration. May be changed to end it sooner or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    #[x_kube(validation = (
        "self.matches('^(0|([0-9]+([.][0-9]+)?(ns|us|ms|s|m|h))+)$')",
        "terminationGracePeriod must be a duration such as \"10m\""
    ))]
    pub termination_grace_period: Option<String>,
}

/// Names the pool of a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimPoolRef {
    /// Namespace of the pool.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Name of the pool.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// UID of the pool. A pool of the same name made later does not inherit the machine.
    #[schemars(length(min = 1, max = 64))]
    pub uid: String,
    /// Hash of the pool's template when the claim was made. Another hash today means drift.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub template_hash: Option<String>,
}

/// Names the class of a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimClassRef {
    /// Name of the class.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// UID of the class.
    #[schemars(length(min = 1, max = 64))]
    pub uid: String,
    /// Hash of what the class says about machines when the claim was made. Another hash today means drift.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub spec_hash: Option<String>,
}

/// What is bought: one machine type in one place, under one way of paying.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimOffer {
    /// The cloud, by the name that the class uses.
    #[schemars(length(min = 1, max = 63))]
    pub provider: String,
    /// Region, by the cloud's own name.
    #[schemars(length(min = 1, max = 253))]
    pub region: String,
    /// Zone, where the cloud has zones and the plan chose one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub zone: Option<String>,
    /// Machine type, by the cloud's own name.
    #[schemars(length(min = 1, max = 253))]
    pub machine_type: String,
    /// The cloud's id of this very offer, on markets where each machine is its own offer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub offer_id: Option<String>,
    /// How the machine is paid for.
    pub capacity_type: CapacityType,
    /// The GPUs.
    pub gpu: ClaimGpu,
    /// What a node on this machine should offer to pods. Limits and the packing of pods count it while the machine is
    /// on its way, and the node is not initialized before it shows all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "embedded::<BTreeMap<String, Quantity>>")]
    pub resources: Option<BTreeMap<String, Quantity>>,
}

/// How a machine is paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CapacityType {
    /// At the list price, until we end it.
    OnDemand,
    /// Cheaper, until the cloud takes it back.
    Spot,
    /// Paid for in advance.
    Reserved,
}

/// The GPUs of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimGpu {
    /// Canonical model.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 63))]
    pub model: String,
    /// How many.
    #[schemars(range(min = 0, max = 1024))]
    pub count: i32,
    /// Maker, lower case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub vendor: Option<String>,
    /// Memory of one GPU.
    #[serde(default, rename = "memoryGiB", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub memory_gib: Option<i32>,
}

/// What a machine costs. All amounts are dollars, as decimal numbers, so that no digit is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "!has(self.max) || double(self.hourly) <= double(self.max)",
    "price.hourly is above price.max"
))]
pub struct ClaimPrice {
    /// Price per hour of the offer. The limits count it from the moment the claim exists.
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[0-9]+(\.[0-9]+)?$"))]
    pub hourly: String,
    /// Most that the pool pays for one machine. A machine that turns out to cost more is ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32), regex(pattern = r"^[0-9]+(\.[0-9]+)?$"))]
    pub max: Option<String>,
    /// Hash of the price table that the choice was made from, so that the choice can be explained later.
    #[schemars(length(min = 1, max = 128))]
    pub snapshot: String,
}
