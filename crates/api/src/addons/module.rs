// SPDX-License-Identifier: Apache-2.0
//! Module: one add-on that is installed.

use crate::{
    crd::schema::{any_value, conditions},
    resource_ref::ResourceRef,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Which add-on to install, where, and with which settings.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[kube(
    group = "addons.otterscale.io",
    version = "v1alpha1",
    kind = "Module",
    plural = "modules",
    singular = "module",
    status = "ModuleStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "An add-on installed from a template.",
    cel,
    printcolumn(name = "Template", type_ = "string", json_path = ".spec.templateRef"),
    printcolumn(name = "Namespace", type_ = "string", json_path = ".spec.namespace"),
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
pub struct ModuleSpec {
    /// Name of the template. It never changes.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = ("self == oldSelf", "templateRef is immutable"))]
    pub template_ref: String,
    /// Where to install. Absent: where the template says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)$"))]
    pub namespace: Option<String>,
    /// Helm values that stand in place of the template's. They mean nothing for a kustomization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_value")]
    pub values: Option<Value>,
}

/// How the add-on is doing.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModuleStatus {
    /// Generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Generation of the template that was applied last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_generation: Option<i64>,
    /// The Helm release that was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helm_release_ref: Option<ResourceRef>,
    /// The kustomization that was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kustomization_ref: Option<ResourceRef>,
    /// How the add-on is doing. `Ready` follows the object that was made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}
