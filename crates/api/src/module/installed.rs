// SPDX-License-Identifier: Apache-2.0
//! Module: one add-on that is installed.

use crate::{
    crd::schema::{any_object, conditions},
    resource_ref::ResourceRef,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{HelmState, InventoryEntry, KustomizationState};

/// Which add-on to install, where, and with which settings.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[kube(
    group = "module.otterscale.io",
    version = "v1alpha1",
    kind = "Module",
    plural = "modules",
    singular = "module",
    category = "otterscale",
    status = "ModuleStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "An add-on installed from a template.",
    cel,
    printcolumn(name = "Template", type_ = "string", json_path = ".spec.templateRef"),
    printcolumn(name = "Namespace", type_ = "string", json_path = ".status.namespace"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(
        name = "Outdated",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"UpgradeAvailable\")].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(self.templateRef) != has(self.moduleClassName)",
    "exactly one of templateRef or moduleClassName must be set"
))]
pub struct ModuleSpec {
    /// Name of the template. It never changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = ("self == oldSelf", "templateRef is immutable"))]
    pub template_ref: Option<String>,
    /// Name of the module class, in objects of the earlier form. It never changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = ("self == oldSelf", "moduleClassName is immutable"))]
    pub module_class_name: Option<String>,
    /// Where to install. Absent: where the template says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)$"))]
    pub namespace: Option<String>,
    /// Helm values that stand in place of the template's. They mean nothing for a kustomization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub values: Option<Map<String, Value>>,
    /// Newest generation of the template that may be applied. Absent: every generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_template_generation: Option<i64>,
    /// Newest generation of the class that may be applied, in objects of the earlier form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_class_generation: Option<i64>,
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
    pub applied_template_generation: Option<i64>,
    /// Generation of the template that there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_template_generation: Option<i64>,
    /// Where the add-on is installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The Helm release that was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helm_release_ref: Option<ResourceRef>,
    /// The kustomization that was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kustomization_ref: Option<ResourceRef>,
    /// Generation of the class that was applied last, in objects of the earlier form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_class_generation: Option<i64>,
    /// Generation of the class that there is, in objects of the earlier form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_class_generation: Option<i64>,
    /// State of the Helm installation, in objects of the earlier form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helm_release: Option<HelmState>,
    /// State of the kustomization, in objects of the earlier form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kustomization: Option<KustomizationState>,
    /// Objects that belong to the installation, in objects of the earlier form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inventory: Vec<InventoryEntry>,
    /// How the add-on is doing. `Ready` follows the object that was made; `UpgradeAvailable` tells that a newer template
    /// waits for approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}
