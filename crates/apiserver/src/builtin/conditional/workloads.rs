// SPDX-License-Identifier: Apache-2.0
//! Kinds that make pods.

use serde_json::{Value, json};

use super::{Fields, fill, text};

/// Parameters of a rolling update exist only when that is the strategy. What is given is completed.
pub(super) fn rolling(fields: &mut Fields, parameters: Value) {
    fill(fields, "type", "RollingUpdate");
    if text(fields, "type") != "RollingUpdate" {
        return;
    }
    let given = fields.entry("rollingUpdate").or_insert_with(|| json!({}));
    if let (Some(given), Value::Object(parameters)) = (given.as_object_mut(), parameters) {
        parameters.into_iter().for_each(|(name, value)| fill(given, &name, value));
    }
}

/// A replication controller selects what its template makes.
pub(super) fn selector(fields: &mut Fields) {
    let labels = fields.get("template").and_then(|template| template.pointer("/metadata/labels")).cloned();
    if let Some(labels) = labels {
        fill(fields, "selector", labels);
    }
}

/// Of jobs themselves, not of the templates of cron jobs.
pub(super) fn job(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        fill(spec, "completions", 1);
    }
    fill(spec, "parallelism", 1);
    let per_index = spec.contains_key("backoffLimitPerIndex");
    fill(spec, "backoffLimit", if per_index { i32::MAX } else { 6 });
    let failure = spec.contains_key("podFailurePolicy");
    fill(spec, "podReplacementPolicy", if failure { "Failed" } else { "TerminatingOrFailed" });
    labels(object);
}

/// A job selects its pods by its uid, which has to be there.
pub(super) fn select_own(object: &mut Value) {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (uid, name) = (text("/metadata/uid"), text("/metadata/name"));
    // They are one map in the real server, so that what is added to one is added to both.
    let shared = object.pointer("/metadata/labels") == object.pointer("/spec/template/metadata/labels");
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let manual = spec.get("manualSelector") == Some(&json!(true)) || spec.contains_key("selector");
    if manual || uid.is_empty() {
        return;
    }
    spec.insert("selector".to_owned(), json!({ "matchLabels": { "batch.kubernetes.io/controller-uid": uid } }));
    let metadata = spec.entry("template").or_insert_with(|| json!({})).as_object_mut();
    let metadata =
        metadata.and_then(|template| template.entry("metadata").or_insert_with(|| json!({})).as_object_mut());
    let own = metadata.and_then(|metadata| metadata.entry("labels").or_insert_with(|| json!({})).as_object_mut());
    let Some(own) = own else { return };
    for prefix in ["", "batch.kubernetes.io/"] {
        own.insert(format!("{prefix}controller-uid"), uid.as_str().into());
        own.insert(format!("{prefix}job-name"), name.as_str().into());
    }
    let own = own.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut).filter(|_| shared) {
        metadata.insert("labels".to_owned(), own.into());
    }
}

/// Without labels of its own the object gets those of its template.
pub(super) fn labels(object: &mut Value) {
    let Some(Value::Object(labels)) = object.pointer("/spec/template/metadata/labels").cloned() else { return };
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        fill(metadata, "labels", labels);
    }
}

/// How an autoscaler scales; up is other than down.
pub(super) fn behavior(object: &mut Value) {
    let Some(behavior) = object.pointer_mut("/spec/behavior").and_then(Value::as_object_mut) else { return };
    let percent = json!({ "type": "Percent", "value": 100, "periodSeconds": 15 });
    let pods = json!({ "type": "Pods", "value": 4, "periodSeconds": 15 });
    let up = behavior.entry("scaleUp").or_insert_with(|| json!({}));
    up.as_object_mut().into_iter().for_each(|up| fill(up, "stabilizationWindowSeconds", 0));
    for (name, policies) in [("scaleUp", json!([pods, percent])), ("scaleDown", json!([percent]))] {
        if let Some(rules) = behavior.entry(name).or_insert_with(|| json!({})).as_object_mut() {
            fill(rules, "selectPolicy", "Max");
            fill(rules, "policies", policies);
        }
    }
}
