// SPDX-License-Identifier: Apache-2.0
//! Checking custom resources against their OpenAPI schema, in the words of the real server.

pub mod formats;

use std::collections::HashMap;

use regex::Regex;
use serde_json::{Map, Value};

use crate::field::{Error, Problem};

/// A schema with its patterns compiled.
#[derive(Debug, Default)]
pub struct Checks {
    schema: Value,
    patterns: HashMap<String, Regex>,
}

impl Checks {
    pub fn new(schema: &Value) -> Self {
        let mut checks = Self { schema: schema.clone(), patterns: HashMap::new() };
        collect_patterns(schema, &mut checks.patterns);
        checks
    }

    /// Everything that is wrong with an object.
    pub fn check(&self, object: &Value) -> Vec<Error> {
        let mut errors = Vec::new();
        self.walk(object, &self.schema, "", &mut errors);
        errors
    }

    fn walk(&self, value: &Value, schema: &Value, path: &str, errors: &mut Vec<Error>) {
        if value.is_null() && flag(schema, "nullable") {
            return;
        }
        let wrong = wrong_type(value, schema, path);
        if !wrong.is_empty() {
            // Nothing below a value of the wrong type can be judged.
            errors.extend(wrong);
            return;
        }
        self.combined(value, schema, path, errors);
        enumerated(value, schema, path, errors);
        match value {
            Value::Number(_) => number(value, schema, path, errors),
            Value::String(text) => self.text(text, schema, path, errors),
            Value::Array(list) => self.list(list, schema, path, errors),
            Value::Object(map) => self.object(map, schema, path, errors),
            _ => {}
        }
    }

    fn text(&self, text: &str, schema: &Value, path: &str, errors: &mut Vec<Error>) {
        let length = text.chars().count() as u64;
        if let Some(most) = bound(schema, "maxLength")
            && length > most
        {
            errors.push(Error::too_long(path, most as usize));
        }
        if let Some(least) = bound(schema, "minLength")
            && length < least
        {
            errors.push(invalid(path, text, format!("should be at least {least} chars long")));
        }
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
            && !fault!(PatternUnchecked)
            && self.patterns.get(pattern).is_some_and(|regex| !regex.is_match(text))
        {
            errors.push(invalid(path, text, format!("should match '{pattern}'")));
        }
        if let Some(format) = schema.get("format").and_then(Value::as_str)
            && !formats::fits(format, text)
        {
            let problem = Problem::TypeInvalid;
            errors.push(Error { problem, ..invalid(path, text, format!("must be of type {format}: {text:?}")) });
        }
    }

    fn list(&self, list: &[Value], schema: &Value, path: &str, errors: &mut Vec<Error>) {
        let length = list.len() as u64;
        if let Some(least) = bound(schema, "minItems")
            && length < least
        {
            errors.push(invalid(path, length, format!("should have at least {least} items")));
        }
        if let Some(most) = bound(schema, "maxItems")
            && length > most
        {
            errors.push(Error::too_many(path, list.len(), most as usize));
        }
        if flag(schema, "uniqueItems") && has_duplicates(list) {
            errors.push(Error {
                value: Some(Value::Array(list.to_vec())),
                ..invalid(path, "", "shouldn't contain duplicates".into())
            });
        }
        if let Some(items) = schema.get("items") {
            for (index, item) in list.iter().enumerate() {
                self.walk(item, items, &format!("{path}[{index}]"), errors);
            }
        }
    }

    fn object(&self, map: &Map<String, Value>, schema: &Value, path: &str, errors: &mut Vec<Error>) {
        let count = map.len() as u64;
        if let Some(least) = bound(schema, "minProperties")
            && count < least
        {
            errors.push(invalid(path, count, format!("should have at least {least} properties")));
        }
        if let Some(most) = bound(schema, "maxProperties")
            && count > most
        {
            errors.push(Error::too_many(path, map.len(), most as usize));
        }
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if !map.contains_key(name) && !fault!(RequiredUnchecked) {
                errors.push(Error::required(below(path, name), ""));
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let additional = schema.get("additionalProperties").filter(|one| one.is_object());
        for (key, value) in map {
            match properties.and_then(|properties| properties.get(key)) {
                Some(property) => self.walk(value, property, &below(path, key), errors),
                None => {
                    if let Some(additional) = additional {
                        self.walk(value, additional, &below(path, key), errors);
                    }
                }
            }
        }
    }

    fn combined(&self, value: &Value, schema: &Value, path: &str, errors: &mut Vec<Error>) {
        let branches = |key: &str| schema.get(key).and_then(Value::as_array).filter(|list| !list.is_empty());
        let passes = |schema: &Value| {
            let mut below = Vec::new();
            self.walk(value, schema, path, &mut below);
            below
        };
        let refuse = |what: &str| nowhere(format!("{path:?} {what}"));
        if let Some(any) = branches("anyOf") {
            let outcomes: Vec<Vec<Error>> = any.iter().map(passes).collect();
            if !outcomes.iter().any(Vec::is_empty) {
                errors.push(refuse("must validate at least one schema (anyOf)"));
                errors.extend(best(outcomes));
            }
        }
        if let Some(one) = branches("oneOf") {
            let outcomes: Vec<Vec<Error>> = one.iter().map(passes).collect();
            match outcomes.iter().filter(|outcome| outcome.is_empty()).count() {
                1 => {}
                0 => {
                    errors.push(refuse("must validate one and only one schema (oneOf). Found none valid"));
                    errors.extend(best(outcomes));
                }
                found => errors.push(refuse(&format!(
                    "must validate one and only one schema (oneOf). Found {found} valid alternatives"
                ))),
            }
        }
        if let Some(all) = branches("allOf") {
            let outcomes: Vec<Vec<Error>> = all.iter().map(passes).collect();
            if outcomes.iter().any(|outcome| !outcome.is_empty()) {
                let none = outcomes.iter().all(|outcome| !outcome.is_empty());
                let end = if none { ". None validated" } else { "" };
                errors.extend(outcomes.into_iter().flatten());
                errors.push(refuse(&format!("must validate all the schemas (allOf){end}")));
            }
        }
        if let Some(not) = schema.get("not")
            && passes(not).is_empty()
        {
            errors.push(refuse("must not validate the schema (not)"));
        }
    }
}

/// The alternative that came nearest: the one with the fewest complaints.
fn best(outcomes: Vec<Vec<Error>>) -> Vec<Error> {
    outcomes.into_iter().min_by_key(Vec::len).unwrap_or_default()
}

fn wrong_type(value: &Value, schema: &Value, path: &str) -> Vec<Error> {
    if flag(schema, "x-kubernetes-int-or-string") {
        let fits = value.is_string() || is_integer(value);
        return if fits { Vec::new() } else { vec![type_error(path, value, "integer,string")] };
    }
    let Some(wanted) = schema.get("type").and_then(Value::as_str) else { return Vec::new() };
    let fits = match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => is_integer(value),
        "number" => value.is_number(),
        _ => true,
    };
    if fits {
        return integer_range(value, schema, path).into_iter().collect();
    }
    let mut errors = vec![type_error(path, value, wanted)];
    if wanted == "integer" && value.is_number() {
        errors.push(nowhere(format!("Checked value must be of type integer (default format) in {path}")));
    }
    errors
}

