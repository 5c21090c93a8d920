// SPDX-License-Identifier: Apache-2.0
//! What a write sets in motion inside the server.

use serde_json::Value;

use crate::{
    addresses::Held,
    call::Call,
    field::Problem,
    object::{Object, as_object, child_object},
    registry::{Backing, Resource},
    status::Status,
    store::Stored,
};

/// Gives the object what the server hands out, such as addresses.
pub fn allocate(call: &Call, object: &mut Value, old: Option<&Value>) -> Result<Held, Status> {
    if !is_service(&call.resource) {
        return Ok(Held::default());
    }
    let outcome = call.server.addresses.allocate(object, old, || call.server.random());
    outcome.map_err(|error| match error.problem {
        Problem::Internal => Status::internal(error.detail),
        _ => Status::invalid("", "Service", object.name(), &[error]),
    })
}

fn is_service(resource: &Resource) -> bool {
    resource.group.is_empty() && &*resource.kind == "Service"
}

/// Whether nothing inside the server holds an object that is going.
pub fn may_go(resource: &Resource, object: &Value) -> bool {
    // A definition stays until its objects are gone; it is marked first.
    if &*resource.group == "apiextensions.k8s.io" && !object.is_going() {
        return false;
    }
    let held = |pointer: &str| object.at(pointer).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    !(resource.group.is_empty() && &*resource.kind == "Namespace" && held("/spec/finalizers"))
}

/// How long the object may take to go, if its kind may take any time at all.
pub fn grace(resource: &Resource, object: &Value, wanted: Option<i64>) -> Option<i64> {
    match &resource.backing {
        Backing::Builtin(rules) => rules.grace.map(|grace| grace(object, wanted)),
        Backing::Custom(_) => None,
    }
}

/// What else shows that an object is going.
pub fn marked(resource: &Resource, object: &mut Value, now: &str) {
    match (&*resource.group, &*resource.kind) {
        ("", "Namespace") => {
            object.meta_mut().remove("deletionGracePeriodSeconds");
            child_object(as_object(object), "status").insert("phase".into(), "Terminating".into());
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => crate::definitions::marked(object, now),
        _ => {}
    }
}

/// After a commit. `now` is nothing if the object is gone.
pub async fn written(call: &Call, before: Option<&Stored>, now: Option<&Stored>) -> Result<(), Status> {
    let resource = &call.resource;
    call.server.access.note(resource);
    call.server.admission.note(resource);
    if let Some(before) = before.filter(|_| is_service(resource)) {
        call.server.addresses.free(&resource.read(before), now.map(|now| resource.read(now)).as_ref());
    }
    if let (Some(custom), None) = (resource.custom(), now)
        && custom.terminating
    {
        crate::definitions::instance_gone(&call.server, &custom.definition).await?;
    }
    if &*resource.group == "apiextensions.k8s.io" {
        crate::definitions::written(&call.server, resource, before, now).await?;
    }
    Ok(())
}
