// SPDX-License-Identifier: Apache-2.0
//! What must hold for the schema of a version: it has to be structural, and its defaults have to fit.

use regex::Regex;
use serde_json::Value;

use super::rules;
use crate::{
    field::{Error, Problem},
    kinds::place::Place,
    schema::{prune, structural, validate::Checks},
};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
/// Keywords of JSON schema that Kubernetes does not have.
const UNSUPPORTED: [&str; 5] = ["$ref", "id", "patternProperties", "definitions", "dependencies"];

pub fn check(root: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let before = errors.len();
    keywords(root, errors);
    let forms = errors.iter().skip(before).any(|error| {
        error.problem == Problem::Forbidden
            && (error.detail.ends_with("is not supported") || error.detail.contains("items must"))
    });
    if forms {
        // What has such keywords cannot be brought into the form on which the rest is judged.
        return;
    }
    at_root(root, errors);
    structural(root, true, errors);
    if errors.len() == before {
        defaults(root, errors);
        rules::check(root, errors);
    }
}

fn at_root(root: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let kind = root.field("type");
    match kind.text() {
        "" => errors.push(kind.required("must not be empty at the root")),
        "object" => {}
        _ => errors.push(kind.invalid("must be object at the root")),
    }
    let properties = root.field("properties");
    for field in ["apiVersion", "kind"] {
        let place = properties.key(field);
        if place.exists() && place.field("type").text() != "string" {
            errors.push(place.field("type").invalid("must be string"));
        }
    }
    let metadata = properties.key("metadata");
    if metadata.exists() && metadata.field("type").text() != "object" {
        errors.push(metadata.field("type").invalid("must be object"));
    }
    let below = metadata.field("properties");
    if below.map().any(|(name, _)| !["name", "generateName"].contains(&name)) {
        let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(metadata.forbidden(why));
    }
    for (name, schema) in below.map() {
        if schema.get("default").is_some() {
            let place = below.key(name);
            errors.push(place.field("default").forbidden("must not be set in top-level metadata"));
        }
    }
}

/// Calls `with` on every schema that is directly below.
fn children(at: &Place<'_, '_>, mut with: impl FnMut(&Place<'_, '_>)) {
    let properties = at.field("properties");
    for (name, _) in properties.map() {
        with(&properties.key(name));
    }
    for field in ["additionalProperties", "items", "not"] {
        let place = at.field(field);
        if place.value().is_object() {
            with(&place);
        }
    }
    for field in ["allOf", "anyOf", "oneOf"] {
        for place in at.field(field).items() {
            with(&place);
        }
    }
}

fn keywords(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    for keyword in UNSUPPORTED {
        let place = at.field(keyword);
        if place.exists() {
            errors.push(place.forbidden(format!("{keyword} is not supported")));
        }
    }
    if at.field("uniqueItems").flag() {
        let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(at.field("uniqueItems").forbidden(why));
    }
    if at.field("items").value().is_array() {
        errors.push(at.field("items").forbidden("items must be a schema object and not an array"));
    }
    let kind = at.field("type");
    if !kind.is_empty() && !TYPES.contains(&kind.text()) {
        errors.push(kind.not_supported(&TYPES));
    }
    let (properties, additional) = (at.field("properties"), at.field("additionalProperties"));
    if !properties.is_empty() && additional.exists() {
        errors.push(additional.forbidden("additionalProperties and properties are mutual exclusive"));
    }
    let pattern = at.field("pattern");
    if let Err(why) = Regex::new(pattern.text()) {
        let why = format!(
            "must be a valid regular expression, but isn't: error parsing regexp: {}",
            go_words(&why, pattern.text())
        );
        errors.push(pattern.invalid(why));
    }
    if kind.text() == "array" && !at.field("items").exists() {
        errors.push(at.field("items").required("must be specified"));
    }
    extensions(at, errors);
    children(at, |below| keywords(below, errors));
}

/// The complaint about a pattern in Go's words, for the usual ones.
fn go_words(error: &regex::Error, pattern: &str) -> String {
    let text = error.to_string();
    let what = if text.contains("unclosed group") {
        "missing closing )"
    } else if text.contains("unclosed character class") {
        "missing closing ]"
    } else if text.contains("unopened group") {
        "unexpected )"
    } else if text.contains("repetition operator missing") {
        "missing argument to repetition operator"
    } else {
        return text.lines().last().unwrap_or_default().to_owned();
    };
    format!("{what}: `{pattern}`")
}

fn extensions(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let preserve = at.field("x-kubernetes-preserve-unknown-fields");
    if preserve.value() == &Value::Bool(false) {
        errors.push(preserve.invalid("must be true or undefined"));
    }
    let map = at.field("x-kubernetes-map-type");
    if map.exists() {
        if at.field("type").text() != "object" {
            errors.push(at.field("type").invalid("must be object if x-kubernetes-map-type is specified"));
        }
        map.one_of(&["atomic", "granular"], errors);
    }
    if at.field("x-kubernetes-embedded-resource").flag() {
        if at.field("type").text() != "object" {
            errors.push(at.field("type").invalid("must be object if x-kubernetes-embedded-resource is true"));
        }
        if at.field("properties").is_empty() && !preserve.flag() {
            let why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
            errors.push(at.field("properties").required(why));
        }
    }
    list_type(at, errors);
}

fn list_type(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let (kind, keys) = (at.field("x-kubernetes-list-type"), at.field("x-kubernetes-list-map-keys"));
    if kind.exists() {
        if at.field("type").text() != "array" {
            errors.push(at.field("type").invalid("must be array if x-kubernetes-list-type is specified"));
        }
        kind.one_of(&["atomic", "set", "map"], errors);
    }
    if !keys.is_empty() && kind.text() != "map" {
        errors.push(if kind.exists() {
            kind.invalid("must be map if x-kubernetes-list-map-keys is non-empty")
        } else {
            kind.required("must be map if x-kubernetes-list-map-keys is non-empty")
        });
    }
    let items = at.field("items");
    match kind.text() {
        "set" => set_items(&items, errors),
        "map" => map_items(&items, &keys, errors),
        _ => {}
    }
}

