// SPDX-License-Identifier: Apache-2.0
//! Pods: what must hold for them, what may change, how long they may take to go.

pub mod containers;
mod placing;
mod probes;
pub mod resources;
mod security;
pub mod spec;
mod update;
mod volumes;

use serde_json::{Value, json};

use super::{Part, keep_all_but_status, place::Place};
use crate::{
    field::Error,
    object::{Object, as_object, child_object, text},
};

pub use update::check_update;

pub fn check(pod: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Place::root(pod);
    let spec = root.field("spec");
    spec::check(&spec, &[], &mut errors);
    containers::images(&spec, &mut errors);
    errors
}

/// What holds only for a new pod.
pub fn check_create(pod: &Value) -> Vec<Error> {
    let root = Place::root(pod);
    let spec = root.field("spec");
    let ephemeral = spec.field("ephemeralContainers");
    let mut errors = Vec::new();
    if !ephemeral.is_empty() {
        errors.push(ephemeral.forbidden("cannot be set on create"));
    }
    if !spec.field("nodeName").is_empty() && !spec.field("schedulingGates").is_empty() {
        errors.push(spec.field("nodeName").forbidden("cannot be set until all schedulingGates have been cleared"));
    }
    errors
}

/// A template that is an object of its own.
pub fn check_template(object: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Place::root(object);
    template(&root.field("template"), &mut errors);
    errors
}

/// A template of pods inside another object.
pub fn template(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    template_with_claims(at, &[], errors);
}

/// A template whose pods also get volumes for these claims.
pub fn template_with_claims(at: &Place<'_, '_>, claims: &[&str], errors: &mut Vec<Error>) {
    template_metadata(at, errors);
    let spec = at.field("spec");
    spec::check(&spec, claims, errors);
    let ephemeral = spec.field("ephemeralContainers");
    if !ephemeral.is_empty() {
        errors.push(ephemeral.forbidden("ephemeral containers not allowed in pod template"));
    }
}

pub fn template_metadata(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let metadata = at.field("metadata");
    // The paths of these leave out the metadata.
    errors.extend(crate::metadata::labels(metadata.fields(), &at.field("labels").path()));
    errors.extend(crate::metadata::annotations(metadata.fields(), &at.field("annotations").path()));
}

/// A pod with gates says that it cannot be scheduled.
pub fn prepare_create(pod: &mut Value) {
    let gated = pod.at("/spec/schedulingGates").and_then(Value::as_array).is_some_and(|gates| !gates.is_empty());
    if !gated {
        return;
    }
    let now = text(pod, "/metadata/creationTimestamp").to_owned();
    let condition = json!({
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
        "lastProbeTime": null,
        "lastTransitionTime": now,
    });
    let status = child_object(as_object(pod), "status");
    status.insert("conditions".into(), json!([condition]));
}

/// The status of a pod keeps its class of service.
pub fn prepare_status(new: &mut Value, old: &Value) {
    keep_all_but_status(new, old);
    let class = old.at("/status/qosClass").cloned();
    let status = child_object(as_object(new), "status");
    if let Some(class) = class {
        status.entry("qosClass").or_insert(class);
    }
    // Times of deletion are not for writers of a status.
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences"] {
        match old.meta().and_then(|meta| meta.get(field)).cloned() {
            Some(value) => new.set_meta(field, value),
            None => drop(new.meta_mut().remove(field)),
        }
    }
}

pub fn check_status(new: &Value, old: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Place::root(new);
    let status = root.field("status");
    for one in status.field("conditions").items() {
        let kind = one.field("type").text();
        let problems = crate::names::qualified_name(kind);
        errors.extend(problems.into_iter().map(|why| one.field("Type").invalid_as(kind, why)));
    }
    let nominated = status.field("nominatedNodeName");
    if !nominated.is_empty() {
        nominated.named(crate::names::subdomain, &mut errors);
        let bound = !text(new, "/spec/nodeName").is_empty();
        if bound && text(old, "/status/nominatedNodeName") != nominated.text() {
            errors.push(nominated.forbidden("may not be set on pods that are already bound to a node"));
        }
    }
    let class = status.field("qosClass");
    if class.text() != text(old, "/status/qosClass") {
        errors.push(class.invalid("field is immutable"));
    }
    let addresses = status.field("podIPs");
    for address in addresses.items() {
        if address.field("ip").text().parse::<std::net::IpAddr>().is_err() {
            let shown = address.field("ip").text();
            let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            errors.push(address.invalid_as(shown, why));
        }
    }
    errors
}

/// How many seconds a pod may take to go.
pub fn grace(pod: &Value, wanted: Option<i64>) -> i64 {
    let own = pod.at("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    let over = matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
    match wanted.or(own).unwrap_or_default() {
        _ if over || text(pod, "/spec/nodeName").is_empty() => 0,
        // A negative wish is a short one: nobody waits, but the node is told.
        seconds if seconds < 0 => 1,
        seconds => seconds,
    }
}

/// Containers for looking into a running pod can be added to it.
pub const EPHEMERAL: Part = Part {
    name: "ephemeralcontainers",
    prepare: |new, old| keep_but(new, old, "ephemeralContainers"),
    check: |new, old| {
        let mut errors = check(new);
        let (root, before) = (Place::root(new), Place::root(old));
        let (spec, old_spec) = (root.field("spec"), before.field("spec"));
        let now = spec.field("ephemeralContainers");
        for known in old_spec.field("ephemeralContainers").items() {
            let name = known.field("name").text();
            match now.items().find(|one| one.field("name").text() == name) {
                None => {
                    errors.push(now.forbidden(format!("existing ephemeral containers {name:?} may not be removed\n")))
                }
                Some(one) if one.value() != known.value() => {
                    errors.push(now.forbidden(format!("existing ephemeral containers {name:?} may not be changed\n")));
                }
                Some(_) => {}
            }
        }
        errors
    },
    resets: &[&["status"]],
};

/// Requests and limits can change while a pod runs.
pub const RESIZE: Part = Part {
    name: "resize",
    prepare: |new, old| keep_but(new, old, "containers"),
    check: |new, old| {
        let mut errors = check(new);
        let bare = |pod: &Value| {
            let mut list = pod.at("/spec/containers").cloned().unwrap_or_default();
            for container in list.as_array_mut().into_iter().flatten() {
                as_object(container).remove("resources");
                as_object(container).remove("resizePolicy");
            }
            list
        };
        if bare(new) != bare(old) {
            let root = Place::root(new);
            errors.push(root.field("spec").forbidden("only cpu and memory resources are mutable"));
        }
        errors
    },
    resets: &[&["status"]],
};

/// The old pod with one field of the new spec.
fn keep_but(new: &mut Value, old: &Value, field: &str) {
    let (managers, value) = (
        new.meta().and_then(|meta| meta.get("managedFields")).cloned(),
        new.get("spec").and_then(|spec| spec.get(field)).cloned(),
    );
    *new = old.clone();
    if let Some(managers) = managers {
        new.set_meta("managedFields", managers);
    }
    let spec = child_object(as_object(new), "spec");
    match value {
        Some(value) => drop(spec.insert(field.into(), value)),
        None => drop(spec.remove(field)),
    }
}
