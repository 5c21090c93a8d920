// SPDX-License-Identifier: Apache-2.0
//! The table that `kubectl get` prints.

use bytes::Bytes;
use serde_json::{Value, json};

use super::partial;
use crate::{
    object::{Object, text},
    registry::Resource,
};

/// The table of one object.
pub fn of_object(resource: &Resource, object: &Value) -> Value {
    let metadata = json!({ "resourceVersion": text(object, "/metadata/resourceVersion") });
    table(resource, vec![row(resource, object)], metadata)
}

/// The table of a list.
pub fn of_list(resource: &Resource, items: &[Bytes], metadata: Value) -> Value {
    let objects = items.iter().filter_map(|item| serde_json::from_slice::<Value>(item).ok());
    table(resource, objects.map(|object| row(resource, &object)).collect(), metadata)
}

fn table(resource: &Resource, rows: Vec<Value>, metadata: Value) -> Value {
    json!({
        "apiVersion": "meta.k8s.io/v1",
        "kind": "Table",
        "metadata": metadata,
        "columnDefinitions": columns(resource),
        "rows": rows,
    })
}

pub fn columns(resource: &Resource) -> Value {
    let column = |column: &crate::builtin::Column| {
        json!({
            "name": &*column.name,
            "type": &*column.kind,
            "format": &*column.format,
            "description": &*column.description,
            "priority": column.priority,
        })
    };
    Value::Array(resource.columns.iter().map(column).collect())
}

pub fn row(resource: &Resource, object: &Value) -> Value {
    json!({ "cells": cells(resource, object), "object": partial(object) })
}

fn cells(resource: &Resource, object: &Value) -> Vec<Value> {
    let mut cells = vec![Value::from(object.name())];
    cells.extend(resource.columns.iter().skip(1).map(|_| Value::Null));
    cells
}
