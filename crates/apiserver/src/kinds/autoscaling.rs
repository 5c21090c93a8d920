// SPDX-License-Identifier: Apache-2.0
//! Autoscalers. The second version is stored; the first one knows only the CPU, and keeps the rest in annotations.

use serde_json::{Map, Value, json};

use super::{Rules, place::Place};
use crate::{
    field::Error,
    object::{Object, as_object, child_object, text},
};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// The rules of a version.
pub fn rules(version: &str) -> &'static Rules {
    static SECOND: Rules = Rules { kind: "HorizontalPodAutoscaler", check, ..Rules::PLAIN };
    static FIRST: Rules = Rules {
        kind: "HorizontalPodAutoscaler",
        stored_as: Some("autoscaling/v2"),
        to_stored,
        from_stored,
        check: check_first,
        ..Rules::PLAIN
    };
    if version == "v1" { &FIRST } else { &SECOND }
}

/// From the first version to the second.
pub fn to_stored(object: &mut Value) {
    let percent = as_object(object).get_mut("spec").and_then(Value::as_object_mut);
    let percent = percent.and_then(|spec| spec.remove("targetCPUUtilizationPercentage"));
    let mut metrics: Vec<Value> = Vec::new();
    for (annotation, pointer) in [(METRICS, "metrics"), (BEHAVIOR, "behavior")] {
        let kept = child_object(object.meta_mut(), "annotations").remove(annotation);
        let Some(kept) = kept.and_then(|kept| serde_json::from_str::<Value>(kept.as_str()?).ok()) else { continue };
        if pointer == "metrics" {
            metrics.extend(kept.as_array().into_iter().flatten().map(newer));
        } else {
            child_object(as_object(object), "spec").insert(pointer.into(), lower(&kept));
        }
    }
    if object.meta().is_some_and(|meta| meta.get("annotations") == Some(&json!({}))) {
        object.meta_mut().remove("annotations");
    }
    if let Some(percent) = percent {
        let target = json!({ "type": "Utilization", "averageUtilization": percent });
        metrics.push(json!({ "type": "Resource", "resource": { "name": "cpu", "target": target } }));
    }
    if !metrics.is_empty() {
        child_object(as_object(object), "spec").insert("metrics".into(), metrics.into());
    }
    let status = child_object(as_object(object), "status");
    if status.get("currentReplicas") == Some(&json!(0)) {
        status.remove("currentReplicas");
    }
    status.remove("currentCPUUtilizationPercentage");
    status.entry("desiredReplicas").or_insert_with(|| 0.into());
    status.entry("currentMetrics").or_insert(Value::Null);
}

/// From the second version to the first.
pub fn from_stored(object: &mut Value) {
    let spec = child_object(as_object(object), "spec");
    let metrics = spec.remove("metrics").unwrap_or_default();
    let behavior = spec.remove("behavior");
    let (cpu, others): (Vec<&Value>, Vec<&Value>) =
        metrics.as_array().into_iter().flatten().partition(|one| is_cpu(one));
    if let Some(percent) = cpu.first().and_then(|one| one.pointer("/resource/target/averageUtilization")) {
        spec.insert("targetCPUUtilizationPercentage".into(), percent.clone());
    }
    if !others.is_empty() {
        let list: Vec<String> = others.into_iter().map(older).collect();
        let text = format!("[{}]", list.join(","));
        child_object(object.meta_mut(), "annotations").insert(METRICS.into(), text.into());
    }
    if let Some(behavior) = behavior {
        child_object(object.meta_mut(), "annotations").insert(BEHAVIOR.into(), inner(&behavior).into());
    }
    let status = child_object(as_object(object), "status");
    status.remove("currentMetrics");
    status.remove("conditions");
    for field in ["currentReplicas", "desiredReplicas"] {
        status.entry(field).or_insert_with(|| 0.into());
    }
}

fn is_cpu(metric: &Value) -> bool {
    text(metric, "/resource/name") == "cpu" && text(metric, "/resource/target/type") == "Utilization"
}

/// A metric in the words of the version before the second.
fn older(metric: &Value) -> String {
    let name = text(metric, "/resource/name");
    let target = match (
        metric.pointer("/resource/target/averageUtilization"),
        metric.pointer("/resource/target/averageValue"),
    ) {
        (Some(percent), _) => format!(",\"targetAverageUtilization\":{percent}"),
        (None, Some(value)) => format!(",\"targetAverageValue\":{value}"),
        _ => return metric.to_string(),
    };
    format!("{{\"type\":\"Resource\",\"resource\":{{\"name\":{name:?}{target}}}}}")
}

