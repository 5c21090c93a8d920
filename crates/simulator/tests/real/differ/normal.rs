// SPDX-License-Identifier: Apache-2.0
//! Takes away what may differ: identities, times, and the ends of names that servers choose.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

static UID: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").unwrap());
static TIME: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").unwrap());
/// The server's letters: no vowels, and none that look like others.
static END: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b").unwrap());
/// Ends that controllers make out of a template are hashes: ours and theirs differ, but each is stable.
static HASH: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b[bcdfghjklmnpqrstvwxz2456789]{8,10}\b").unwrap());

/// Makes conditions alike between which chance decides.
pub fn forget_chance(state: &mut Value, reasons: &[String]) {
    match state {
        Value::Array(list) => list.iter_mut().for_each(|one| forget_chance(one, reasons)),
        Value::Object(map) => {
            if map.get("reason").and_then(Value::as_str).is_some_and(|reason| reasons.iter().any(|one| one == reason)) {
                map.insert("reason".to_owned(), json!(reasons));
                map.remove("message");
            }
            map.values_mut().for_each(|one| forget_chance(one, reasons));
        }
        _ => {}
    }
}

/// All objects of a kind, in an order that does not depend on what was taken away.
pub fn objects(all: &[Value], namespace: &str) -> Value {
    let mut plain: Vec<Value> = all
        .iter()
        .filter(|one| one["metadata"]["name"] != "kube-root-ca.crt")
        .map(|one| object(one, namespace))
        .collect();
    plain.sort_by_cached_key(ToString::to_string);
    Value::Array(plain)
}

fn object(object: &Value, namespace: &str) -> Value {
    let mut object = object.clone();
    if let Some(meta) = object["metadata"].as_object_mut() {
        for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink"] {
            meta.remove(field);
        }
        // Which of several changes came last is a matter of milliseconds.
        if let Some(annotations) = meta.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove("endpoints.kubernetes.io/last-change-trigger-time");
            if annotations.is_empty() {
                meta.remove("annotations");
            }
        }
    }
    for condition in object.pointer_mut("/status/conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(fields) = condition.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
    }
    plain(&mut object, namespace);
    // A set: new ones are put where there is room.
    if let Some(endpoints) = object.get_mut("endpoints").and_then(Value::as_array_mut) {
        endpoints.sort_by_cached_key(ToString::to_string);
    }
    object
}

fn plain(value: &mut Value, namespace: &str) {
    match value {
        Value::String(text) => *text = words(text, namespace),
        Value::Array(list) => list.iter_mut().for_each(|one| plain(one, namespace)),
        Value::Object(map) => map.values_mut().for_each(|one| plain(one, namespace)),
        _ => {}
    }
}

fn words(text: &str, namespace: &str) -> String {
    let text = text.replace(namespace, "NAMESPACE");
    let text = UID.replace_all(&text, "UID");
    let text = TIME.replace_all(&text, "TIME");
    let text = HASH.replace_all(&text, "HASH");
    END.replace_all(&text, "-*").into_owned()
}

/// What was told, each thing once, in the order of the alphabet. What is told only by chance is left out.
pub fn events(all: &[Value], namespace: &str, by_chance: &[String]) -> Value {
    let text = |event: &Value, field: &str| words(event[field].as_str().unwrap_or_default(), namespace);
    let mut told: Vec<Value> = all
        .iter()
        // There are no volumes in the simulation.
        .filter(|event| event["source"]["component"] != "persistentvolume-controller")
        .filter(|event| !by_chance.iter().any(|reason| event["reason"] == reason.as_str()))
        .map(|event| {
            let about = words(event["involvedObject"]["name"].as_str().unwrap_or_default(), namespace);
            let kind = event["involvedObject"]["kind"].as_str().unwrap_or_default();
            json!(format!(
                "{kind} {about} {} {} {} {}",
                event["source"]["component"].as_str().unwrap_or_default(),
                text(event, "type"),
                text(event, "reason"),
                text(event, "message")
            ))
        })
        .collect();
    told.sort_by_cached_key(ToString::to_string);
    told.dedup();
    Value::Array(told)
}

/// Where two outcomes differ.
pub fn differences(at: &str, real: &Value, ours: &Value, found: &mut Vec<String>) {
    match (real, ours) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            for key in keys {
                differences(
                    &format!("{at}/{key}"),
                    a.get(key).unwrap_or(&Value::Null),
                    b.get(key).unwrap_or(&Value::Null),
                    found,
                );
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{at}/{index}"), a, b, found);
            }
        }
        (a, b) if a != b => found.push(format!("{at}: real {a}, ours {b}")),
        _ => {}
    }
}
