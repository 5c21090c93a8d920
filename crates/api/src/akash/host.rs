// SPDX-License-Identifier: Apache-2.0
//! ProviderHost: one hostname that one lease owns.

use super::{LeaseObjectStatus, without_defaults};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A hostname and the service behind it. The object's name is the hostname, which makes it unique for a provider.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "akash.network",
    version = "v2beta2",
    kind = "ProviderHost",
    plural = "providerhosts",
    singular = "providerhost",
    shortname = "ph",
    namespaced,
    status = "LeaseObjectStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A hostname that belongs to one lease.",
    printcolumn(name = "Service", type_ = "string", json_path = ".spec.service_name"),
    printcolumn(name = "Port", type_ = "integer", json_path = ".spec.external_port"),
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Address", type_ = "string", json_path = ".status.address"),
    printcolumn(name = "Owner", type_ = "string", json_path = ".spec.owner", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct ProviderHostSpec {
    /// Address of the tenant.
    pub owner: String,
    /// Address of the provider.
    pub provider: String,
    /// Fully qualified name that clients ask for.
    pub hostname: String,
    /// Deployment sequence; a number here, a text in `lease_id` of the other kinds.
    pub dseq: i64,
    /// Group sequence.
    pub gseq: i64,
    /// Order sequence.
    pub oseq: i64,
    /// Service of the manifest that answers.
    pub service_name: String,
    /// Port of that Service.
    pub external_port: i32,
}
