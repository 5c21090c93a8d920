// SPDX-License-Identifier: Apache-2.0
//! Schemas for tests, written as in a CRD.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::schema::{Field, List, ListKind, PatchStrategy, Root, Shape, Struct, Type, TypeId, Types};

/// A schema from JSON as in `openAPIV3Schema`, with `apiVersion`, `kind` and `metadata` of every object.
pub fn object(mut schema: Value) -> Root {
    let text = json!({"type": "string"});
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    schema["properties"]["apiVersion"] = text.clone();
    schema["properties"]["kind"] = text.clone();
    schema["properties"]["metadata"] = json!({"type": "object", "properties": {
        "annotations": texts, "labels": texts,
        "name": text, "namespace": text, "uid": text, "resourceVersion": text, "generateName": text,
        "generation": {"type": "integer"},
        "creationTimestamp": {"type": "string", "format": "date-time"},
        "deletionTimestamp": {"type": "string", "format": "date-time"},
        "finalizers": {"type": "array", "items": text, "x-kubernetes-list-type": "set",
            "x-kubernetes-patch-strategy": "merge"},
        "managedFields": {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": true}},
        "ownerReferences": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
            "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "uid",
            "items": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
                "apiVersion": text, "kind": text, "name": text, "uid": text,
                "controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"}}}},
    }});
    root(&schema)
}

/// A schema from JSON as it is.
pub fn root(schema: &Value) -> Root {
    let mut types = Types::default();
    let id = add(&mut types, schema);
    Root::new(Arc::new(types), id)
}

fn add(types: &mut Types, schema: &Value) -> TypeId {
    let text = |name: &str| schema[name].as_str().unwrap_or_default();
    let flag = |name: &str| schema[name] == true;
    let format = schema["format"].as_str().map(Into::into);
    let shape = match text("type") {
        _ if flag("x-kubernetes-int-or-string") => Shape::IntOrString,
        "boolean" => Shape::Boolean,
        "integer" => Shape::Integer { format },
        "number" => Shape::Number { format },
        "string" => Shape::String { format },
        "array" => {
            let kind = match text("x-kubernetes-list-type") {
                "set" => ListKind::Set,
                "map" => {
                    let keys = schema["x-kubernetes-list-map-keys"].as_array().expect("keys of a map");
                    ListKind::Map { keys: keys.iter().map(|key| key.as_str().expect("a key").into()).collect() }
                }
                _ => ListKind::Atomic,
            };
            Shape::List(List { items: add(types, &schema["items"]), kind })
        }
        "object" if schema["additionalProperties"].is_object() => {
            let values = add(types, &schema["additionalProperties"]);
            Shape::Map { values, atomic: text("x-kubernetes-map-type") == "atomic" }
        }
        "object" => {
            let mut of = Struct {
                open: flag("x-kubernetes-preserve-unknown-fields"),
                atomic: text("x-kubernetes-map-type") == "atomic",
                ..Struct::default()
            };
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                let required = schema["required"].as_array().is_some_and(|names| names.iter().any(|n| n == name));
                let id = add(types, property);
                of.fields.insert(name.as_str().into(), Field { of: id, required, patch: patch(property) });
            }
            Shape::Struct(of)
        }
        _ => Shape::Any,
    };
    types.push(Type { shape, nullable: flag("nullable"), default: schema.get("default").cloned(), ..Type::default() })
}

fn patch(schema: &Value) -> Option<Box<PatchStrategy>> {
    let strategy = schema["x-kubernetes-patch-strategy"].as_str()?;
    Some(Box::new(PatchStrategy {
        merge: strategy.contains("merge"),
        retain_keys: strategy.contains("retainKeys"),
        merge_key: schema["x-kubernetes-patch-merge-key"].as_str().map(Into::into),
    }))
}
