// SPDX-License-Identifier: Apache-2.0
//! Reading the expressions of rules, and what can be wrong with them before they ever run.

use serde_json::Value;

use super::values::{escaped, is_reserved};
use crate::admission::policy::cel::{Expression, at_offset};

/// Reads an expression of a rule.
pub fn expression(source: &str) -> Result<Expression, String> {
    Expression::compile(source, &["self", "oldSelf"])
}

/// Whether a rule looks at the value before.
pub fn is_transition(source: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    source.match_indices("oldSelf").any(|(at, found)| {
        let before = source.get(..at).and_then(|text| text.chars().last());
        let after = source.get(at + found.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// What is wrong with the types of an expression, as far as the schema alone tells: fields that do not exist, and
/// values of different types that are compared. `kind` is the type that it must have.
pub fn check_types(expression: &Expression, schema: &Value, kind: &str, complaint: &str) -> Result<(), String> {
    let source = expression.source.as_str();
    for root in ["self", "oldSelf"] {
        for (at, way) in ways(source, root) {
            known(source, at + root.len(), &way, schema)?;
        }
    }
    if let Some((at, operator, left, right)) = comparison(source, schema) {
        let why = format!("found no matching overload for '_{operator}_' applied to '({left}, {right})'");
        return Err(at_offset(source, at, &why));
    }
    let found = expression.kind().or_else(|| whole_kind(source, schema));
    match found {
        Some(found) if found != kind => Err(complaint.to_owned()),
        _ => Ok(()),
    }
}

/// Every way like `self.a.b` that starts at a root, with where it starts. What follows a call or an index is not told.
fn ways(source: &str, root: &str) -> Vec<(usize, Vec<String>)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for (at, _) in source.match_indices(root) {
        let before = source.get(..at).and_then(|text| text.chars().last());
        let mut rest = source.get(at + root.len()..).unwrap_or_default();
        if before.is_some_and(|c| is_word(c) || c == '.' || c == '\'' || c == '"') || rest.starts_with(is_word) {
            continue;
        }
        let mut way = Vec::new();
        while let Some(next) = rest.strip_prefix('.') {
            let end = next.find(|c| !is_word(c)).unwrap_or(next.len());
            let (name, after) = next.split_at(end);
            if name.is_empty() || after.starts_with('(') {
                break;
            }
            way.push(name.to_owned());
            rest = after;
        }
        found.push((at, way));
    }
    found
}

/// Follows a way through the schema.
fn known(source: &str, at: usize, way: &[String], schema: &Value) -> Result<(), String> {
    let mut at = at;
    let mut schema = schema;
    for name in way {
        let Some(below) = child(schema, name) else {
            if is_open(schema) {
                return Ok(());
            }
            return Err(at_offset(source, at, &format!("undefined field '{name}'")));
        };
        at += name.len() + 1;
        schema = below;
    }
    Ok(())
}

fn child<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut known = properties.into_iter().flatten();
    let found = known
        .find(|(field, _)| escaped(field) == name || (is_reserved(name) && *field == name))
        .map(|(_, below)| below);
    found.or_else(|| schema.get("additionalProperties").filter(|one| one.is_object()))
}

/// Whether a schema may have fields that it does not name. What every object has is not named either.
fn is_open(schema: &Value) -> bool {
    let flag = |field: &str| schema.get(field) == Some(&Value::Bool(true));
    let kind = schema.get("type").and_then(Value::as_str);
    flag("x-kubernetes-embedded-resource")
        || schema.get("additionalProperties").is_some()
        || kind.is_none_or(|kind| kind != "object")
        || flag("@root")
}

/// The type of a schema in CEL, for scalars only.
fn scalar(schema: &Value) -> Option<&'static str> {
    match (schema.get("type").and_then(Value::as_str)?, schema.get("format").and_then(Value::as_str)) {
        ("integer", _) => Some("int"),
        ("number", _) => Some("double"),
        ("boolean", _) => Some("bool"),
        ("string", None) => Some("string"),
        _ => None,
    }
}

/// A comparison of a field with a literal of another type.
fn comparison(source: &str, schema: &Value) -> Option<(usize, &'static str, &'static str, &'static str)> {
    for operator in ["==", "!=", "<=", ">=", "<", ">"] {
        for (at, _) in source.match_indices(operator) {
            let (left, right) = (source.get(..at)?.trim_end(), source.get(at + operator.len()..)?.trim_start());
            let Some(way) = left.rsplit(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.')).next() else {
                continue;
            };
            let Some(left) = field_kind(way, schema) else { continue };
            let Some(right) = literal_kind(right) else { continue };
            if left != right && !(left == "double" && right == "int") {
                return Some((at, operator, left, right));
            }
        }
    }
    None
}

fn field_kind(way: &str, schema: &Value) -> Option<&'static str> {
    let mut parts = way.split('.');
    if !["self", "oldSelf"].contains(&parts.next()?) {
        return None;
    }
    parts.try_fold(schema, |schema, name| child(schema, name)).and_then(scalar)
}

fn literal_kind(text: &str) -> Option<&'static str> {
    let first = text.chars().next()?;
    let word: String = text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '.').collect();
    match (first, word.as_str()) {
        ('\'' | '"', _) => Some("string"),
        (_, "true" | "false") => Some("bool"),
        _ if word.parse::<i64>().is_ok() => Some("int"),
        _ => None,
    }
}

/// The type of an expression that is a field, or a sum that starts with one.
fn whole_kind(source: &str, schema: &Value) -> Option<&'static str> {
    let source = source.trim();
    let way = source.split(['+', '*', '/', '%']).next()?.trim();
    let only = !source.contains(['=', '<', '>', '&', '|', '?', '!', '(']) && !source.contains(" in ");
    if only { field_kind(way, schema) } else { None }
}
