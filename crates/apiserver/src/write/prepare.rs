// SPDX-License-Identifier: Apache-2.0
//! What the server alone decides about an object that is written.

use serde_json::Value;

use crate::{
    builtin::builtins,
    call::Call,
    object::{Object, as_object},
    registry::{Backing, Resource},
};

/// Makes a new object ready for the checks.
pub fn create(call: &Call, object: &mut Value) {
    let resource = call.resource.clone();
    if resource.namespaced && object.namespace().is_empty() {
        object.set_meta("namespace", call.namespace());
    }
    let meta = object.meta_mut();
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"] {
        meta.remove(field);
    }
    meta.insert("uid".into(), call.server.uid().into());
    meta.insert("creationTimestamp".into(), call.server.now().into());
    match &resource.backing {
        Backing::Builtin(rules) => {
            if rules.generation {
                object.set_meta("generation", 1);
            }
            if rules.status_apart && resource.subresource("status").is_some() {
                reset_status(object, &resource.empty);
            }
            builtins().begin(&resource.group, &resource.version, &resource.kind, object);
            (rules.prepare_create)(object);
        }
        Backing::Custom(custom) => {
            object.set_meta("generation", 1);
            if custom.has_status {
                as_object(object).remove("status");
            }
        }
    }
}

/// Gives the object the status of a kind that nobody has written to.
fn reset_status(object: &mut Value, empty: &Value) {
    let map = as_object(object);
    match empty.get("status") {
        Some(status) => map.insert("status".into(), status.clone()),
        None => map.remove("status"),
    };
}

/// Keeps what the caller may not change through this endpoint.
pub fn update(call: &Call, new: &mut Value, old: &Value, subresource: &str) {
    let resource = call.resource.clone();
    let meta = new.meta_mut();
    for field in
        ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "namespace"]
    {
        match old.meta().and_then(|meta| meta.get(field)) {
            // A caller that says nothing about them keeps them; one that says something else is told later.
            Some(value) if !meta.contains_key(field) || field == "generation" => {
                meta.insert(field.to_owned(), value.clone());
            }
            None if field.starts_with("deletion") || field == "generation" => {
                meta.remove(field);
            }
            _ => {}
        }
    }
    meta.remove("selfLink");
    let keep = |new: &mut Value, field: &str| {
        let map = as_object(new);
        match old.get(field) {
            Some(value) => map.insert(field.to_owned(), value.clone()),
            None => map.remove(field),
        };
    };
    match (&resource.backing, subresource) {
        (Backing::Builtin(rules), "") => {
            if rules.status_apart && resource.subresource("status").is_some() {
                keep(new, "status");
            }
            (rules.prepare_update)(new, old);
        }
        (Backing::Builtin(rules), "status") => (rules.prepare_status)(new, old),
        (Backing::Builtin(rules), part) => {
            if let Some(part) = rules.part(part) {
                (part.prepare)(new, old);
            }
        }
        (Backing::Custom(custom), "") if custom.has_status && !fault!(StatusTogether) => keep(new, "status"),
        (Backing::Custom(_), "status") => {
            // Everything but the status stays, and of the metadata only the managers move.
            let managers = new.meta().and_then(|meta| meta.get("managedFields")).cloned();
            let status = new.get("status").cloned();
            *new = old.clone();
            let map = as_object(new);
            match status {
                Some(status) => map.insert("status".into(), status),
                None => map.remove("status"),
            };
            match managers {
                Some(managers) => new.meta_mut().insert("managedFields".into(), managers),
                None => new.meta_mut().remove("managedFields"),
            };
        }
        _ => {}
    }
}

pub fn count_generation(resource: &Resource, new: &mut Value, old: &Value, subresource: &str) {
    let counts = match &resource.backing {
        Backing::Builtin(rules) => {
            rules.generation
                && subresource != "status"
                && (changed(new, old, &["metadata", "status"])
                    || (rules.counts_annotations && new.at("/metadata/annotations") != old.at("/metadata/annotations")))
        }
        Backing::Custom(custom) if custom.has_status => {
            subresource != "status" && changed(new, old, &["metadata", "status"])
        }
        Backing::Custom(_) => changed(new, old, &["metadata"]),
    };
    if counts && !fault!(GenerationStays) {
        new.set_meta("generation", old.generation() + 1);
    }
}

/// Whether two objects differ in anything but these fields.
fn changed(new: &Value, old: &Value, but: &[&str]) -> bool {
    fn part<'a>(value: &'a Value, but: &'a [&str]) -> impl Iterator<Item = (&'a String, &'a Value)> {
        value.as_object().into_iter().flatten().filter(|(key, _)| !but.contains(&key.as_str()))
    }
    !part(new, but).eq(part(old, but))
}
