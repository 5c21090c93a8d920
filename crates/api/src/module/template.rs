// SPDX-License-Identifier: Apache-2.0
//! ModuleTemplate: how to install an add-on with Flux CD.

use crate::crd::schema::any_object;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How to install an add-on: with a Helm release or with a kustomization.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[kube(
    group = "module.otterscale.io",
    version = "v1alpha1",
    kind = "ModuleTemplate",
    plural = "moduletemplates",
    singular = "moduletemplate",
    category = "otterscale",
    derive = "Default",
    derive = "PartialEq",
    doc = "A recipe that modules are installed from.",
    cel,
    printcolumn(name = "Namespace", type_ = "string", json_path = ".spec.namespace"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "(has(self.helmRelease) && !has(self.kustomization)) || (!has(self.helmRelease) && has(self.kustomization))",
    "exactly one of helmRelease or kustomization must be set"
))]
pub struct ModuleTemplateSpec {
    /// What the add-on is good for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub description: Option<String>,
    /// Where modules are installed that name no namespace.
    #[schemars(length(min = 1, max = 63), regex(pattern = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)$"))]
    pub namespace: String,
    /// Spec of a `helm.toolkit.fluxcd.io/v2` HelmRelease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub helm_release: Option<Map<String, Value>>,
    /// Spec of a `kustomize.toolkit.fluxcd.io/v1` Kustomization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub kustomization: Option<Map<String, Value>>,
}
