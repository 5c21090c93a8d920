// SPDX-License-Identifier: Apache-2.0
//! Deployments, replica sets, stateful sets and daemon sets.

use serde_json::Value;

use super::{
    labels,
    place::Place,
    pod,
    values::{self, int_or_percent},
};
use crate::{
    field::Error,
    names,
    object::{Object, as_object, child_object},
};

pub fn deployment(object: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Place::root(object);
    let spec = root.field("spec");
    spec.field("replicas").not_negative(&mut errors);
    selector(&spec, "deployment", true, &mut errors);
    template(&spec, "ReplicaSet", &mut errors);
    let strategy = spec.field("strategy");
    let rolling = strategy.field("rollingUpdate");
    match strategy.field("type").text() {
        "Recreate" if rolling.exists() => {
            errors.push(rolling.forbidden("may not be specified when strategy `type` is 'Recreate'"));
        }
        "Recreate" => {}
        "RollingUpdate" => rolling_update(&rolling, &mut errors),
        other => {
            errors.push(unknown_strategy(&strategy, other, Some("supported values: \"Recreate\", \"RollingUpdate\"")))
        }
    }
    for field in ["minReadySeconds", "revisionHistoryLimit"] {
        spec.field(field).not_negative(&mut errors);
    }
    let deadline = spec.field("progressDeadlineSeconds");
    deadline.not_negative(&mut errors);
    let ready = spec.field("minReadySeconds").number().unwrap_or_default();
    if deadline.number().is_some_and(|seconds| seconds <= ready) {
        errors.push(deadline.invalid("must be greater than minReadySeconds"));
    }
    errors
}

fn rolling_update(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let (surge, unavailable) = (at.field("maxSurge"), at.field("maxUnavailable"));
    int_or_percent(&unavailable, errors);
    int_or_percent(&surge, errors);
    if values::is_none(&surge) && values::is_none(&unavailable) {
        let shown = if unavailable.exists() { unavailable.value().clone() } else { 0.into() };
        errors.push(unavailable.invalid_as(shown, "may not be 0 when `maxSurge` is 0"));
    }
    values::at_most_all(&unavailable, errors);
}

/// A strategy is shown in the inner form of the real server.
fn unknown_strategy(at: &Place<'_, '_>, kind: &str, known: Option<&str>) -> Error {
    let shown = format!("{{\"Type\":{kind:?},\"RollingUpdate\":null}}");
    match known {
        Some(known) => Error { problem: crate::field::Problem::NotSupported, ..at.invalid_raw(&shown, known) },
        None => at.invalid_raw(&shown, "must be 'RollingUpdate' or 'OnDelete'"),
    }
}

/// The selector must be there and ask for something.
fn selector(spec: &Place<'_, '_>, kind: &str, required: bool, errors: &mut Vec<Error>) {
    let at = spec.field("selector");
    if !at.exists() {
        if required {
            errors.push(at.required(""));
        }
        return;
    }
    labels::selector(&at, errors);
    if labels::is_empty(at.value()) {
        errors.push(at.invalid_as(at.value().clone(), format!("empty selector is invalid for {kind}")));
    }
}

/// The template must be one that the selector selects, and run for ever.
fn template(spec: &Place<'_, '_>, kind: &str, errors: &mut Vec<Error>) {
    let template = spec.field("template");
    let chosen = spec.field("selector");
    selected(&chosen, &template, errors);
    let claims = spec.field("volumeClaimTemplates");
    let claims: Vec<&str> = claims.items().map(|claim| claim.field("metadata").field("name").text()).collect();
    pod::template_with_claims(&template, &claims, errors);
    let inner = template.field("spec");
    let policy = inner.field("restartPolicy");
    if !policy.is_empty() && policy.text() != "Always" {
        errors.push(policy.not_supported(&["Always"]));
    }
    let deadline = inner.field("activeDeadlineSeconds");
    if deadline.exists() {
        errors.push(deadline.forbidden(format!("activeDeadlineSeconds in {kind} is not Supported")));
    }
}

/// The labels of a template must be those that are selected. Nothing at all selects nothing.
pub fn selected(selector: &Place<'_, '_>, template: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let metadata = template.field("metadata");
    let found = metadata.field("labels");
    let fits = selector.exists() && labels::matches(selector.value(), Some(found.value()));
    if !fits {
        errors.push(found.invalid_as(found.value().clone(), "`selector` does not match template `labels`"));
    }
}

pub fn replica_set(object: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Place::root(object);
    let spec = root.field("spec");
    for field in ["replicas", "minReadySeconds"] {
        spec.field(field).not_negative(&mut errors);
    }
    selector(&spec, "deployment", true, &mut errors);
    template(&spec, "ReplicaSet", &mut errors);
    errors
}

