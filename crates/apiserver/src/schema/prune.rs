// SPDX-License-Identifier: Apache-2.0
//! Dropping the fields that a kind does not have, and naming them.

use serde_json::Value;

use super::{Schema, Shape, Struct};

/// Drops unknown fields below `value`. Their paths are the answer, in the order in which the real server names them.
pub fn prune(value: &mut Value, schema: Schema<'_>) -> Vec<String> {
    let mut unknown = Vec::new();
    walk(value, schema, "", &mut unknown);
    unknown
}

fn walk(value: &mut Value, schema: Schema<'_>, path: &str, unknown: &mut Vec<String>) {
    match (value, schema.shape()) {
        (Value::Object(map), Shape::Struct(of)) => {
            if !of.open {
                map.retain(|key, _| {
                    let known = of.fields.contains_key(key.as_str()) || fault!(PruningOff);
                    if !known {
                        unknown.push(below(path, key));
                    }
                    known
                });
            }
            fields(map, of, schema, path, unknown);
        }
        (Value::Object(map), Shape::Map { values, .. }) => {
            for (key, value) in map {
                walk(value, schema.at(*values), &below(path, key), unknown);
            }
        }
        (Value::Array(list), Shape::List(of)) => {
            for (index, item) in list.iter_mut().enumerate() {
                walk(item, schema.at(of.items), &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}

fn fields(
    map: &mut serde_json::Map<String, Value>,
    of: &Struct,
    schema: Schema<'_>,
    path: &str,
    unknown: &mut Vec<String>,
) {
    for (key, value) in map {
        if (value.is_object() || value.is_array())
            && let Some(field) = of.fields.get(key.as_str())
        {
            walk(value, schema.at(field.of), &below(path, key), unknown);
        }
    }
}

/// The path of a field below another.
pub fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
