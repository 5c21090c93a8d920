// SPDX-License-Identifier: Apache-2.0
//! Who owns the replicas: told between an object and its scale, with what the real server loses on the way.

use serde_json::{Map, Value, json};

/// The version of every scale.
pub const VERSION: &str = "autoscaling/v1";

/// Where the replicas are in an object of this version.
pub struct Replicas<'a> {
    pub version: &'a str,
    /// As a pointer, like `/spec/replicas`.
    pub pointer: &'a str,
}

impl Replicas<'_> {
    /// The managers of the scale: those of the object that own its replicas.
    pub fn to_scale(&self, object: &Value) -> Vec<Value> {
        let owners = unique(object).into_iter().filter(|entry| self.owned_by(entry));
        owners
            .map(|entry| {
                let mut entry = entry.clone();
                entry.insert("apiVersion".into(), VERSION.into());
                entry.insert("fieldsV1".into(), json!({ "f:spec": { "f:replicas": {} } }));
                Value::Object(entry)
            })
            .collect()
    }

    /// The managers of the object after a write to its scale. Updaters are never found again, because their version is
    /// part of who they are; and whoever is new has no time.
    pub fn to_object(&self, object: &Value, scale: &Value) -> Vec<Value> {
        let (known, written) = (unique(object), unique(scale));
        let mut entries = Vec::new();
        for entry in &known {
            let stays = !self.owned_by(entry) || written.iter().any(|one| identity(one) == identity(entry));
            let mut entry = (*entry).clone();
            if !stays {
                let way: Vec<String> = self.pointer.split('/').skip(1).map(|part| format!("f:{part}")).collect();
                let fields = entry.get_mut("fieldsV1").and_then(Value::as_object_mut);
                fields.into_iter().for_each(|fields| remove(fields, &way));
            }
            if entry.get("fieldsV1").and_then(Value::as_object).is_some_and(|fields| !fields.is_empty()) {
                entries.push(Value::Object(entry));
            }
        }
        let owns = |entry: &&&Map<String, Value>| {
            entry.get("fieldsV1").is_some_and(|fields| fields.pointer("/f:spec/f:replicas").is_some())
        };
        for entry in written.iter().filter(owns) {
            if known.iter().any(|one| identity(one) == identity(entry)) {
                continue;
            }
            let mut entry = (*entry).clone();
            entry.remove("time");
            entry.insert("apiVersion".into(), self.version.into());
            let fields = self.pointer.rsplit('/').filter(|part| !part.is_empty());
            let fields = fields.fold(json!({}), |below, part| json!({ format!("f:{part}"): below }));
            entry.insert("fieldsV1".into(), fields);
            entries.push(Value::Object(entry));
        }
        entries.sort_by_cached_key(order);
        entries
    }

    fn owned_by(&self, entry: &Map<String, Value>) -> bool {
        let pointer = self.pointer.replace('/', "/f:");
        text(entry, "apiVersion") == self.version
            && entry.get("fieldsV1").is_some_and(|fields| fields.pointer(&pointer).is_some())
    }
}

/// The managers of an object. Of two that are the same the later one counts.
fn unique(object: &Value) -> Vec<&Map<String, Value>> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let mut all: Vec<&Map<String, Value>> = Vec::new();
    for entry in entries.into_iter().flatten().filter_map(Value::as_object) {
        match all.iter_mut().find(|one| identity(one) == identity(entry)) {
            Some(one) => *one = entry,
            None => all.push(entry),
        }
    }
    all
}

fn identity(entry: &Map<String, Value>) -> [&str; 4] {
    let operation = text(entry, "operation");
    let version = if operation == "Apply" { "" } else { text(entry, "apiVersion") };
    [text(entry, "manager"), operation, version, text(entry, "subresource")]
}

/// Appliers first, then by time, where none comes before any.
fn order(entry: &Value) -> [String; 5] {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    ["operation", "time", "manager", "apiVersion", "subresource"].map(text)
}

fn text<'a>(entry: &'a Map<String, Value>, name: &str) -> &'a str {
    entry.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Takes a field out of a set. Its parent stays if it is in the set itself.
fn remove(fields: &mut Map<String, Value>, way: &[String]) {
    let Some((first, rest)) = way.split_first() else { return };
    if rest.is_empty() {
        fields.remove(first);
        return;
    }
    let Some(Value::Object(below)) = fields.get_mut(first) else { return };
    remove(below, rest);
    match below.len() {
        0 => drop(fields.remove(first)),
        1 => drop(below.remove(".")),
        _ => {}
    }
}
