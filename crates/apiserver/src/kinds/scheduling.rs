// SPDX-License-Identifier: Apache-2.0
//! Priority classes and leases.

use serde_json::Value;

use super::place::Place;
use crate::{field::Error, object::Object};

const HIGHEST: i64 = 1_000_000_000;
const OWN: [(&str, i64); 2] = [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

pub fn priority(object: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Place::root(object);
    let value = root.field("value");
    let number = value.number().unwrap_or_default();
    if object.name().starts_with("system-") {
        if !OWN.contains(&(object.name(), number)) {
            let name = object.name();
            let known = OWN.iter().find(|(known, _)| *known == name);
            let why = match known {
                Some((_, right)) => format!("value of {name} PriorityClass must be {right}"),
                None => format!("{name} is not a known system priority class"),
            };
            let text =
                format!("priority class names with 'system-' prefix are reserved for system use only. error: {why}");
            errors.push(Error::forbidden("metadata.name", text));
        }
    } else if number > HIGHEST {
        errors.push(value.forbidden(format!("maximum allowed value of a user defined priority is {HIGHEST}")));
    }
    root.field("preemptionPolicy").maybe_one_of(&["PreemptLowerPriority", "Never"], &mut errors);
    errors
}

pub fn priority_update(new: &Value, old: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let (root, before) = (Place::root(new), Place::root(old));
    if root.field("value").value() != before.field("value").value() {
        errors.push(root.field("value").forbidden("may not be changed in an update."));
    }
    root.field("preemptionPolicy").fixed(&before.field("preemptionPolicy"), &mut errors);
    errors
}

pub fn lease(object: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Place::root(object);
    let spec = root.field("spec");
    let duration = spec.field("leaseDurationSeconds");
    if duration.number().is_some_and(|seconds| seconds <= 0) {
        errors.push(duration.invalid("must be greater than 0"));
    }
    spec.field("leaseTransitions").not_negative(&mut errors);
    errors
}