pub fn stateful_set(object: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Place::root(object);
    let spec = root.field("spec");
    let policy = spec.field("podManagementPolicy");
    match policy.text() {
        "OrderedReady" | "Parallel" => {}
        "" => errors.push(policy.required("")),
        _ => errors.push(policy.invalid("must be 'OrderedReady' or 'Parallel'")),
    }
    let strategy = spec.field("updateStrategy");
    let rolling = strategy.field("rollingUpdate");
    match strategy.field("type").text() {
        "" => errors.push(strategy.required("")),
        "OnDelete" if rolling.exists() => {
            let why = "only allowed for updateStrategy 'RollingUpdate'";
            errors.push(rolling.invalid(why));
        }
        "OnDelete" => {}
        "RollingUpdate" => rolling.field("partition").not_negative(&mut errors),
        other => errors.push(unknown_strategy(&strategy, other, None)),
    }
    let retention = spec.field("persistentVolumeClaimRetentionPolicy");
    for field in ["whenDeleted", "whenScaled"] {
        retention.field(field).maybe_one_of(&["Retain", "Delete"], &mut errors);
    }
    for field in ["replicas", "minReadySeconds"] {
        spec.field(field).not_negative(&mut errors);
    }
    spec.field("ordinals").field("start").not_negative(&mut errors);
    let service = spec.field("serviceName");
    if !service.is_empty() {
        service.named(names::label, &mut errors);
    }
    selector(&spec, "statefulset", true, &mut errors);
    template(&spec, "StatefulSet", &mut errors);
    // The real server looks at these twice.
    let whole = spec.field("template");
    pod::template_metadata(&whole, &mut errors);
    errors
}

pub fn daemon_set(object: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Place::root(object);
    let spec = root.field("spec");
    selector(&spec, "daemonset", false, &mut errors);
    template(&spec, "DaemonSet", &mut errors);
    for field in ["minReadySeconds", "revisionHistoryLimit"] {
        spec.field(field).not_negative(&mut errors);
    }
    let strategy = spec.field("updateStrategy");
    let rolling = strategy.field("rollingUpdate");
    match strategy.field("type").text() {
        "OnDelete" => {}
        "RollingUpdate" => {
            let (surge, unavailable) = (rolling.field("maxSurge"), rolling.field("maxUnavailable"));
            int_or_percent(&unavailable, &mut errors);
            int_or_percent(&surge, &mut errors);
            values::at_most_all(&unavailable, &mut errors);
            values::at_most_all(&surge, &mut errors);
            match (values::is_none(&surge), values::is_none(&unavailable)) {
                (true, true) => errors.push(unavailable.required("cannot be 0 when maxSurge is 0")),
                (false, false) => errors.push(surge.invalid("may not be set when maxUnavailable is non-zero")),
                _ => {}
            }
        }
        other => {
            errors.push(unknown_strategy(&strategy, other, Some("supported values: \"RollingUpdate\", \"OnDelete\"")));
        }
    }
    errors
}

/// Labels of a deployment are not for writers of its status.
pub fn deployment_status(new: &mut Value, old: &Value) {
    super::keep_all_but_status(new, old);
    match old.meta().and_then(|meta| meta.get("labels")).cloned() {
        Some(labels) => new.set_meta("labels", labels),
        None => drop(new.meta_mut().remove("labels")),
    }
}

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Daemon sets count the changes of their template in an annotation.
pub fn daemon_set_create(object: &mut Value) {
    child_object(object.meta_mut(), "annotations").insert(TEMPLATE_GENERATION.into(), "1".into());
}

pub fn daemon_set_update(new: &mut Value, old: &Value) {
    let count: i64 = old.annotation(TEMPLATE_GENERATION).and_then(|count| count.parse().ok()).unwrap_or_default();
    let changed = new.pointer("/spec/template") != old.pointer("/spec/template");
    let count = (count + i64::from(changed)).to_string();
    child_object(new.meta_mut(), "annotations").insert(TEMPLATE_GENERATION.into(), count.into());
}

/// This number is written even when it is nothing.
pub fn stateful_set_create(object: &mut Value) {
    child_object(as_object(object), "status").insert("availableReplicas".into(), 0.into());
}

/// What a selector selects may not change.
pub fn fixed_selector(new: &Value, old: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let (root, before) = (Place::root(new), Place::root(old));
    let (spec, old_spec) = (root.field("spec"), before.field("spec"));
    spec.field("selector").fixed(&old_spec.field("selector"), &mut errors);
    errors
}

pub fn stateful_set_update(new: &Value, old: &Value) -> Vec<Error> {
    const FREE: [&str; 7] = [
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    const WHY: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
    let rest = |object: &Value| -> Vec<(String, Value)> {
        let spec = object.get("spec").and_then(Value::as_object).into_iter().flatten();
        spec.filter(|(key, _)| !FREE.contains(&key.as_str())).map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    if rest(new) == rest(old) { Vec::new() } else { vec![Error::forbidden("spec", WHY)] }
}
