// SPDX-License-Identifier: Apache-2.0
//! Whether an object fits its schema well enough to be merged. Its errors are the real server's.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    element::PathElement,
    typed::{self, Kind},
    wording,
};
use crate::schema::{Schema, Shape};

/// Whether items of sets and keyed lists may come more than once. Stored objects may have such items, because writes
/// that are not an apply do not look; an applied configuration may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    Allowed,
    Refused,
}

/// All faults of the object as one message.
pub fn validate(object: &Value, schema: Schema<'_>, duplicates: Duplicates) -> Result<(), String> {
    let mut walk = Walk { duplicates, path: Vec::new(), errors: Vec::new() };
    walk.value(object, schema, false);
    match walk.errors.as_slice() {
        [] => Ok(()),
        [error] => Err(error.clone()),
        errors => Err(format!("errors:\n  {}", errors.join("\n  "))),
    }
}

struct Walk<'a> {
    duplicates: Duplicates,
    path: Vec<PathElement<'a>>,
    errors: Vec<String>,
}

// === impl Walk ===

impl<'a> Walk<'a> {
    /// `open`: a schema above lets fields without a name pass, and so does everything below it.
    fn value(&mut self, value: &'a Value, schema: Schema<'a>, open: bool) {
        match typed::kind(schema, value) {
            _ if value.is_null() => {}
            Kind::Scalar => self.scalar(value, schema),
            Kind::List => self.list(value, schema, open),
            Kind::Map => self.map(value, schema, open),
        }
    }

    fn scalar(&mut self, value: &Value, schema: Schema<'_>) {
        let wrong = |what: &str| format!("expected {what}, got &{{{}}}", wording::plain(value));
        let error = match (schema.shape(), value) {
            (Shape::Boolean, Value::Bool(_)) => return,
            (Shape::Boolean, _) => wrong("boolean"),
            (Shape::Integer { .. } | Shape::Number { .. }, Value::Number(_)) => return,
            (Shape::Integer { .. } | Shape::Number { .. }, _) => {
                format!("expected numeric (int or float), got {}", wording::type_name(value))
            }
            (Shape::String { format }, _) if matches!(format.as_deref(), None | Some("byte")) => match value {
                Value::String(_) => return,
                _ => format!("expected string, got &value.valueUnstructured{{Value:{}}}", wording::source(value)),
            },
            // Texts of other formats, and quantities, may be any scalar.
            (_, Value::Array(_) | Value::Object(_)) => wrong("any scalar"),
            _ => return,
        };
        self.error(error);
    }

    fn list(&mut self, value: &'a Value, schema: Schema<'a>, open: bool) {
        let Value::Array(values) = value else {
            return self.error(format!("expected list, got &{{{}}}", wording::plain(value)));
        };
        let Shape::List(list) = schema.shape() else { return };
        let items = schema.at(list.items);
        let associative = typed::associative(schema).is_some();
        let mut seen = BTreeSet::new();
        for (place, item) in values.iter().enumerate() {
            let at = if associative {
                match typed::element(list, items, item) {
                    Ok(at) => at,
                    Err(error) => return self.error(format!("element {place}: {error}")),
                }
            } else {
                PathElement::Index(i64::try_from(place).unwrap_or(i64::MAX))
            };
            if associative && self.duplicates == Duplicates::Refused && !seen.insert(at.clone()) {
                self.error(format!("duplicate entries for key {at}"));
            }
            self.path.push(at);
            self.value(item, items, open);
            self.path.pop();
        }
    }

    fn map(&mut self, value: &'a Value, schema: Schema<'a>, open: bool) {
        let Value::Object(fields) = value else {
            return self.error(format!("expected map, got &{{{}}}", wording::plain(value)));
        };
        let (open, closed) = match schema.shape() {
            Shape::Struct(of) => (open || of.open, !of.fields.is_empty()),
            _ => (open, false),
        };
        for (key, value) in fields {
            // The server writes them itself, and they are long.
            if key == "managedFields"
                && matches!(self.path.as_slice(), [PathElement::Field(name)] if name == "metadata")
            {
                continue;
            }
            let (schema, named) = typed::child(schema, key);
            self.path.push(PathElement::field(key));
            if closed && !open && !named {
                self.error("field not declared in schema".to_owned());
            } else {
                self.value(value, schema, open);
            }
            self.path.pop();
        }
    }

    fn error(&mut self, message: String) {
        let path: String = self.path.iter().map(ToString::to_string).collect();
        self.errors.push(if path.is_empty() { message } else { format!("{path}: {message}") });
    }
}
