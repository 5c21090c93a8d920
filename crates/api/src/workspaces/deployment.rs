// SPDX-License-Identifier: Apache-2.0
//! WorkspaceDeployment: one workspace of one person on one cluster.

use super::{WorkspaceDeploymentStatus, WorkspaceResourceSpec};
use crate::crd::schema::any_value;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What somebody wants to run, and where.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "workspaces.exalsius.ai",
    version = "v1",
    kind = "WorkspaceDeployment",
    plural = "workspacedeployments",
    singular = "workspacedeployment",
    shortname = "wsd",
    namespaced,
    status = "WorkspaceDeploymentStatus",
    derive = "Default",
    derive = "PartialEq",
    cel,
    doc = "One workspace on one cluster.",
    validation = Rule::new("size(self.metadata.name) <= 60")
        .message("metadata.name may have at most 60 characters: the namespace ws-<name> is made from it"),
    validation = Rule::new("self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')")
        .message("metadata.name must be a lower-case DNS-1123 label: it becomes a namespace and a hostname"),
    printcolumn(name = "Class", type_ = "string", json_path = ".spec.workspaceClassRef"),
    printcolumn(name = "Cluster", type_ = "string", json_path = ".spec.clusterDeploymentRef.name"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "GPUs",
        type_ = "integer",
        json_path = ".status.resolvedResources.perReplica.gpuCount",
        priority = 1
    ),
    printcolumn(name = "URL", type_ = "string", json_path = ".status.access[0].url"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceDeploymentSpec {
    /// Name of the WorkspaceClass.
    #[schemars(length(min = 1, max = 253))]
    pub workspace_class_ref: String,
    /// The cluster to run on.
    pub cluster_deployment_ref: ClusterDeploymentRef,
    /// Resources in place of the class's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<WorkspaceResourceSpec>,
    /// Helm values, laid over those of the class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_value")]
    pub values: Option<Value>,
    /// Leave everything as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
}

/// Names a ClusterDeployment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterDeploymentRef {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its namespace.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
}