fn newer(metric: &Value) -> Value {
    let resource = metric.get("resource").unwrap_or(&Value::Null);
    let target = match (resource.get("targetAverageUtilization"), resource.get("targetAverageValue")) {
        (Some(percent), _) => json!({ "type": "Utilization", "averageUtilization": percent }),
        (None, Some(value)) => json!({ "type": "AverageValue", "averageValue": value }),
        _ => return metric.clone(),
    };
    json!({ "type": "Resource", "resource": { "name": resource.get("name"), "target": target } })
}

/// The behaviour in the inner form of the real server, with fields in its order.
fn inner(behavior: &Value) -> String {
    let rules = |name: &str| {
        let Some(rules) = behavior.get(name) else { return "null".to_owned() };
        let part = |field: &str| rules.get(field).cloned().unwrap_or_default();
        let policies: Vec<String> = part("policies")
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| {
                let of = |field: &str| one.get(field).cloned().unwrap_or_default();
                format!(
                    "{{\"Type\":{},\"Value\":{},\"PeriodSeconds\":{}}}",
                    of("type"),
                    of("value"),
                    of("periodSeconds")
                )
            })
            .collect();
        format!(
            "{{\"StabilizationWindowSeconds\":{},\"SelectPolicy\":{},\"Policies\":[{}],\"Tolerance\":{}}}",
            part("stabilizationWindowSeconds"),
            part("selectPolicy"),
            policies.join(","),
            part("tolerance")
        )
    };
    format!("{{\"ScaleUp\":{},\"ScaleDown\":{}}}", rules("scaleUp"), rules("scaleDown"))
}

/// The same value with names that begin with a small letter, and without `null`.
fn lower(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let small =
                |key: &str| key.chars().take(1).flat_map(char::to_lowercase).chain(key.chars().skip(1)).collect();
            let fields: Map<String, Value> = map
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (small(key), lower(value)))
                .collect();
            Value::Object(fields)
        }
        Value::Array(list) => list.iter().map(lower).collect(),
        other => other.clone(),
    }
}

pub fn check_first(object: &Value) -> Vec<Error> {
    let mut object = object.clone();
    to_stored(&mut object);
    check(&object)
}

pub fn check(object: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Place::root(object);
    let spec = root.field("spec");
    let (least, most) = (spec.field("minReplicas"), spec.field("maxReplicas"));
    if least.number().is_some_and(|number| number < 1) {
        errors.push(least.invalid("must be greater than or equal to 1"));
    }
    let highest = most.number().unwrap_or_default();
    if highest < 1 {
        errors.push(most.required("must be set and greater than 0"));
    }
    if least.number().is_some_and(|least| highest < least) {
        errors.push(most.invalid_as(highest, "must be greater than or equal to `minReplicas`"));
    }
    let target = spec.field("scaleTargetRef");
    for field in ["kind", "name"] {
        target.field(field).must_be(&mut errors);
    }
    let version = target.field("apiVersion");
    if version.is_empty() {
        errors.push(version.invalid("apiVersion must specify API group"));
    }
    for metric in spec.field("metrics").items() {
        self::metric(&metric, &mut errors);
    }
    let behavior = spec.field("behavior");
    for way in ["scaleUp", "scaleDown"] {
        scaling(&behavior.field(way), &mut errors);
    }
    errors
}

fn metric(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    const TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];
    let kind = at.field("type");
    if kind.is_empty() {
        errors.push(kind.required("must specify a metric source type"));
        return;
    }
    if !TYPES.contains(&kind.text()) {
        // Told twice by the real server.
        errors.extend([kind.not_supported(&TYPES), kind.not_supported(&TYPES)]);
        return;
    }
    let field: String =
        kind.text().chars().take(1).flat_map(char::to_lowercase).chain(kind.text().chars().skip(1)).collect();
    let source = at.field(&field);
    if !source.exists() {
        errors.push(source.required("must populate information for the given metric source"));
        return;
    }
    let target = source.field("target");
    let (share, value) = (target.field("averageUtilization"), target.field("averageValue"));
    if ["resource", "containerResource"].contains(&field.as_str()) && !share.exists() && !value.exists() {
        errors.push(share.required("must set either a target raw value or a target utilization"));
    }
}

fn scaling(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    if !at.exists() {
        return;
    }
    let window = at.field("stabilizationWindowSeconds");
    if window.number().is_some_and(|seconds| seconds < 0) {
        errors.push(window.invalid("must be greater than or equal to zero"));
    }
    if window.number().is_some_and(|seconds| seconds > 3600) {
        errors.push(window.invalid("must be less than or equal to 3600"));
    }
    at.field("selectPolicy").maybe_one_of(&["Disabled", "Max", "Min"], errors);
    for policy in at.field("policies").items() {
        policy.field("type").one_of(&["Percent", "Pods"], errors);
        for field in ["value", "periodSeconds"] {
            let place = policy.field(field);
            if place.number().unwrap_or_default() <= 0 {
                errors.push(place.invalid_as(place.number().unwrap_or_default(), "must be greater than zero"));
            }
        }
    }
}
