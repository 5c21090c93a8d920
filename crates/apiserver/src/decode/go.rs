// SPDX-License-Identifier: Apache-2.0
//! Values that do not fit the types of built-in kinds, and how the real server, a Go program, words that.

use std::fmt;

use serde_json::Value;

use crate::schema::{Schema, Shape};

/// The first value of the wrong type, in Go's words.
pub fn check(value: &Value, schema: Schema<'_>) -> Result<(), String> {
    walk(value, schema, "", Path(None))
}

/// The fields on the way to a value. It is only spelled out when something is wrong.
#[derive(Clone, Copy)]
struct Path<'a>(Option<(&'a Path<'a>, &'a str)>);

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((Path(None), field)) => f.write_str(field),
            Some((above, field)) => write!(f, "{above}.{field}"),
            None => Ok(()),
        }
    }
}

/// `owner` is the whole name of the Go struct that the value is a field of.
fn walk(value: &Value, schema: Schema<'_>, owner: &str, path: Path<'_>) -> Result<(), String> {
    if value.is_null() {
        return Ok(());
    }
    if let Some(text) = special(value, schema, owner, path) {
        return text;
    }
    match (schema.shape(), value) {
        (Shape::Any | Shape::IntOrString, _)
        | (Shape::Boolean, Value::Bool(_))
        | (Shape::String { .. }, Value::String(_)) => Ok(()),
        (Shape::Number { .. }, Value::Number(_)) => Ok(()),
        (Shape::Integer { format }, Value::Number(number)) => integer(number, format.as_deref(), schema, owner, path),
        (Shape::List(list), Value::Array(items)) => {
            items.iter().try_for_each(|item| walk(item, schema.at(list.items), owner, path))
        }
        (Shape::Map { values, .. }, Value::Object(map)) => {
            map.values().try_for_each(|value| walk(value, schema.at(*values), owner, path))
        }
        (Shape::Struct(of), Value::Object(map)) => {
            let owner = schema.ty().name.as_deref().unwrap_or_default();
            map.iter().try_for_each(|(key, value)| match of.fields.get(key.as_str()) {
                Some(field) => walk(value, schema.at(field.of), owner, Path(Some((&path, key)))),
                None => Ok(()),
            })
        }
        _ => Err(cannot(json_name(value), owner, path, &type_name(schema))),
    }
}

/// Types that decode themselves: times and quantities, whose errors are their own.
fn special(value: &Value, schema: Schema<'_>, owner: &str, path: Path<'_>) -> Option<Result<(), String>> {
    let name = schema.ty().name.as_deref()?;
    let name = ["Time", "MicroTime", "Quantity"].into_iter().find(|known| is_named(name, known))?;
    match (name, value) {
        ("Time" | "MicroTime", Value::String(text)) => {
            let fits = text.is_empty() || text.parse::<jiff::Timestamp>().is_ok();
            Some(if fits {
                Ok(())
            } else {
                Err(format!(
                    "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?} as \"2006\""
                ))
            })
        }
        ("Time" | "MicroTime", other) => Some(Err(cannot(json_name(other), owner, path, "string"))),
        ("Quantity", Value::String(text)) => Some(quantity(text)),
        ("Quantity", Value::Number(_)) => Some(Ok(())),
        _ => Some(Err(QUANTITY.to_owned())),
    }
}

const QUANTITY: &str = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

fn quantity(text: &str) -> Result<(), String> {
    if text.parse::<bivouac_core::Quantity>().is_ok() { Ok(()) } else { Err(QUANTITY.to_owned()) }
}

fn integer(
    number: &serde_json::Number,
    format: Option<&str>,
    schema: Schema<'_>,
    owner: &str,
    path: Path<'_>,
) -> Result<(), String> {
    let fits = match number.as_i64() {
        Some(number) => format != Some("int32") || i32::try_from(number).is_ok(),
        None => false,
    };
    if fits { Ok(()) } else { Err(cannot(&format!("number {number}"), owner, path, &type_name(schema))) }
}

fn cannot(found: &str, owner: &str, path: Path<'_>, wanted: &str) -> String {
    format!("json: cannot unmarshal {found} into Go struct field {}.{path} of type {wanted}", short(owner))
}

/// What Go calls a JSON value.
pub fn json_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// What Go calls a type: `int32`, `[]v1.Container`, `map[string]string`.
fn type_name(schema: Schema<'_>) -> String {
    if let Some(name) = schema.ty().name.as_deref()
        && matches!(schema.shape(), Shape::Struct(_))
    {
        return qualified(name);
    }
    match schema.shape() {
        Shape::Boolean => "bool".into(),
        Shape::Integer { format } => format.as_deref().unwrap_or("int64").into(),
        Shape::Number { .. } => "float64".into(),
        Shape::String { .. } => schema.ty().name.as_deref().map_or_else(|| "string".into(), qualified),
        Shape::List(list) => format!("[]{}", type_name(schema.at(list.items))),
        Shape::Map { values, .. } => format!("map[string]{}", type_name(schema.at(*values))),
        Shape::Struct(_) => "struct".into(),
        Shape::Any | Shape::IntOrString => "interface {}".into(),
    }
}

/// Whether the last part of a name is this. Every value comes by here, so nothing is searched for.
fn is_named(name: &str, last: &str) -> bool {
    name.strip_suffix(last).is_some_and(|before| before.ends_with('.'))
}

/// From `io.k8s.api.core.v1.Container` to `Container`.
fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// From `io.k8s.api.core.v1.Container` to `v1.Container`.
fn qualified(name: &str) -> String {
    let mut parts = name.rsplit('.');
    match (parts.next(), parts.next()) {
        (Some(name), Some(package)) => format!("{package}.{name}"),
        _ => name.to_owned(),
    }
}

/// A syntax error in the words of Go's decoder, as far as they can be told from ours.
pub fn syntax_error(body: &[u8], error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let lines = body.split(|byte| *byte == b'\n').take(error.line().saturating_sub(1));
    let at = lines.map(|line| line.len() + 1).sum::<usize>() + error.column().saturating_sub(1);
    let found = String::from_utf8_lossy(body.get(at..).unwrap_or_default()).chars().next();
    let text = error.to_string();
    let state = if text.contains("expected ident") {
        return literal_error(body.get(..=at).unwrap_or_default()).unwrap_or(text);
    } else if text.contains("key must be a string") {
        "looking for beginning of object key string"
    } else if text.contains("expected `:`") {
        "after object key"
    } else if text.contains("expected `,` or `}`") {
        "after object key:value pair"
    } else if text.contains("expected `,` or `]`") {
        "after array element"
    } else if text.contains("trailing characters") {
        "after top-level value"
    } else {
        "looking for beginning of value"
    };
    match found {
        Some(found) => format!("invalid character {found:?} {state}"),
        None => text,
    }
}

/// Where a word like `null` goes wrong.
fn literal_error(read: &[u8]) -> Option<String> {
    ["null", "true", "false"].into_iter().find_map(|word| {
        let same = (1..word.len()).rev().find(|length| {
            let start = read.len().checked_sub(length + 1);
            start.and_then(|start| read.get(start..start + length)) == word.as_bytes().get(..*length)
        })?;
        let (found, wanted) = (char::from(*read.last()?), char::from(*word.as_bytes().get(same)?));
        Some(format!("invalid character {found:?} in literal {word} (expecting {wanted:?})"))
    })
}
