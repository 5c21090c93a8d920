// SPDX-License-Identifier: Apache-2.0
//! What the server makes of an object before it keeps it.

use bivouac_core::quantity::Quantity;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Builtins, GroupVersionKind, conditional};
use crate::schema::{Schema, Shape, TypeId};

pub(super) fn complete(builtins: &Builtins, of: &GroupVersionKind, root: TypeId, object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    // The object's own metadata is not ours, that of templates inside it is.
    let metadata = fields.remove("metadata");
    complete_struct(builtins, builtins.types.at(root), fields);
    if let Some(metadata) = metadata {
        fields.insert("metadata".to_owned(), metadata);
    }
    for place in builtins.places.iter().filter(|place| place.of == *of) {
        fill_at(&place.path, &place.fill, object);
    }
    conditional::kind(of, object);
}

fn complete_value(builtins: &Builtins, schema: Schema<'_>, value: &mut Value) {
    match (schema.shape(), &mut *value) {
        (Shape::Struct(_), Value::Object(fields)) => complete_struct(builtins, schema, fields),
        (Shape::List(_), Value::Array(items)) => {
            let Some(of) = schema.items() else { return };
            items.iter_mut().for_each(|item| complete_value(builtins, of, item));
        }
        (Shape::Map { values, .. }, Value::Object(fields)) => {
            let of = schema.at(*values);
            for value in fields.values_mut() {
                if value.is_null() && matches!(of.shape(), Shape::String { .. }) {
                    *value = Value::from("");
                }
                complete_value(builtins, of, value);
            }
        }
        _ => rewrite(schema.ty().name.as_deref().unwrap_or_default(), value),
    }
}

fn complete_struct(builtins: &Builtins, schema: Schema<'_>, fields: &mut Map<String, Value>) {
    let rules = builtins.rules.get(&schema.id());
    // Most structs have nothing to drop.
    if fields.values().any(is_zero) {
        fields.retain(|name, value| {
            let Some((_, schema)) = schema.field(name).filter(|_| is_zero(value)) else { return true };
            keeps_zero(schema.shape(), value, || rules.is_some_and(|rules| rules.zero.iter().any(|it| **it == **name)))
        });
    }
    conditional::fields(schema.ty().name.as_deref().unwrap_or_default(), fields);
    for (name, default) in rules.into_iter().flat_map(|rules| &rules.fill) {
        if !fields.contains_key(&**name) {
            fields.insert(name.to_string(), default.clone());
        }
    }
    for (name, value) in fields {
        if let Some((_, schema)) = schema.field(name) {
            complete_value(builtins, schema, value);
        }
    }
}

/// In a field, `null` is no value, nor is an empty list or map. For scalars it depends on the field.
fn keeps_zero(shape: &Shape, value: &Value, dropped: impl FnOnce() -> bool) -> bool {
    match shape {
        _ if value.is_null() => false,
        Shape::List(_) | Shape::Map { .. } => false,
        Shape::Boolean | Shape::Integer { .. } | Shape::Number { .. } | Shape::String { .. } => !dropped(),
        _ => true,
    }
}

pub(super) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Quantities and times have one way in which they are written.
fn rewrite(name: &str, value: &mut Value) {
    let written = match (name.rsplit('.').next(), &*value) {
        (Some("Quantity"), Value::String(text)) => text.trim().parse::<Quantity>().ok().map(|it| it.to_string()),
        (Some("Quantity"), Value::Number(number)) => {
            number.to_string().parse::<Quantity>().ok().map(|it| it.to_string())
        }
        (Some("Time"), Value::String(text)) => time(text, "%Y-%m-%dT%H:%M:%SZ"),
        (Some("MicroTime"), Value::String(text)) => time(text, "%Y-%m-%dT%H:%M:%S.%6fZ"),
        _ => None,
    };
    if let Some(written) = written {
        *value = Value::from(written);
    }
}

fn time(text: &str, format: &str) -> Option<String> {
    Some(text.parse::<Timestamp>().ok()?.strftime(format).to_string())
}

/// Fills in what is absent at one place of one kind.
fn fill_at(path: &[Box<str>], fill: &Map<String, Value>, value: &mut Value) {
    match (path.split_first(), value) {
        (None, Value::Object(fields)) => {
            for (name, default) in fill {
                fields.entry(name.clone()).or_insert_with(|| default.clone());
            }
        }
        (Some((_, rest)), Value::Array(items)) => items.iter_mut().for_each(|item| fill_at(rest, fill, item)),
        (Some((name, rest)), Value::Object(fields)) if **name == *"*" => {
            fields.values_mut().for_each(|value| fill_at(rest, fill, value));
        }
        (Some((name, rest)), Value::Object(fields)) => {
            if let Some(value) = fields.get_mut(&**name) {
                fill_at(rest, fill, value);
            }
        }
        _ => {}
    }
}
