// SPDX-License-Identifier: Apache-2.0
//! WorkspaceClass: a kind of workspace that people can start.

use super::WorkspaceResourceSpec;
use crate::crd::schema::{any_value, conditions};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What an administrator offers.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "workspaces.exalsius.ai",
    version = "v1",
    kind = "WorkspaceClass",
    plural = "workspaceclasses",
    singular = "workspaceclass",
    shortname = "wsc",
    status = "WorkspaceClassStatus",
    derive = "Default",
    derive = "PartialEq",
    cel,
    doc = "A kind of workspace that people can start.",
    printcolumn(name = "Display Name", type_ = "string", json_path = ".spec.displayName"),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".spec.defaultResources.replicas"),
    printcolumn(name = "GPUs", type_ = "integer", json_path = ".spec.defaultResources.perReplica.gpuCount"),
    printcolumn(name = "ServiceTemplate", type_ = "string", json_path = ".spec.serviceTemplate.name"),
    printcolumn(name = "Valid", type_ = "boolean", json_path = ".status.valid"),
    printcolumn(name = "ValidationError", type_ = "string", json_path = ".status.validationError", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(
    validation = (
        "!has(self.defaultResources.perReplica.gpuType)",
        "set gpuType on the WorkspaceDeployment: which models exist depends on the cluster"
    ),
    validation = (
        "!has(self.defaultResources.perReplica.gpuNodeSelector)",
        "set gpuNodeSelector on the WorkspaceDeployment: node labels depend on the cluster"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceClassSpec {
    /// Name that people see.
    #[schemars(length(min = 1))]
    pub display_name: String,
    /// Longer text for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The chart that is installed.
    pub service_template: ServiceTemplateRef,
    /// Resources of a deployment that asks for none.
    pub default_resources: WorkspaceResourceSpec,
    /// What must be on the cluster first. Several workspaces share it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prerequisites: Vec<PrerequisiteSpec>,
    /// How people reach the workspace. The first HTTP endpoint is the main one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub access_endpoints: Vec<AccessEndpoint>,
    /// Values that a client should ask people for. The operator does not look at them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["helmValuePath".into()]))]
    pub user_facing_config: Vec<UserFacingConfigField>,
    /// How long a release may take, as a Go duration; 15m when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deploy_timeout: Option<String>,
    /// The same for each prerequisite; `deployTimeout` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prerequisite_deploy_timeout: Option<String>,
    /// Helm values that a deployment's own values are laid over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_value")]
    pub default_values: Option<Value>,
    /// Where in the Helm values the resources go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_injection: Option<ResourceInjection>,
}

/// Names a ServiceTemplate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceTemplateRef {
    /// Name of the template.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its namespace; `kcm-system` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Kept for the wire. Ignored on a class, refused on a prerequisite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version_constraint: Option<String>,
}

/// Something that must be on the cluster before the workspace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrerequisiteSpec {
    /// The chart that is installed.
    pub service_template: ServiceTemplateRef,
    /// Namespace to install into. Absent is not the same as `default`: a namespace named here is a claim on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub namespace: Option<String>,
    /// Helm values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_value")]
    pub values: Option<Value>,
}

/// One way to reach a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessEndpoint {
    /// Name of the endpoint.
    #[schemars(length(min = 1, max = 63), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// What is spoken.
    pub protocol: AccessProtocol,
    /// Port of the Service.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// The Service, when it is not the one named by convention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub service_name: Option<String>,
    /// Text for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Protocol of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum AccessProtocol {
    Http,
    Tcp,
    Ssh,
}

/// One value that a client asks people for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserFacingConfigField {
    /// Where the answer goes, with dots between the names.
    #[schemars(length(min = 1))]
    pub helm_value_path: String,
    /// Name that people see.
    #[schemars(length(min = 1))]
    pub display_name: String,
    /// Longer text for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What kind of answer.
    #[serde(default, rename = "type")]
    pub kind: UserFacingConfigType,
    /// Whether there must be an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// Answer that the client offers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_value")]
    pub default: Option<Value>,
    /// The only answers allowed, when there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// Kind of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum UserFacingConfigType {
    #[default]
    String,
    Int,
    Bool,
    Secret,
    PublicKey,
}

/// Paths in the Helm values, such as `worker.limits["nvidia.com/gpu"]`, for each resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceInjection {
    /// Number of replicas.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "value_paths")]
    pub replicas: Vec<String>,
    /// CPU of a replica.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "value_paths")]
    pub cpu: Vec<String>,
    /// Memory of a replica.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "value_paths")]
    pub memory: Vec<String>,
    /// Disk of a replica.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "value_paths")]
    pub storage: Vec<String>,
    /// GPUs of a replica.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "value_paths")]
    pub gpu_count: Vec<String>,
    /// Maker of the GPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "value_paths")]
    pub gpu_vendor: Vec<String>,
    /// Model of the GPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "value_paths")]
    pub gpu_type: Vec<String>,
}

fn value_paths(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({
        "type": "array",
        "items": { "type": "string", "minLength": 1, "maxLength": 1024 },
        "x-kubernetes-list-type": "set",
    })
}

/// Whether a class can be used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceClassStatus {
    /// The template exists and everything else is in order.
    pub valid: bool,
    /// What is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_error: Option<String>,
    /// The generation that was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The judgement in the standard form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}
