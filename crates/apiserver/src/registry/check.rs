// SPDX-License-Identifier: Apache-2.0
//! Checking custom resources: schema, list types, embedded objects, rules.

use serde_json::Value;

use super::Resource;
use crate::{
    field::{Error, Problem},
    object::text,
    schema::{ListKind, Schema, Shape},
};

impl Resource {
    /// What is wrong with a custom resource, beyond its metadata.
    pub fn check_custom(&self, object: &Value, old: Option<&Value>) -> Vec<Error> {
        let Some(custom) = self.custom() else { return Vec::new() };
        let mut errors = Vec::new();
        if text(object, "/kind") != &*self.kind {
            errors.push(Error::invalid("kind", text(object, "/kind"), format!("must be {}", self.kind)));
        }
        if text(object, "/apiVersion") != &*self.api_version {
            errors.push(Error::invalid(
                "apiVersion",
                text(object, "/apiVersion"),
                format!("must be {}", self.api_version),
            ));
        }
        if !custom.open_api.is_null() {
            let found = custom.checks.check(object);
            errors.extend(found.into_iter().filter(|error| !old.is_some_and(|old| was_so(error, object, old, self))));
        }
        lists(object, self.schema.schema(), "", &mut errors);
        embedded(object, self.schema.schema(), "", &mut errors);
        if custom.rules.is_empty() || fault!(RulesIgnored) {
            return errors;
        }
        // Rules are only evaluated on what has the right shape.
        if errors.iter().any(blocks) {
            let why = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
            errors.push(Error::invalid("<nil>", Value::Null, why));
        } else {
            errors.extend(custom.rules.check(object, old.filter(|_| !fault!(TransitionsIgnored))));
        }
        errors
    }
}

/// Whether an error leaves so little that rules make no sense.
fn blocks(error: &Error) -> bool {
    matches!(error.problem, Problem::Required | Problem::TooLong | Problem::TooMany | Problem::TypeInvalid)
}

/// Whether the refused part is as it was before. Such parts are tolerated, so that a schema can become stricter.
fn was_so(error: &Error, object: &Value, old: &Value, resource: &Resource) -> bool {
    let steps = steps(&error.field);
    // What is missing is a matter of the object around it.
    let reach = if error.problem == Problem::Required { steps.len().saturating_sub(1) } else { steps.len() };
    let (mut new, mut old, mut schema) = (object, old, Some(resource.schema.schema()));
    for step in steps.iter().take(reach) {
        let next = match (new, old, step.parse::<usize>()) {
            (Value::Array(news), Value::Array(olds), Ok(index)) => {
                let Some(item) = news.get(index) else { return false };
                let Some(Shape::List(list)) = schema.map(|schema| schema.shape()) else { return false };
                let ListKind::Map { keys } = &list.kind else { return false };
                let same = |other: &&Value| keys.iter().all(|key| other.get(&**key) == item.get(&**key));
                schema = schema.and_then(|schema| schema.items());
                olds.iter().find(same).map(|before| (item, before))
            }
            _ => {
                schema = schema.and_then(|schema| schema.value(step));
                new.get(step.as_str()).zip(old.get(step.as_str()))
            }
        };
        let Some(next) = next else { return false };
        (new, old) = next;
        if new == old {
            return true;
        }
    }
    false
}

/// The steps of a path like `spec.list[2].name`.
fn steps(path: &str) -> Vec<String> {
    path.split(['.', '[']).map(|step| step.trim_end_matches(']').to_owned()).filter(|step| !step.is_empty()).collect()
}

/// A whole object inside of another says what it is.
fn embedded(value: &Value, schema: Schema<'_>, path: &str, errors: &mut Vec<Error>) {
    match (value, schema.shape()) {
        (Value::Object(map), Shape::Struct(of)) => {
            if of.embedded && !path.is_empty() {
                for field in ["apiVersion", "kind"] {
                    if map.get(field).and_then(Value::as_str).unwrap_or_default().is_empty() {
                        errors.push(Error::required(format!("{path}.{field}"), ""));
                    }
                }
            }
            for (key, value) in map {
                if let Some(below) = schema.value(key) {
                    embedded(value, below, &crate::schema::prune::below(path, key), errors);
                }
            }
        }
        (Value::Object(map), Shape::Map { values, .. }) => {
            for (key, value) in map {
                embedded(value, schema.at(*values), &crate::schema::prune::below(path, key), errors);
            }
        }
        (Value::Array(items), Shape::List(list)) => {
            for (index, item) in items.iter().enumerate() {
                embedded(item, schema.at(list.items), &format!("{path}[{index}]"), errors);
            }
        }
        _ => {}
    }
}

/// Sets and maps must not hold the same item twice.
fn lists(value: &Value, schema: Schema<'_>, path: &str, errors: &mut Vec<Error>) {
    match (value, schema.shape()) {
        (Value::Object(map), Shape::Struct(_) | Shape::Map { .. }) => {
            for (key, value) in map {
                if let Some(below) = schema.value(key) {
                    lists(value, below, &crate::schema::prune::below(path, key), errors);
                }
            }
        }
        (Value::Array(items), Shape::List(list)) => {
            let key_of = |item: &Value| match &list.kind {
                ListKind::Map { keys } => Value::Object(
                    keys.iter().filter_map(|key| Some((key.to_string(), item.get(&**key)?.clone()))).collect(),
                ),
                _ => item.clone(),
            };
            if list.kind != ListKind::Atomic && !fault!(DuplicatesAllowed) {
                let mut seen: Vec<Value> = Vec::new();
                for (index, item) in items.iter().enumerate() {
                    let key = key_of(item);
                    if seen.contains(&key) {
                        errors.push(Error::duplicate(format!("{path}[{index}]"), key));
                    } else {
                        seen.push(key);
                    }
                }
            }
            for (index, item) in items.iter().enumerate() {
                lists(item, schema.at(list.items), &format!("{path}[{index}]"), errors);
            }
        }
        _ => {}
    }
}
