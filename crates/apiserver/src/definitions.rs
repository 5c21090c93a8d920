// SPDX-License-Identifier: Apache-2.0
//! CustomResourceDefinitions at work: accepting names, serving, and cleaning up.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    merge,
    object::{Object, as_object, child_object, text},
    registry::{Resource, custom},
    server::Inner,
    status::Status,
    store::{Stored, Write},
    write::reset_fields,
};

/// After a definition was written or removed.
pub async fn written(server: &Inner, resource: &Resource, now: Option<&Stored>) -> Result<(), Status> {
    let Some(stored) = now else { return Ok(()) };
    let definition = resource.read(stored);
    let accepted = accept(server, &definition);
    if accepted != definition {
        let accepted = manage(server, resource, &definition, accepted);
        let outcome = server
            .store
            .commit(&resource.keyspace, stored.key(), Write::Update(stored.revision()), |revision| {
                resource.draft(&accepted, revision)
            })
            .await;
        if let Ok(stored) = outcome {
            serve(server, &resource.read(&stored));
        }
        return Ok(());
    }
    serve(server, &definition);
    Ok(())
}

/// Serves a definition that is established.
pub fn serve(server: &Inner, definition: &Value) {
    let resources = if is_established(definition) { custom::resources(definition) } else { Vec::new() };
    server.define(definition.name(), resources.into_iter().map(Arc::new).collect());
}

fn manage(server: &Inner, resource: &Resource, live: &Value, new: Value) -> Value {
    let now = server.now();
    let reset = reset_fields(resource, "status");
    let write = merge::Write {
        kind: resource.merge_kind(),
        manager: "kube-apiserver",
        subresource: "status",
        now: &now,
        reset: &reset,
    };
    merge::update(Some(live), new, &write)
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    conditions.into_iter().any(|one| text(one, "/type") == "Established" && text(one, "/status") == "True")
}

/// The definition with its names accepted, if they are free.
fn accept(server: &Inner, definition: &Value) -> Value {
    let mut new = definition.clone();
    let names = definition.pointer("/spec/names").cloned().unwrap_or_default();
    let status = child_object(as_object(&mut new), "status");
    status.insert("acceptedNames".into(), names);
    let now = server.now();
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({ "type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message })
    };
    let mut conditions = status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let has = |conditions: &[Value], kind: &str| conditions.iter().any(|one| text(one, "/type") == kind);
    if !has(&conditions, "NamesAccepted") {
        conditions.push(condition("NamesAccepted", "NoConflicts", "no conflicts found"));
    }
    if !has(&conditions, "Established") {
        conditions.push(condition("Established", "InitialNamesAccepted", "the initial names have been accepted"));
    }
    status.insert("conditions".into(), Value::Array(conditions));
    new
}

/// A definition that is going says so.
pub fn marked(_definition: &mut Value, _now: &str) {}
