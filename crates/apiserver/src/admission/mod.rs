// SPDX-License-Identifier: Apache-2.0
//! What looks at a write between its request and the store: it may change the object or refuse it.

use serde_json::Value;

use crate::{call::Call, status::Status};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// One write as admission sees it.
#[derive(Debug)]
pub struct Review<'a> {
    pub operation: Operation,
    pub namespace: &'a str,
    pub name: &'a str,
    /// The object after the write; nothing for a deletion.
    pub object: Option<&'a mut Value>,
    pub old: Option<&'a Value>,
}

/// Lets every plugin change the object.
pub async fn mutate(_call: &Call, _review: &mut Review<'_>) -> Result<(), Status> {
    Ok(())
}

/// Lets every plugin refuse the write.
pub async fn validate(_call: &Call, _review: &Review<'_>) -> Result<(), Status> {
    Ok(())
}
