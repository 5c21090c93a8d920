// SPDX-License-Identifier: Apache-2.0
//! The state in which a run ends, without what differs by nature: times, uids, revisions.

use std::collections::BTreeMap;

use bivouac_apiserver::store::{Keyspace, Range, Store};
use serde_json::{Value, json};

/// Objects by keyspace and key.
pub type End = BTreeMap<String, Value>;

/// Told to people, renewed for ever, or only a picture of other objects: no part of what must be equal.
const PASSING: [&str; 5] =
    ["events", "events.k8s.io/events", "coordination.k8s.io/leases", "endpoints", "discovery.k8s.io/endpointslices"];
/// Fields that say when, or which of many equal ones.
const MOVING: [&str; 30] = [
    "uid",
    "bivouac.dev/owner-uid",
    // What a cloud calls what it sold.
    "machine",
    "resourceVersion",
    "generation",
    "observedGeneration",
    "creationTimestamp",
    "lastTransitionTime",
    "time",
    "bivouac.dev/applied",
    // When and where pods ran.
    "startTime",
    "completionTime",
    "startedAt",
    "finishedAt",
    "lastProbeTime",
    "lastHeartbeatTime",
    "deletionTimestamp",
    "containerID",
    "podIP",
    "podIPs",
    "ip",
    "hostIP",
    "hostIPs",
    "nodeName",
    "bootID",
    "machineID",
    "systemUUID",
    "controller-uid",
    "batch.kubernetes.io/controller-uid",
    // Keys are made of chance.
    "curve.cert",
];

/// Everything that was written after a revision and is still there.
pub fn of(store: &Store, after: u64) -> End {
    let mut end = End::new();
    let chance = generated(store);
    for keyspace in store.keyspaces() {
        if !counts(&keyspace) {
            continue;
        }
        let Ok(page) = store.range(&keyspace, &Range::default(), |stored| stored.revision() > after) else {
            continue;
        };
        let placed = page.items.iter().map(|stored| {
            let mut text = String::from_utf8_lossy(stored.body()).into_owned();
            for (name, prefix) in chance.iter().filter(|(name, _)| !stored.key().ends_with(name.as_str())) {
                text = text.replace(name, &format!("{prefix}*"));
            }
            let mut object: Value = serde_json::from_str(&text).unwrap_or_default();
            neutral(&mut object);
            (place(stored.key(), &mut object), object)
        });
        // Several of one generated name have no order of their own.
        let mut placed: Vec<_> = placed.collect();
        placed.sort_by_cached_key(|(key, object)| (key.clone(), object.to_string()));
        for (key, object) in placed {
            let mut place = format!("{} {key}", keyspace.as_str());
            while end.contains_key(&place) {
                place.push('+');
            }
            end.insert(place, object);
        }
    }
    end
}

/// Names that the server made, by which others speak of an object, and what they begin with.
fn generated(store: &Store) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for keyspace in store.keyspaces().iter().filter(|keyspace| counts(keyspace)) {
        let Ok(page) = store.range(keyspace, &Range::default(), |_| true) else { continue };
        for stored in page.items {
            let object: Value = serde_json::from_slice(stored.body()).unwrap_or_default();
            let text = |field: &str| object.pointer(&format!("/metadata/{field}")).and_then(Value::as_str);
            if let (Some(name), Some(prefix)) = (text("name"), text("generateName")) {
                names.insert(name.to_owned(), prefix.to_owned());
            }
        }
    }
    names
}

/// Where an object stands. The end of a generated name is chance.
fn place(key: &str, object: &mut Value) -> String {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return key.to_owned() };
    match metadata.get("generateName").and_then(Value::as_str).map(str::to_owned) {
        Some(prefix) => {
            metadata.remove("name");
            let namespace = key.split_once('/').map_or("", |(namespace, _)| namespace);
            format!("{namespace}/{prefix}*")
        }
        None => key.to_owned(),
    }
}

