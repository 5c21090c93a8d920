// SPDX-License-Identifier: Apache-2.0
//! Group `tenant.otterscale.io`: workspaces, the homes of teams in a cluster.

mod isolation;
mod workspace;

pub use isolation::{Egress, NetworkIsolation};
pub use workspace::{
    Member, MemberKind, PodSecurity, PodSecurityLevel, Role, Workspace, WorkspaceSpec, WorkspaceStatus,
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

/// The CRDs of this group, as derived; `crate::crds` finishes them.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![Workspace::crd()]
}
