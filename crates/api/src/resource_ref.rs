// SPDX-License-Identifier: Apache-2.0
//! A pointer from a status to an object that exists because of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Names one object; its kind is known from the field that holds the reference.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
pub struct ResourceRef {
    /// Name of the object.
    pub name: String,
    /// Namespace of the object; absent when the object has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}