fn set_items(items: &Place<'_, '_>, errors: &mut Vec<Error>) {
    if items.field("nullable").flag() {
        errors.push(items.field("nullable").forbidden("cannot be nullable when x-kubernetes-list-type is set"));
    }
    let (kind, map) = (items.field("type").text(), items.field("x-kubernetes-map-type"));
    if kind == "object" && map.text() != "atomic" {
        let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
        errors.push(map.invalid_as(map.value().clone(), why));
    }
    let list = items.field("x-kubernetes-list-type");
    if kind == "array" && !["", "atomic"].contains(&list.text()) {
        let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
        errors.push(list.invalid_as(list.value().clone(), why));
    }
}

fn map_items(items: &Place<'_, '_>, keys: &Place<'_, '_>, errors: &mut Vec<Error>) {
    if keys.is_empty() {
        errors.push(keys.required("must not be empty if x-kubernetes-list-type is map"));
    }
    if items.exists() && items.field("type").text() != "object" {
        errors.push(items.field("type").invalid("must be object if parent array's x-kubernetes-list-type is map"));
    }
    if items.field("nullable").flag() {
        errors.push(items.field("nullable").forbidden("cannot be nullable when x-kubernetes-list-type is map"));
    }
    let properties = items.field("properties");
    let required: Vec<&str> = items.field("required").items().map(|one| one.text()).collect();
    let mut seen = std::collections::BTreeSet::new();
    let mut unknown = false;
    for key in keys.items() {
        if !seen.insert(key.text()) {
            errors.push(keys.invalid("must not contain duplicate entries"));
        }
        let property = properties.key(key.text());
        if !property.exists() {
            unknown = true;
            continue;
        }
        if property.field("nullable").flag() {
            let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(property.field("nullable").forbidden(why));
        }
        if !property.field("default").exists() && !required.contains(&key.text()) {
            let why =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(property.field("default").required(why));
        }
        if ["object", "array"].contains(&property.field("type").text()) {
            let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            errors.push(property.field("type").invalid(why));
        }
    }
    if unknown && items.field("type").text() == "object" {
        errors.push(keys.invalid("entries must all be names of item properties"));
    }
}

/// Every place says what it is, and conditions only narrow that.
fn structural(at: &Place<'_, '_>, root: bool, errors: &mut Vec<Error>) {
    let free = at.field("x-kubernetes-int-or-string").flag() || at.field("x-kubernetes-preserve-unknown-fields").flag();
    if !root && at.field("type").is_empty() && !free {
        errors.push(at.field("type").required("must not be empty for specified object fields"));
    }
    let properties = at.field("properties");
    for (name, _) in properties.map() {
        structural(&properties.key(name), false, errors);
    }
    for field in ["additionalProperties", "items"] {
        let place = at.field(field);
        if place.value().is_object() {
            structural(&place, false, errors);
        }
    }
    let numbers = at.field("x-kubernetes-int-or-string").flag();
    for field in ["allOf", "anyOf", "oneOf"] {
        for place in at.field(field).items() {
            narrowing(&place, numbers, errors);
        }
    }
    if at.field("not").exists() {
        narrowing(&at.field("not"), false, errors);
    }
}

/// A condition may not say what a value is.
fn narrowing(at: &Place<'_, '_>, numbers: bool, errors: &mut Vec<Error>) {
    for field in ["description", "type", "title"] {
        let place = at.field(field);
        let usual = numbers && field == "type" && ["integer", "string"].contains(&place.text());
        if !place.is_empty() && !usual {
            errors.push(place.forbidden("must be empty to be structural"));
        }
    }
    for field in ["default", "additionalProperties"] {
        if at.field(field).exists() {
            errors.push(at.field(field).forbidden("must be undefined to be structural"));
        }
    }
    for field in ["nullable", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if at.field(field).flag() {
            errors.push(at.field(field).forbidden("must be false to be structural"));
        }
    }
    let properties = at.field("properties");
    for (name, _) in properties.map() {
        narrowing(&properties.key(name), false, errors);
    }
    for field in ["items", "not"] {
        if at.field(field).value().is_object() {
            narrowing(&at.field(field), false, errors);
        }
    }
    for field in ["allOf", "anyOf", "oneOf"] {
        for place in at.field(field).items() {
            narrowing(&place, numbers, errors);
        }
    }
}

/// What is filled in must be what the schema wants.
fn defaults(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let default = at.field("default");
    if default.exists() {
        let (types, id) = structural::read(Some(at.value()));
        let mut pruned = default.value().clone();
        if !prune::prune(&mut pruned, types.at(id)).is_empty() && at.value().get("properties").is_some() {
            errors.push(default.invalid("must not have unknown fields"));
        } else {
            let path = default.path();
            errors.extend(Checks::new(at.value()).check(default.value()).into_iter().map(|error| {
                let below = if error.field == "<nil>" { "" } else { &error.field };
                let dot = if below.is_empty() || below.starts_with('[') { "" } else { "." };
                Error { field: format!("{path}{dot}{below}"), ..error }
            }));
        }
    }
    let properties = at.field("properties");
    for (name, _) in properties.map() {
        defaults(&properties.key(name), errors);
    }
    for field in ["additionalProperties", "items"] {
        if at.field(field).value().is_object() {
            defaults(&at.field(field), errors);
        }
    }
}
