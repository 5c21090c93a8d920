// SPDX-License-Identifier: Apache-2.0
//! Group `workspaces.exalsius.ai`: ready-made environments that people start on a cluster of a colony.

mod class;
mod deployment;
mod resources;
mod status;

pub use class::*;
pub use deployment::*;
pub use resources::*;
pub use status::*;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

/// Finalizer of a deployment; it holds the object until its routes and release are gone.
pub const DEPLOYMENT_FINALIZER: &str = "workspaces.exalsius.ai/deployment";

/// Label keys of what is made for workspaces.
pub mod labels {
    /// Name of the WorkspaceDeployment.
    pub const WORKSPACE: &str = "workspaces.exalsius.ai/workspace";
    /// `prerequisite` on what several workspaces share.
    pub const ROLE: &str = "workspaces.exalsius.ai/role";
    /// Name of the ClusterDeployment.
    pub const CLUSTER_DEPLOYMENT: &str = "workspaces.exalsius.ai/cluster-deployment";
    /// Name of the ServiceTemplate, or of the chart on catalog objects.
    pub const TEMPLATE: &str = "workspaces.exalsius.ai/template";
    /// Version of a catalog object.
    pub const VERSION: &str = "workspaces.exalsius.ai/version";
}

/// Condition types of a WorkspaceDeployment.
pub mod conditions {
    /// The class exists.
    pub const CLASS_RESOLVED: &str = "ClassResolved";
    /// The target cluster exists.
    pub const CLUSTER_DEPLOYMENT_RESOLVED: &str = "ClusterDeploymentResolved";
    /// The cluster has room. Information only.
    pub const FEASIBLE: &str = "Feasible";
    /// What the class needs is installed.
    pub const PREREQUISITES_MET: &str = "PrerequisitesMet";
    /// Resources were written into the Helm values.
    pub const RESOURCES_INJECTED: &str = "ResourcesInjected";
    /// The Helm release is deployed.
    pub const HELM_RELEASE_READY: &str = "HelmReleaseReady";
    /// The workspace runs.
    pub const READY: &str = "Ready";
    /// People can reach the workspace.
    pub const ROUTES_READY: &str = "RoutesReady";
}

/// The CRDs of this group, as derived; `crate::crds` finishes them.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![WorkspaceClass::crd(), WorkspaceDeployment::crd()]
}
