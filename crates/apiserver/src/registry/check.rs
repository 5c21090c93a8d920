// SPDX-License-Identifier: Apache-2.0
//! Checking custom resources: schema, list types, embedded objects, rules.

use serde_json::Value;

use super::{Resource, custom::Custom};
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
            errors.push(Error::invalid("apiVersion", text(object, "/apiVersion"), format!("must be {}", self.api_version)));
        }
        if !custom.open_api.is_null() {
            errors.extend(custom.checks.check(object));
        }
        lists(object, self.schema.schema(), "", &mut errors);
        // Rules are only evaluated on what has the right shape.
        if errors.is_empty() && custom.has_rules {
            errors.extend(rules(custom, object, old));
        }
        errors
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
            if list.kind != ListKind::Atomic {
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

fn rules(custom: &Custom, object: &Value, old: Option<&Value>) -> Vec<Error> {
    let failures = match kube_cel::validate_compiled(&custom.rules, object, old) {
        Ok(()) => return Vec::new(),
        Err(failures) => failures.into_vec(),
    };
    failures
        .into_iter()
        .map(|failure| {
            let pointer = failure.field_path.split('.').fold(String::new(), |all, part| format!("{all}/{part}"));
            let value = if failure.field_path.is_empty() { Some(object) } else { object.pointer(&pointer) };
            let field = if failure.field_path.is_empty() { "<nil>".to_owned() } else { failure.field_path.clone() };
            let problem = match failure.reason.as_deref() {
                Some("FieldValueForbidden") => Problem::Forbidden,
                Some("FieldValueRequired") => Problem::Required,
                Some("FieldValueDuplicate") => Problem::Duplicate,
                _ => Problem::Invalid,
            };
            Error { problem, field, value: value.cloned(), detail: failure.message }
        })
        .collect()
}
