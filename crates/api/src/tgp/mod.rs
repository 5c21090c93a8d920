// SPDX-License-Identifier: Apache-2.0
//! Group `tgp.io`: GPU machines bought on demand.
//!
//! A class says which clouds may be used and how machines join. A pool says what nodes its pods need and what they may
//! cost. A claim is one machine: it is written before money is spent, and goes when the cloud confirms the end.

mod claim;
mod claim_status;
mod class;
mod pool;
mod tailscale;
mod talos;

pub use claim::*;
pub use claim_status::*;
pub use class::*;
pub use pool::*;
pub use tailscale::*;
pub use talos::*;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Finalizer of a class; it holds the object while pools use it.
pub const CLASS_FINALIZER: &str = "tgp.io/gpunodeclass-finalizer";
/// Finalizer of a pool; it holds the object until its claims are gone.
pub const POOL_FINALIZER: &str = "tgp.io/gpunodepool-finalizer";
/// Finalizer of a claim; it holds the object until the cloud confirms that the machine is gone.
pub const CLAIM_FINALIZER: &str = "tgp.io/gpunodeclaim-finalizer";

/// Label and annotation keys.
pub mod labels {
    /// GPU model; on nodes, in requirements and in pod selectors.
    pub const GPU_TYPE: &str = "tgp.io/gpu-type";
    /// Number of GPUs of a node.
    pub const GPU_COUNT: &str = "tgp.io/gpu-count";
    /// Memory of one GPU in GiB.
    pub const GPU_MEMORY: &str = "tgp.io/gpu-memory";
    /// Maker of the GPUs.
    pub const GPU_VENDOR: &str = "tgp.io/gpu-vendor";
    /// The cloud.
    pub const PROVIDER: &str = "tgp.io/provider";
    /// Region of the cloud.
    pub const REGION: &str = "tgp.io/region";
    /// `"true"` on spot machines.
    pub const SPOT: &str = "tgp.io/spot";
    /// How the machine is paid for; see [`super::CapacityType`].
    pub const CAPACITY_TYPE: &str = "tgp.io/capacity-type";
    /// `"true"` on every node that we bought.
    pub const PROVISIONED: &str = "tgp.io/provisioned";
    /// Name of the pool; on nodes, machines and claims.
    pub const NODE_POOL: &str = "tgp.io/nodepool";
    /// Namespace of the pool; two pools may share a name.
    pub const NODE_POOL_NAMESPACE: &str = "tgp.io/nodepool-namespace";
    /// Name of the class; on machines and claims.
    pub const NODE_CLASS: &str = "tgp.io/nodeclass";
    /// Name of the claim; on nodes.
    pub const NODE_CLAIM: &str = "tgp.io/nodeclaim";
    /// The cloud's id of the machine; label where it fits, annotation always.
    pub const INSTANCE_ID: &str = "tgp.io/instance-id";
    /// Annotation on nodes: when the machine was bought, RFC 3339.
    pub const CREATED_AT: &str = "tgp.io/created-at";
    /// Annotation on pods: maker of the GPU that is wanted.
    pub const VENDOR: &str = "tgp.io/vendor";
    /// Annotation on pods: what the work is, as free text.
    pub const WORKLOAD: &str = "tgp.io/workload";
    /// Annotation on pods and nodes: leave this node alone.
    pub const DO_NOT_DISRUPT: &str = "tgp.io/do-not-disrupt";
}

/// One key of a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretKeyRef {
    /// Name of the Secret.
    pub name: String,
    /// Key in its data.
    pub key: String,
    /// Its namespace; the operator's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// The CRDs of this group, as derived; `crate::crds` finishes them.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![GPUNodeClass::crd(), GPUNodePool::crd(), GPUNodeClaim::crd()]
}