fn type_error(path: &str, value: &Value, wanted: &str) -> Error {
    let found = type_name(value);
    let field = if path.is_empty() { "<nil>" } else { path };
    Error::type_invalid(field, found, format!("{path} in body must be of type {wanted}: {found:?}"))
}

fn integer_range(value: &Value, schema: &Value, path: &str) -> Option<Error> {
    let format = schema.get("format").and_then(Value::as_str)?;
    let number = value.as_i64()?;
    let out = format == "int32" && i32::try_from(number).is_err();
    out.then(|| nowhere(format!("Checked value must be of type integer with format {format} in {path}")))
}

fn is_integer(value: &Value) -> bool {
    value.as_i64().is_some() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_integer(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn enumerated(value: &Value, schema: &Value, path: &str, errors: &mut Vec<Error>) {
    let Some(known) = schema.get("enum").and_then(Value::as_array) else { return };
    if known.contains(value) || fault!(EnumUnchecked) {
        return;
    }
    let texts: Vec<String> =
        known.iter().map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    errors.push(Error::not_supported(path, value.clone(), &texts));
}

fn number(value: &Value, schema: &Value, path: &str, errors: &mut Vec<Error>) {
    let Some(found) = value.as_f64() else { return };
    let limit = |key: &str| schema.get(key).and_then(Value::as_f64).map(|limit| (limit, schema.get(key)));
    let text = |limit: Option<&Value>| limit.map(ToString::to_string).unwrap_or_default();
    if let Some((most, shown)) = limit("maximum") {
        let exclusive = flag(schema, "exclusiveMaximum");
        if found > most || (exclusive && found == most) {
            let or_equal = if exclusive { "" } else { " or equal to" };
            errors.push(invalid(path, value.clone(), format!("should be less than{or_equal} {}", text(shown))));
        }
    }
    if let Some((least, shown)) = limit("minimum") {
        let exclusive = flag(schema, "exclusiveMinimum");
        if found < least || (exclusive && found == least) {
            let or_equal = if exclusive { "" } else { " or equal to" };
            errors.push(invalid(path, value.clone(), format!("should be greater than{or_equal} {}", text(shown))));
        }
    }
    if let Some((step, shown)) = limit("multipleOf") {
        let times = found / step;
        if (times - times.round()).abs() > 1e-9 {
            errors.push(invalid(path, value.clone(), format!("should be a multiple of {}", text(shown))));
        }
    }
}

fn invalid(path: &str, value: impl Into<Value>, what: String) -> Error {
    Error { problem: Problem::Invalid, ..Error::invalid(path, value, format!("{path} in body {what}")) }
}

/// An error for which the real server has lost the place.
fn nowhere(what: String) -> Error {
    Error::invalid("<nil>", "", what)
}

fn has_duplicates(list: &[Value]) -> bool {
    list.iter().enumerate().any(|(index, one)| list.get(..index).is_some_and(|before| before.contains(one)))
}

fn bound(schema: &Value, key: &str) -> Option<u64> {
    schema.get(key).and_then(Value::as_u64)
}

fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool).unwrap_or_default()
}

fn below(path: &str, key: &str) -> String {
    super::prune::below(path, key)
}

fn collect_patterns(schema: &Value, patterns: &mut HashMap<String, Regex>) {
    match schema {
        Value::Object(map) => {
            if let Some(pattern) = map.get("pattern").and_then(Value::as_str)
                && let Ok(regex) = Regex::new(pattern)
            {
                patterns.insert(pattern.to_owned(), regex);
            }
            map.values().for_each(|below| collect_patterns(below, patterns));
        }
        Value::Array(list) => list.iter().for_each(|below| collect_patterns(below, patterns)),
        _ => {}
    }
}
