// SPDX-License-Identifier: Apache-2.0
//! Conditions in a status.

use serde_json::{Value, json};

use crate::object::{as_object, child_object, text};

/// The condition of a type.
pub fn find<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let list = object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    list.into_iter().find(|one| text(one, "/type") == kind)
}

pub fn is_true(object: &Value, kind: &str) -> bool {
    find(object, kind).is_some_and(|one| text(one, "/status") == "True")
}

/// Sets a condition. Its time stays if its status does.
pub fn set(object: &mut Value, mut condition: Value) {
    let kind = text(&condition, "/type").to_owned();
    if let Some(old) = find(object, &kind)
        && text(old, "/status") == text(&condition, "/status")
        && let Some(time) = old.get("lastTransitionTime")
    {
        as_object(&mut condition).insert("lastTransitionTime".into(), time.clone());
    }
    let status = child_object(as_object(object), "status");
    let list = status.entry("conditions").or_insert_with(|| json!([]));
    let Some(list) = list.as_array_mut() else { return };
    match list.iter_mut().find(|one| text(one, "/type") == kind) {
        Some(one) => *one = condition,
        None => list.push(condition),
    }
}
