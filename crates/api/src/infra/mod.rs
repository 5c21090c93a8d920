// SPDX-License-Identifier: Apache-2.0
//! Group `infra.exalsius.ai`: several clusters as one object.

mod colony;

pub use colony::*;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition, JSON};
use kube::CustomResourceExt;

/// Finalizer of a colony; it holds the object until its clusters are gone.
pub const COLONY_FINALIZER: &str = "colony.infra.exalsius.ai/finalizer";

/// Label and annotation keys that clusters and their machines carry.
pub mod labels {
    /// Name of the colony, on everything made for it.
    pub const COLONY: &str = "exalsius.ai/colony";
    /// Name of the cluster within the colony.
    pub const CLUSTER: &str = "exalsius.ai/cluster";
    /// Marks a copy of a cluster's kubeconfig.
    pub const MIRRORED_KUBECONFIG: &str = "exalsius.ai/mirrored-kubeconfig";
    /// Canonical GPU model of a node.
    pub const GPU_MODEL: &str = "exalsius.ai/gpu-model";
    /// GPU maker of a node.
    pub const GPU_VENDOR: &str = "exalsius.ai/gpu-vendor";
}

/// The CRDs of this group, as derived; `crate::crds` finishes them.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![without_spec(Colony::crd())]
}

/// A colony may lack its spec; it then has no clusters. The server fills in an empty one, so that every reader sees a
/// spec, also in objects that were stored before.
fn without_spec(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let schemas = crd.spec.versions.iter_mut().filter_map(|v| v.schema.as_mut()?.open_api_v3_schema.as_mut());
    for root in schemas {
        root.required = None;
        if let Some(spec) = root.properties.as_mut().and_then(|p| p.get_mut("spec")) {
            spec.default = Some(JSON(serde_json::json!({})));
        }
    }
    crd
}
