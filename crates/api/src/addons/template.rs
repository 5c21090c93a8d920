// SPDX-License-Identifier: Apache-2.0
//! ModuleTemplate: how to install an add-on with Flux CD.

use crate::crd::schema::conditions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How to install an add-on: with a Helm release or with a kustomization.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[kube(
    group = "addons.otterscale.io",
    version = "v1alpha1",
    kind = "ModuleTemplate",
    plural = "moduletemplates",
    singular = "moduletemplate",
    status = "ModuleTemplateStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A recipe that modules are installed from.",
    cel,
    printcolumn(name = "Namespace", type_ = "string", json_path = ".spec.namespace"),
    printcolumn(name = "Type", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason"),
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
    /// Install with a Flux CD Helm release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helm_release: Option<HelmReleaseTemplate>,
    /// Install with a Flux CD kustomization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kustomization: Option<KustomizationTemplate>,
}

/// The Helm release to make for each module.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct HelmReleaseTemplate {
    /// Spec of a `helm.toolkit.fluxcd.io/v2` HelmRelease. Flux CD checks the rest of it.
    #[schemars(schema_with = "helm_release")]
    pub spec: Map<String, Value>,
}

/// The kustomization to make for each module.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct KustomizationTemplate {
    /// Spec of a `kustomize.toolkit.fluxcd.io/v1` Kustomization. Flux CD checks the rest of it.
    #[schemars(schema_with = "kustomization")]
    pub spec: Map<String, Value>,
}

/// What was found out about the template.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModuleTemplateStatus {
    /// Generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Whether modules can be installed from it. The reason of `Ready` tells the type: helm or kustomize.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

/// How Flux CD spells a time span.
const SPAN: &str = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$";

// Flux CD's own schemas stay out: they are large, and they grow with its releases while ours would stand still. What it
// requires is kept, so that a template without it is refused here and not only when a module uses it.
fn helm_release(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "required": ["interval"],
        "properties": {
            "interval": {"description": "How often to look for drift.", "type": "string", "pattern": SPAN},
            "chart": chart(),
            "chartRef": source(
                "A chart that is fetched by another object.",
                &["OCIRepository", "HelmChart", "ExternalArtifact"],
            ),
        },
        "x-kubernetes-validations": [{
            "rule": "(has(self.chart) && !has(self.chartRef)) || (!has(self.chart) && has(self.chartRef))",
            "message": "either chart or chartRef must be set",
        }],
    })
}

fn chart() -> Schema {
    json_schema!({
        "description": "A chart to fetch for this release.",
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "required": ["spec"],
        "properties": {"spec": {
            "description": "Which chart, and from where.",
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
            "required": ["chart", "sourceRef"],
            "properties": {
                "chart": {"description": "Name or path.", "type": "string", "minLength": 1, "maxLength": 2048},
                "sourceRef": source(
                    "Where the chart comes from.",
                    &["HelmRepository", "GitRepository", "Bucket"],
                ),
            },
        }},
    })
}

fn source(description: &str, kinds: &[&str]) -> Schema {
    json_schema!({
        "description": description,
        "type": "object",
        "required": ["kind", "name"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string", "enum": kinds},
            "name": {"type": "string", "minLength": 1, "maxLength": 253},
            "namespace": {"type": "string", "minLength": 1, "maxLength": 63},
        },
    })
}

fn kustomization(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "required": ["interval", "prune", "sourceRef"],
        "properties": {
            "interval": {"description": "How often to look for drift.", "type": "string", "pattern": SPAN},
            "prune": {"description": "Delete objects that leave the source.", "type": "boolean"},
            "sourceRef": {
                "description": "Where the manifests come from.",
                "type": "object",
                "required": ["kind", "name"],
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string", "enum": ["OCIRepository", "GitRepository", "Bucket", "ExternalArtifact"]},
                    "name": {"type": "string"},
                    "namespace": {"type": "string"},
                },
            },
        },
    })
}
