// SPDX-License-Identifier: Apache-2.0
//! The way from client-side apply to server-side apply: the annotation in which `kubectl apply` keeps its configuration.

use serde_json::{Map, Value};

use super::{
    Kind,
    compare::compare,
    fields::Set,
    owned,
    updater::Clash,
    validate::{Duplicates, validate},
    wording,
};

/// Only this manager is led over; others have no such annotation.
pub const MANAGER: &str = "kubectl";
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The size of all annotations of an object together.
const MAX_SIZE: usize = 256 * 1024;

/// The conflicts that are none because `kubectl apply` wrote the fields itself.
pub fn remaining<'a>(conflicts: Vec<Clash<'a>>, live: &Value, kind: &Kind<'_>) -> Vec<Clash<'a>> {
    let last = annotation(live).and_then(|text| serde_json::from_str::<Value>(text).ok());
    let Some(last) = last.filter(|last| last.get("apiVersion").and_then(Value::as_str) == Some(kind.api_version))
    else {
        return conflicts;
    };
    let Some(allowed) = unchanged(&last, live, kind) else { return conflicts };
    let conflicts = conflicts.into_iter().map(|clash| Clash { fields: clash.fields.without(&allowed), ..clash });
    conflicts.filter(|clash| !clash.fields.is_empty()).collect()
}

/// The fields of the last configuration that are still as it says.
fn unchanged<'v>(last: &'v Value, live: &'v Value, kind: &Kind<'v>) -> Option<Set<'v>> {
    for object in [last, live] {
        validate(object, kind.schema, Duplicates::Refused).ok()?;
    }
    let changes = compare(last, live, kind.schema);
    let fields = owned::fields(last, kind.schema);
    Some(fields.without(&changes.modified).without(&changes.added).without(&changes.removed))
}

/// Keeps the annotation in step with what is applied, so that a later `kubectl apply` on the client side knows of it.
pub fn refresh(object: &mut Value, config: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(Value::Object(annotations)) = config.pointer_mut("/metadata/annotations") {
        annotations.remove(ANNOTATION);
    }
    let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") else { return };
    annotations.insert(ANNOTATION.to_owned(), Value::String(wording::json(&config) + "\n"));
    if size(annotations) > MAX_SIZE {
        annotations.remove(ANNOTATION);
    }
}

fn annotation(object: &Value) -> Option<&str> {
    object.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str().filter(|text| !text.is_empty())
}

fn size(annotations: &Map<String, Value>) -> usize {
    annotations.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum()
}
