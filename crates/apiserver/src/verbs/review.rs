// SPDX-License-Identifier: Apache-2.0
//! Kinds that are questions: they are answered, not stored.

use serde_json::Value;

use crate::{answer::Answer, call::Call, status::Status};

/// The answer, if the kind is a question.
pub fn run(_call: &Call, _object: &Value) -> Result<Option<Answer>, Status> {
    Ok(None)
}
