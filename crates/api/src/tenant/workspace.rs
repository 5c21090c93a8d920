// SPDX-License-Identifier: Apache-2.0
//! Workspace: one namespace, the people in it and the limits on it.

use crate::{
    crd::schema::{conditions, embedded, embedded_atomic},
    resource_ref::ResourceRef,
};
use k8s_openapi::{
    api::core::v1::{LimitRangeSpec, ResourceQuotaSpec},
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::NetworkIsolation;

/// What a workspace should be.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[kube(
    group = "tenant.otterscale.io",
    version = "v1alpha1",
    kind = "Workspace",
    plural = "workspaces",
    singular = "workspace",
    category = "otterscale",
    status = "WorkspaceStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "The home of a team: a namespace with its members, limits and network isolation.",
    cel,
    printcolumn(name = "Namespace", type_ = "string", json_path = ".status.namespaceRef.name"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
// A rule on the field alone does not see it come or go.
#[x_kube(validation = (
    "has(self.namespace) == has(oldSelf.namespace)",
    "namespace is immutable: it cannot be set or removed later"
))]
pub struct WorkspaceSpec {
    /// Namespace that belongs to the workspace. It is made, and deleted with the workspace. When empty, a name is
    /// chosen. It never changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = "^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    #[x_kube(
        validation = ("self == oldSelf", "namespace is immutable"),
        validation = (
            "!(self in ['default','kube-system','kube-public','kube-node-lease','otterscale-system'])",
            "namespace is reserved and cannot be used for a workspace"
        )
    )]
    pub namespace: Option<String>,
    /// Who may work here. At least one member is an admin.
    #[schemars(length(min = 1, max = 1024))]
    #[x_kube(
        merge_strategy = ListMerge::Atomic,
        validation = ("self.exists(u, u.role == 'admin')", "at least one workspace member must have role 'admin'")
    )]
    pub members: Vec<Member>,
    /// How much the namespace may use in sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "resource_quota")]
    pub resource_quota: Option<ResourceQuotaSpec>,
    /// Sizes of single pods and containers: defaults and bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "embedded::<LimitRangeSpec>")]
    pub limit_range: Option<LimitRangeSpec>,
    /// Who may talk to the pods of the namespace, and to whom they may talk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_isolation: Option<NetworkIsolation>,
    /// Pod security standards of the namespace. Absent: the cluster's own setting holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_security: Option<PodSecurity>,
    /// Rancher project of the namespace, as `<cluster-id>:<project-id>`. It never changes.
    #[serde(default, rename = "rancherProjectID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 507), regex(pattern = "^[a-z0-9][-.a-z0-9]*:[a-z0-9][-.a-z0-9]*$"))]
    #[x_kube(validation = ("self == oldSelf", "rancherProjectID is immutable"))]
    pub rancher_project_id: Option<String>,
    /// Let the licence injector add its files to the namespace's pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub license_injection: Option<bool>,
}

/// One member of a workspace.
#[derive(Clone, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "!has(self.kind) || self.kind == 'ServiceAccount' || !has(self.serviceAccount) || !self.serviceAccount",
        "serviceAccount can only be true when kind is ServiceAccount or absent"
    ),
    validation = (
        "!has(self.kind) || self.kind != 'ServiceAccount' || self.subject.matches('^system:serviceaccount:[^:]+:[^:]+$')",
        "the subject of a ServiceAccount is written system:serviceaccount:<namespace>:<name>"
    )
)]
pub struct Member {
    /// What the member may do.
    pub role: Role,
    /// Name of the member as the API server knows it: user name, group name, or
    /// `system:serviceaccount:<namespace>:<name>`.
    #[schemars(length(min = 1, max = 253))]
    pub subject: String,
    /// What the subject is. Absent: a user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<MemberKind>,
    /// Name to show to people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Name of the member at the image registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub username: Option<String>,
    /// The subject is the full name of a service account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<bool>,
}

/// What a member may do; the names are those of the cluster roles that are bound.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Admin,
    Edit,
    #[default]
    View,
}

/// What a subject is.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
pub enum MemberKind {
    #[default]
    User,
    Group,
    ServiceAccount,
}

/// Pod security standards of a namespace.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct PodSecurity {
    /// Pods that break this level are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforce: Option<PodSecurityLevel>,
    /// Pods that break this level are let in with a warning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warn: Option<PodSecurityLevel>,
    /// Pods that break this level are written to the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit: Option<PodSecurityLevel>,
}

/// A level of the pod security standards, loosest first.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PodSecurityLevel {
    Privileged,
    Baseline,
    Restricted,
}

/// What was found to exist for the workspace.
#[derive(Clone, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceStatus {
    /// Generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_ref: Option<ResourceRef>,
    /// The resource quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_quota_ref: Option<ResourceRef>,
    /// The limit range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_range_ref: Option<ResourceRef>,
    /// The role bindings, one for each role that a member has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub role_binding_refs: Vec<ResourceRef>,
    /// The network policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_policy_ref: Option<ResourceRef>,
    /// The Istio peer authentication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_authentication_ref: Option<ResourceRef>,
    /// The Istio authorization policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization_policy_ref: Option<ResourceRef>,
    /// The config map with registry settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<ResourceRef>,
    /// The secret with which images are pulled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_secret_ref: Option<ResourceRef>,
    /// The Helm repository of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helm_repository_ref: Option<ResourceRef>,
    /// The service account that deploys in the namespace on the members' behalf.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_ref: Option<ResourceRef>,
    /// How the workspace is doing. `Ready` says whether everything above is in place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

fn resource_quota(generator: &mut SchemaGenerator) -> Schema {
    embedded_atomic::<ResourceQuotaSpec>(generator, &["/properties/scopeSelector"])
}
