// SPDX-License-Identifier: Apache-2.0
//! What the earlier form of a module told about its installation. Nothing writes it any more; it is kept when met.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// State of a Helm installation.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HelmState {
    /// Version of the installed chart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart_version: Option<String>,
    /// Number of the Helm revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i32>,
    /// Helm's word for the state, such as `deployed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// SHA-256 of the values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values_checksum: Option<String>,
}

/// State of a kustomization.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KustomizationState {
    /// Revision that was applied last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_applied_revision: Option<String>,
    /// Revision that was tried last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempted_revision: Option<String>,
}

/// One object that belongs to an installation.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct InventoryEntry {
    /// Namespace, name, group and kind, joined with underscores.
    pub id: String,
    /// API version.
    pub version: String,
}
