// SPDX-License-Identifier: Apache-2.0
//! Events. There are two kinds of them, with other names for the same fields; the older one is stored.

use serde_json::{Value, json};

use super::place::Place;
use crate::{
    field::Error,
    names,
    object::{Object, as_object},
};

/// Names of the newer kind, and those of the older one.
const NAMES: [(&str, &str); 7] = [
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// From the newer kind to the older one.
pub fn to_stored(event: &mut Value) {
    let map = as_object(event);
    for (new, old) in NAMES {
        if let Some(value) = map.remove(new) {
            map.insert(old.to_owned(), value);
        }
    }
    // These are always written, even if they are nothing.
    for (field, nothing) in [
        ("involvedObject", json!({})),
        ("source", json!({})),
        ("firstTimestamp", Value::Null),
        ("lastTimestamp", Value::Null),
        ("eventTime", Value::Null),
        ("reportingComponent", "".into()),
        ("reportingInstance", "".into()),
    ] {
        map.entry(field).or_insert(nothing);
    }
}

/// From the older kind to the newer one.
pub fn from_stored(event: &mut Value) {
    let map = as_object(event);
    for (new, old) in NAMES {
        if let Some(value) = map.remove(old) {
            map.insert(new.to_owned(), value);
        }
    }
    for field in ["reportingController", "reportingInstance"] {
        if map.get(field) == Some(&json!("")) {
            map.remove(field);
        }
    }
    for (field, nothing) in [
        ("regarding", json!({})),
        ("deprecatedSource", json!({})),
        ("deprecatedFirstTimestamp", Value::Null),
        ("deprecatedLastTimestamp", Value::Null),
        ("eventTime", Value::Null),
    ] {
        map.entry(field).or_insert(nothing);
    }
}

/// An event is where its object is. Those about things without namespace are in `default`.
fn place(event: &Value, errors: &mut Vec<Error>) {
    let root = Place::root(event);
    let involved = root.field("involvedObject");
    let about = involved.field("namespace");
    let own = event.namespace();
    let fits =
        if about.text().is_empty() { ["default", "kube-system", ""].contains(&own) } else { about.text() == own };
    if !fits {
        errors.push(about.invalid_as(about.text(), "does not match event.namespace"));
    }
}

pub fn check(event: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    place(event, &mut errors);
    errors
}

/// The newer kind asks for more when it is created. What is wrong is told in the names of the older one.
pub fn check_new(event: &Value) -> Vec<Error> {
    let mut event = event.clone();
    to_stored(&mut event);
    let mut errors = Vec::new();
    place(&event, &mut errors);
    let root = Place::root(&event);
    let time = root.field("eventTime");
    if !time.exists() {
        errors.push(time.required(""));
    }
    let kind = root.field("type");
    if !["Normal", "Warning"].contains(&kind.text()) {
        errors.push(kind.invalid_as("", format!("has invalid value: {}", kind.text())));
    }
    for field in ["firstTimestamp", "lastTimestamp", "count"] {
        let place = root.field(field);
        if place.exists() {
            errors.push(place.invalid_as("", "needs to be unset"));
        }
    }
    if !root.field("source").is_empty() {
        errors.push(root.field("source").invalid_as("", "needs to be unset"));
    }
    if time.exists() {
        reporter(&root, &mut errors);
    }
    errors
}

fn reporter(root: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let controller = root.field("reportingComponent");
    let told = root.field("reportingController");
    if controller.is_empty() {
        errors.push(told.required(""));
    }
    let name = controller.text();
    errors.extend(names::qualified_name(name).into_iter().map(|why| told.invalid_as(name, why)));
    for field in ["reportingInstance", "action", "reason"] {
        root.field(field).must_be(errors);
    }
    for (field, most) in [("reportingInstance", 128), ("action", 128), ("reason", 128), ("message", 1024)] {
        if root.field(field).text().len() > most {
            errors.push(root.field(field).invalid(format!("can have at most {most} characters")));
        }
    }
}

/// What was said about a happening stays; only how often it comes changes.
pub fn check_new_update(new: &Value, old: &Value) -> Vec<Error> {
    const FIXED: [&str; 12] = [
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "reportingComponent",
        "reportingInstance",
        "action",
        "related",
        "type",
    ];
    let (mut new, mut old) = (new.clone(), old.clone());
    to_stored(&mut new);
    to_stored(&mut old);
    let mut errors = Vec::new();
    let (root, before) = (Place::root(&new), Place::root(&old));
    for field in FIXED {
        root.field(field).fixed(&before.field(field), &mut errors);
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_is_the_same() {
        let newer = json!({
            "regarding": { "kind": "Pod" }, "note": "n", "reportingController": "c", "reportingInstance": "i",
            "deprecatedSource": {}, "deprecatedFirstTimestamp": null, "deprecatedLastTimestamp": null, "eventTime": null,
            "deprecatedCount": 3,
        });
        let mut event = newer.clone();
        to_stored(&mut event);
        assert_eq!((&event["message"], &event["count"]), (&json!("n"), &json!(3)));
        from_stored(&mut event);
        assert_eq!(event, newer);
    }
}
