// SPDX-License-Identifier: Apache-2.0
//! JSON merge patch (RFC 7386).

use serde_json::Value;

use super::PatchError;
use crate::decode::json_name;

/// Patches an object. A patch that is not an object is refused.
pub fn merge(mut object: Value, patch: Value) -> Result<Value, PatchError> {
    match (&mut object, patch) {
        (Value::Object(fields), Value::Object(patch)) => merge_fields(fields, patch),
        (_, Value::Null) => return Err(PatchError::BadRequest("Invalid JSON Patch".to_owned())),
        (_, patch) => {
            return Err(PatchError::BadRequest(format!(
                "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                json_name(&patch)
            )));
        }
    }
    Ok(object)
}

type Fields = serde_json::Map<String, Value>;

fn merge_fields(fields: &mut Fields, patch: Fields) {
    for (key, mut value) in patch {
        match (fields.get_mut(&key), value) {
            (_, Value::Null) if !fault!(NullKept) => {
                fields.remove(&key);
            }
            (Some(Value::Object(inner)), Value::Object(patch)) => merge_fields(inner, patch),
            // What takes the place of an object is taken as it is.
            (Some(inner @ Value::Object(_)), other) => *inner = other,
            (_, other) => {
                value = other;
                drop_nulls(&mut value);
                fields.insert(key, value);
            }
        }
    }
}

/// Takes the fields that are `null` out of all objects. Items of lists stay.
pub(super) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
