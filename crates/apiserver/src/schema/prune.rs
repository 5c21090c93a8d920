// SPDX-License-Identifier: Apache-2.0
//! Dropping the fields that a kind does not have, and naming them.

use std::fmt::Write;

use serde_json::Value;

use super::{Schema, Shape};

/// Drops unknown fields below `value`. Their paths are the answer, in the order in which the real server names them.
pub fn prune(value: &mut Value, schema: Schema<'_>) -> Vec<String> {
    let mut walk = Walk::default();
    walk.value(value, schema);
    walk.unknown
}

#[derive(Default)]
struct Walk {
    /// Where the walk is. One text for all of it: most objects have nothing unknown to name.
    path: String,
    unknown: Vec<String>,
}

impl Walk {
    fn value(&mut self, value: &mut Value, schema: Schema<'_>) {
        match (value, schema.shape()) {
            (Value::Object(map), Shape::Struct(of)) => {
                let known = |key: &str| of.fields.contains_key(key) || fault!(PruningOff);
                if !of.open && !map.keys().all(|key| known(key)) {
                    self.unknown.extend(map.keys().filter(|key| !known(key)).map(|key| below(&self.path, key)));
                    map.retain(|key, _| known(key));
                }
                for (key, value) in map.iter_mut().filter(|(_, value)| value.is_object() || value.is_array()) {
                    if let Some(field) = of.fields.get(key.as_str()) {
                        self.field(key, value, schema.at(field.of));
                    }
                }
            }
            (Value::Object(map), Shape::Map { values, .. }) => {
                for (key, value) in map.iter_mut().filter(|(_, value)| value.is_object() || value.is_array()) {
                    self.field(key, value, schema.at(*values));
                }
            }
            (Value::Array(list), Shape::List(of)) => {
                for (index, item) in list.iter_mut().enumerate() {
                    let mark = self.path.len();
                    // Writing to memory cannot fail.
                    let _ = write!(self.path, "[{index}]");
                    self.value(item, schema.at(of.items));
                    self.path.truncate(mark);
                }
            }
            _ => {}
        }
    }

    fn field(&mut self, key: &str, value: &mut Value, schema: Schema<'_>) {
        let mark = self.path.len();
        if mark > 0 {
            self.path.push('.');
        }
        self.path.push_str(key);
        self.value(value, schema);
        self.path.truncate(mark);
    }
}

/// The path of a field below another.
pub fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
