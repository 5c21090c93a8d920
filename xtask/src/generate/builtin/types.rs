// SPDX-License-Identifier: Apache-2.0
//! From OpenAPI to the compact form of the table. The form itself is told in the decoder.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::read::text;

/// Types in their compact form, by name.
pub type TypeMap = BTreeMap<String, Value>;

pub fn compact(definitions: &BTreeMap<String, Value>) -> TypeMap {
    definitions.iter().map(|(name, schema)| (name.clone(), definition(schema))).collect()
}

/// Adds a property to a type that has fields.
pub fn set(types: &mut TypeMap, name: &str, key: &str, value: Value) {
    if let Some(Value::Object(node)) = types.get_mut(name) {
        node.insert(key.to_owned(), value);
    }
}

fn definition(schema: &Value) -> Value {
    let mut node = node(schema);
    if let (Value::Object(node), Some([kind])) = (&mut node, kinds(schema)) {
        let kind = format!("{}/{}/{}", text(kind, "group"), text(kind, "version"), text(kind, "kind"));
        node.insert("gvk".to_owned(), kind.into());
    }
    node
}

/// Types of requests, like `DeleteOptions`, are of many groups and no kind of their own.
fn kinds(schema: &Value) -> Option<&[Value]> {
    schema.get("x-kubernetes-group-version-kind")?.as_array().map(Vec::as_slice)
}

fn node(schema: &Value) -> Value {
    let mut full = Map::new();
    let of = reference(schema);
    if of.is_some() {
        if let Some(kind) = extension(schema, "map-type") {
            full.insert("atomic".to_owned(), (kind == "atomic").into());
        }
    } else if let Some(fields) = schema.get("properties").and_then(Value::as_object) {
        full.insert("fields".to_owned(), fields.iter().map(|(name, field)| (name.clone(), node(field))).collect());
        if let Some(required) = schema.get("required") {
            full.insert("required".to_owned(), required.clone());
        }
        atomic(schema, &mut full);
    } else if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        full.insert("map".to_owned(), node(values));
        atomic(schema, &mut full);
    } else if let Some(items) = schema.get("items") {
        let name = if extension(schema, "list-type") == Some("set") { "set" } else { "list" };
        full.insert(name.to_owned(), node(items));
        if let (Some("map"), Some(keys)) = (extension(schema, "list-type"), schema.get("x-kubernetes-list-map-keys")) {
            full.insert("keys".to_owned(), keys.clone());
        }
    }
    if let Some(values) = schema.get("enum") {
        full.insert("enum".to_owned(), values.clone());
    }
    if let Some(strategy) = extension(schema, "patch-strategy") {
        let key = extension(schema, "patch-merge-key").map(|key| format!(":{key}")).unwrap_or_default();
        full.insert("patch".to_owned(), format!("{strategy}{key}").into());
    }
    let word = of.unwrap_or_else(|| word(schema));
    match full.keys().next().map(String::as_str) {
        None => word.into(),
        _ if ["fields", "map", "list", "set"].iter().any(|key| full.contains_key(*key)) => full.into(),
        _ => {
            full.insert("of".to_owned(), word.into());
            full.into()
        }
    }
}

/// The server gives a reference a default or a description by wrapping it.
fn reference(schema: &Value) -> Option<String> {
    let of = schema.pointer("/allOf/0").unwrap_or(schema);
    let always = if schema.get("default").is_some() { "={}" } else { "" };
    Some(format!("@{}{always}", of.get("$ref")?.as_str()?.rsplit('/').next()?))
}

fn atomic(schema: &Value, full: &mut Map<String, Value>) {
    if extension(schema, "map-type") == Some("atomic") {
        full.insert("atomic".to_owned(), json!(true));
    }
}

fn extension<'a>(schema: &'a Value, name: &str) -> Option<&'a str> {
    schema.get(format!("x-kubernetes-{name}"))?.as_str()
}

fn word(schema: &Value) -> String {
    let name = match (text(schema, "type"), schema.get("oneOf")) {
        ("boolean", _) => "bool",
        ("integer", _) => "int",
        ("number", _) => "num",
        ("string", _) => "str",
        // Also quantities: they are written as numbers or as text.
        (_, Some(_)) => return "int-or-string".to_owned(),
        _ => return "any".to_owned(),
    };
    let format = schema.get("format").and_then(Value::as_str).map(|it| format!(":{it}")).unwrap_or_default();
    let default = match schema.get("default") {
        Some(Value::String(text)) => format!("={text}"),
        Some(value @ (Value::Bool(_) | Value::Number(_))) => format!("={value}"),
        _ => String::new(),
    };
    format!("{name}{format}{default}")
}
