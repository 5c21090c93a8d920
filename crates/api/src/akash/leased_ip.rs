// SPDX-License-Identifier: Apache-2.0
//! ProviderLeasedIP: one port on a public address that a lease owns.

use super::{LeaseId, LeaseObjectStatus, without_defaults};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One port of a leased address. Objects with the same sharing key get the same address.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "akash.network",
    version = "v2beta2",
    kind = "ProviderLeasedIP",
    plural = "providerleasedips",
    singular = "providerleasedip",
    shortname = "plip",
    namespaced,
    status = "LeaseObjectStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A port on a public address that belongs to one lease.",
    printcolumn(name = "Address", type_ = "string", json_path = ".status.address"),
    printcolumn(name = "Port", type_ = "integer", json_path = ".spec.external_port"),
    printcolumn(name = "Protocol", type_ = "string", json_path = ".spec.protocol"),
    printcolumn(name = "Service", type_ = "string", json_path = ".spec.service_name"),
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Sharing Key", type_ = "string", json_path = ".spec.sharing_key", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct ProviderLeasedIPSpec {
    /// The lease that holds the address.
    pub lease_id: LeaseId,
    /// Service of the manifest that answers.
    pub service_name: String,
    /// Port of the container.
    pub port: i32,
    /// Port on the leased address.
    pub external_port: i32,
    /// Joins ports to one address: `<owner>-ip-<endpoint>`.
    pub sharing_key: String,
    /// `TCP` or `UDP`; empty means TCP.
    pub protocol: String,
}
