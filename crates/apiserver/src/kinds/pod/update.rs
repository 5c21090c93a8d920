// SPDX-License-Identifier: Apache-2.0
//! What may change in a pod.

use serde_json::{Value, json};

use super::super::place::Place;
use crate::{
    field::Error,
    object::{Object, as_object, child_object},
};

const FIXED: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub fn check_update(new: &Value, old: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let (root, before) = (Place::root(new), Place::root(old));
    let (spec, old_spec) = (root.field("spec"), before.field("spec"));
    for list in ["containers", "initContainers"] {
        let (containers, known) = (spec.field(list), old_spec.field(list));
        if containers.len() != known.len() {
            errors.push(containers.forbidden("pod updates may not add or remove containers"));
            return errors;
        }
        for container in containers.items() {
            container.field("image").must_be(&mut errors);
        }
    }
    if !deadline(&spec, &old_spec, &mut errors) {
        return errors;
    }
    let gated = !old_spec.field("schedulingGates").is_empty();
    gates(&spec, &old_spec, &mut errors);
    tolerations(&spec, &old_spec, &mut errors);
    if gated {
        node_selector(&spec, &old_spec, &mut errors);
    }
    if rest(new, old, gated) != rest(old, old, gated) {
        errors.push(spec.forbidden(FIXED));
    }
    errors
}

/// A deadline can only come nearer. The answer is whether there is more to look at.
fn deadline(spec: &Place<'_, '_>, old: &Place<'_, '_>, errors: &mut Vec<Error>) -> bool {
    let deadline = spec.field("activeDeadlineSeconds");
    match (deadline.number(), old.field("activeDeadlineSeconds").number()) {
        (Some(new), Some(old)) if new > old => {
            errors.push(deadline.invalid("must be less than or equal to previous value"));
            return false;
        }
        (None, Some(_)) => {
            errors.push(deadline.invalid_as(Value::Null, "must not update from a positive integer to nil value"));
        }
        _ => {}
    }
    true
}

/// Gates can only be opened.
fn gates(spec: &Place<'_, '_>, old: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let before = old.field("schedulingGates");
    for gate in spec.field("schedulingGates").items() {
        let name = gate.field("name");
        if !before.items().any(|known| known.field("name").text() == name.text()) {
            let why = format!("only deletion is allowed, but found new scheduling gate '{}'", name.text());
            errors.push(name.forbidden(why));
        }
    }
}

/// Tolerations may be added, and those that are there may last for another time.
fn tolerations(spec: &Place<'_, '_>, old: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let bare = |one: &Value| {
        let mut one = one.clone();
        as_object(&mut one).remove("tolerationSeconds");
        one
    };
    let now = spec.field("tolerations");
    let kept = |known: &Place<'_, '_>| now.items().any(|one| bare(one.value()) == bare(known.value()));
    if !old.field("tolerations").items().all(|known| kept(&known)) {
        errors.push(now.forbidden("existing toleration can not be modified except its tolerationSeconds"));
    }
}

/// A pod that waits at a gate may be narrowed down to fewer nodes.
fn node_selector(spec: &Place<'_, '_>, old: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let selector = spec.field("nodeSelector");
    let changed = old.field("nodeSelector").map().any(|(key, value)| selector.value().get(key) != Some(value));
    if changed {
        let shown = selector.value().clone();
        errors.push(selector.invalid_as(shown, "only additions are allowed (no mutations or deletions)"));
    }
}

/// The spec with what may change taken from the old one.
fn rest(pod: &Value, old: &Value, gated: bool) -> Value {
    let mut spec = pod.get("spec").cloned().unwrap_or_default();
    let before = old.get("spec").cloned().unwrap_or_default();
    for list in ["containers", "initContainers"] {
        let olds = before.get(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let news = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, old) in news.zip(olds) {
            put(container, "image", old.get("image").cloned());
        }
    }
    let map = as_object(&mut spec);
    let mut free = vec!["activeDeadlineSeconds", "tolerations", "schedulingGates"];
    if gated {
        free.push("nodeSelector");
        let affinity = before.at("/affinity/nodeAffinity").cloned();
        if affinity.is_some() || map.get("affinity").is_some_and(|one| one.get("nodeAffinity").is_some()) {
            match affinity {
                Some(affinity) => drop(child_object(map, "affinity").insert("nodeAffinity".into(), affinity)),
                None => drop(child_object(map, "affinity").remove("nodeAffinity")),
            }
        }
        if before.get("affinity").is_none() && map.get("affinity") == Some(&json!({})) {
            map.remove("affinity");
        }
    }
    let seconds = |spec: &Value| spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64);
    let now = map.get("terminationGracePeriodSeconds").and_then(Value::as_i64);
    if seconds(&before).is_some_and(|before| before < 0) && now == Some(1) {
        free.push("terminationGracePeriodSeconds");
    }
    for field in free {
        match before.get(field).cloned() {
            Some(value) => drop(map.insert(field.into(), value)),
            None => drop(map.remove(field)),
        }
    }
    spec
}

fn put(object: &mut Value, field: &str, value: Option<Value>) {
    let map = as_object(object);
    match value {
        Some(value) => drop(map.insert(field.into(), value)),
        None => drop(map.remove(field)),
    }
}
