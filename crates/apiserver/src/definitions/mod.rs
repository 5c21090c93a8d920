// SPDX-License-Identifier: Apache-2.0
//! CustomResourceDefinitions at work: accepting names, serving, and cleaning up.

pub mod check;
mod cleanup;
mod names;
mod rules;
mod schema;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    kinds::conditions,
    merge,
    object::{Object, as_object, text},
    registry::{Resource, custom},
    server::Inner,
    status::Status,
    store::{CommitError, Range, Stored, Write},
    write::reset_fields,
};

pub use cleanup::instance_gone;

const GROUP: &str = "apiextensions.k8s.io";
const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";
const TRIES: usize = 100;

/// The resource of definitions.
fn resource(server: &Inner) -> Option<Arc<Resource>> {
    server.registry().find(GROUP, "v1", "customresourcedefinitions").cloned()
}

fn all(server: &Inner, resource: &Resource) -> Result<Vec<Value>, Status> {
    let page = server.store.range(&resource.keyspace, &Range::default(), |_| true).map_err(Status::internal)?;
    Ok(page.items.iter().map(|stored| resource.read(stored)).collect())
}

/// After a definition was written or removed.
pub async fn written(
    server: &Inner,
    resource: &Resource,
    before: Option<&Stored>,
    now: Option<&Stored>,
) -> Result<(), Status> {
    if &*resource.plural != "customresourcedefinitions" {
        return Ok(());
    }
    match now {
        Some(now) => {
            let name = now.key().to_owned();
            settle(server, resource, &name).await?;
            if resource.read(now).is_going() {
                cleanup::run(server, resource, &name).await?;
            }
        }
        None => {
            if let Some(before) = before {
                server.define(before.key(), Vec::new());
            }
        }
    }
    // Names may have become free for others of the group.
    let (Some(before), None) = (before, now) else { return Ok(()) };
    let group = text(&resource.read(before), "/spec/group").to_owned();
    for other in all(server, resource)?.iter().filter(|other| text(other, "/spec/group") == group) {
        settle(server, resource, other.name()).await?;
    }
    Ok(())
}

/// Accepts the names of a definition as far as they are free, and serves it.
async fn settle(server: &Inner, resource: &Resource, name: &str) -> Result<(), Status> {
    let now = server.now();
    let others: Vec<Value> = all(server, resource)?.into_iter().filter(|other| other.name() != name).collect();
    let settled = change(server, resource, name, |definition| names::accept(definition, &others, &now)).await?;
    if let Some(definition) = settled {
        serve(server, &definition);
    }
    Ok(())
}

/// Changes the status of a stored definition in the name of the server. The answer is the definition afterwards.
async fn change(
    server: &Inner,
    resource: &Resource,
    name: &str,
    with: impl Fn(&mut Value),
) -> Result<Option<Value>, Status> {
    for _ in 0..TRIES {
        let Some(stored) = server.store.get(&resource.keyspace, name) else { return Ok(None) };
        let live = resource.read(&stored);
        let mut new = live.clone();
        with(&mut new);
        if new == live {
            return Ok(Some(live));
        }
        let mut new = manage(server, resource, &live, new);
        let write = Write::Update(stored.revision());
        match server.store.commit(&resource.keyspace, name, write, |revision| resource.draft(&mut new, revision)).await
        {
            Ok(stored) => return Ok(Some(resource.read(&stored))),
            Err(CommitError::Changed(_)) => {}
            Err(CommitError::Absent) => return Ok(None),
            Err(error) => return Err(Status::internal(error)),
        }
    }
    Err(Status::modified(GROUP, "customresourcedefinitions", name))
}

/// Serves a definition that is established.
pub fn serve(server: &Inner, definition: &Value) {
    let established = conditions::is_true(definition, "Established");
    let resources = if established { custom::resources(definition) } else { Vec::new() };
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

/// The status of a definition that nobody has looked at.
pub fn prepare_create(definition: &mut Value) {
    let stored = definition.pointer("/status/storedVersions/0").cloned();
    let mut status =
        json!({ "conditions": null, "acceptedNames": { "plural": "", "kind": "" }, "storedVersions": null });
    if let Some(stored) = stored {
        as_object(&mut status).insert("storedVersions".into(), json!([stored]));
    }
    as_object(definition).insert("status".into(), status);
}

/// A version that becomes the stored one is remembered.
pub fn prepare_update(new: &mut Value, _old: &Value) {
    let mut versions = new.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    let storage = versions.rfind(|version| version.get("storage") == Some(&json!(true)));
    let Some(storage) = storage.and_then(|version| version.get("name")).cloned() else { return };
    let list = new.pointer_mut("/status/storedVersions").and_then(Value::as_array_mut);
    if let Some(list) = list.filter(|list| !list.contains(&storage)) {
        list.push(storage);
    }
}

/// A definition that is going says so, and stays until its objects are gone.
pub fn marked(definition: &mut Value, now: &str) {
    let generation = definition.generation();
    if generation > 0 {
        definition.set_meta("generation", generation - 1);
    }
    definition.meta_mut().remove("deletionGracePeriodSeconds");
    let mut finalizers: Vec<String> = definition.finalizers().into_iter().map(str::to_owned).collect();
    if !finalizers.iter().any(|one| one == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
    }
    definition.set_meta("finalizers", finalizers);
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    conditions::set(definition, condition("Terminating", "True", "InstanceDeletionPending", message, now));
}

fn condition(kind: &str, status: &str, reason: &str, message: &str, now: &str) -> Value {
    json!({ "type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message })
}
