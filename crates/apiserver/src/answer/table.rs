// SPDX-License-Identifier: Apache-2.0
//! The table that `kubectl get` prints.

mod age;
mod cells;
mod infrastructure;
mod jsonpath;
mod nodes;
mod pods;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::partial;
use crate::{
    object::{Object, text},
    registry::{Backing, Resource},
    request::options::Include,
};

/// How a table is made.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub now: Timestamp,
    /// What comes with each row.
    pub include: Include,
}

/// The table of one object.
pub fn of_object(resource: &Resource, object: &Value, setting: Setting) -> Value {
    let metadata = json!({ "resourceVersion": text(object, "/metadata/resourceVersion") });
    table(columns(resource), vec![row(resource, object, setting)], metadata)
}

/// The same in a stream of events, where the columns come with the first one only.
pub fn of_event(resource: &Resource, object: &Value, setting: Setting, first: bool) -> Value {
    let metadata = json!({ "resourceVersion": text(object, "/metadata/resourceVersion") });
    let columns = if first { columns(resource) } else { Value::Null };
    table(columns, vec![row(resource, object, setting)], metadata)
}

/// The table of a list.
pub fn of_list(resource: &Resource, items: &[Bytes], metadata: Value, setting: Setting) -> Value {
    let objects = items.iter().filter_map(|item| serde_json::from_slice::<Value>(item).ok());
    table(columns(resource), objects.map(|object| row(resource, &object, setting)).collect(), metadata)
}

fn table(columns: Value, rows: Vec<Value>, metadata: Value) -> Value {
    json!({
        "apiVersion": "meta.k8s.io/v1",
        "kind": "Table",
        "metadata": metadata,
        "columnDefinitions": columns,
        "rows": rows,
    })
}

fn columns(resource: &Resource) -> Value {
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

fn row(resource: &Resource, object: &Value, setting: Setting) -> Value {
    let shown = match setting.include {
        Include::Metadata => partial(object),
        Include::Nothing => Value::Null,
        Include::Object => {
            let mut whole = object.clone();
            if let Some(map) = whole.as_object_mut() {
                map.insert("apiVersion".into(), resource.api_version.as_ref().into());
                map.insert("kind".into(), resource.kind.as_ref().into());
            }
            whole
        }
    };
    let mut cells = row_cells(resource, object, setting.now);
    cells.iter_mut().take(usize::from(fault!(WrongCell))).for_each(|cell| *cell = Value::Null);
    let mut row = json!({ "cells": cells, "object": shown });
    if let Some(conditions) = pods::conditions(resource, object)
        && let Some(row) = row.as_object_mut()
    {
        row.insert("conditions".into(), conditions);
    }
    row
}

fn row_cells(resource: &Resource, object: &Value, now: Timestamp) -> Vec<Value> {
    match &resource.backing {
        Backing::Custom(custom) => {
            let mut cells = vec![Value::from(object.name())];
            if custom.printer_columns.is_empty() {
                cells.push(age::since(object.meta_str("creationTimestamp"), now).into());
            }
            let kinds = resource.columns.iter().skip(1).map(|column| &*column.kind);
            cells.extend(
                custom.printer_columns.iter().zip(kinds).map(|(column, kind)| custom_cell(object, column, kind, now)),
            );
            cells
        }
        Backing::Builtin(_) => cells::of(resource, object, now),
    }
}

/// What a column of a custom resource shows.
fn custom_cell(object: &Value, column: &crate::registry::custom::PrinterColumn, kind: &str, now: Timestamp) -> Value {
    let found = jsonpath::find(object, &column.json_path);
    let Some(first) = found.first() else { return Value::Null };
    match kind {
        "string" => plain(first).into(),
        "date" => match first.as_str() {
            Some(time) => age::since(time, now).into(),
            None => Value::Null,
        },
        "integer" => {
            first.as_i64().or_else(|| first.as_f64().map(|number| number as i64)).map_or(Value::Null, Value::from)
        }
        "number" => first.as_f64().map_or(Value::Null, Value::from),
        "boolean" => first.as_bool().map_or(Value::Null, Value::from),
        _ => Value::Null,
    }
}

/// A value as text: a string without its quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