/// Whether a keyspace counts.
pub fn counts(keyspace: &Keyspace) -> bool {
    !PASSING.contains(&keyspace.as_str())
}

fn neutral(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !MOVING.contains(&key.as_str()));
            // A reference among managed fields is named after the uid in it.
            let named: Vec<String> = fields.keys().filter(|key| key.starts_with(r#"k:{"uid""#)).cloned().collect();
            for (n, key) in named.iter().enumerate() {
                let value = fields.remove(key).unwrap_or_default();
                fields.insert(format!("k:uid-{n}"), value);
            }
            fields.values_mut().for_each(neutral);
        }
        Value::Array(items) => {
            items.iter_mut().for_each(neutral);
            // Managers stand in the order in which they came. What people did by hand depends on when they could.
            if items.iter().all(|item| item.get("manager").is_some()) {
                items.retain(is_ours);
                items.sort_by_key(Value::to_string);
            }
        }
        _ => {}
    }
}

/// Whether an entry among managed fields is of a controller under test.
fn is_ours(entry: &Value) -> bool {
    let manager = entry.get("manager").and_then(Value::as_str).unwrap_or_default();
    manager.starts_with("bivouac") || manager == "keeper"
}

/// What is different, in words. Nothing if nothing is.
pub fn differences(expected: &End, found: &End) -> Vec<String> {
    let mut words = Vec::new();
    for (key, object) in expected {
        match found.get(key) {
            None => words.push(format!("{key} is missing in the end")),
            Some(other) if other != object => {
                let (path, one, two) = first_difference("", object, other);
                words.push(format!("{key} ends differently: {path} is {two}, undisturbed it is {one}"));
            }
            Some(_) => {}
        }
    }
    words.extend(found.keys().filter(|key| !expected.contains_key(*key)).map(|key| format!("{key} is left over")));
    words
}

fn first_difference(path: &str, one: &Value, two: &Value) -> (String, Value, Value) {
    if let (Value::Object(a), Value::Object(b)) = (one, two) {
        let keys = a.keys().chain(b.keys());
        let other = |side: &serde_json::Map<String, Value>, key: &str| side.get(key).cloned().unwrap_or(json!(null));
        if let Some(key) = keys.into_iter().find(|key| a.get(*key) != b.get(*key)) {
            return first_difference(&format!("{path}.{key}"), &other(a, key), &other(b, key));
        }
    }
    (path.trim_start_matches('.').to_owned(), one.clone(), two.clone())
}

/// Whether an object has at least what is asked for. Items of lists are matched in any order.
pub fn has(object: &Value, wanted: &Value) -> bool {
    match (object, wanted) {
        (Value::Object(fields), Value::Object(wanted)) => {
            wanted.iter().all(|(key, value)| fields.get(key).is_some_and(|field| has(field, value)))
        }
        (Value::Array(items), Value::Array(wanted)) => {
            wanted.iter().all(|value| items.iter().any(|item| has(item, value)))
        }
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_say_where() {
        let end = |value: Value| End::from([("pods a/b".to_owned(), value)]);
        let one = end(json!({ "spec": { "x": 1, "y": [1, 2] } }));
        assert_eq!(differences(&one, &one), Vec::<String>::new());
        let words = differences(&one, &end(json!({ "spec": { "x": 1, "y": [2] } })));
        assert_eq!(words, ["pods a/b ends differently: spec.y is [2], undisturbed it is [1,2]"]);
        assert_eq!(differences(&one, &End::new()), ["pods a/b is missing in the end"]);
        assert_eq!(differences(&End::new(), &one), ["pods a/b is left over"]);
    }

    #[test]
    fn having_is_having_at_least() {
        let object = json!({ "a": [{ "type": "Ready", "status": "True" }, { "type": "B" }], "c": 1 });
        assert!(has(&object, &json!({ "a": [{ "type": "B" }, { "type": "Ready" }] })));
        assert!(!has(&object, &json!({ "a": [{ "type": "Ready", "status": "False" }] })));
    }
}
