// SPDX-License-Identifier: Apache-2.0
//! What must hold for a CustomResourceDefinition.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::schema;
use crate::{
    field::Error,
    kinds::{conditions, place::Place},
    names,
    object::{Object, text},
};

pub fn check(definition: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Place::root(definition);
    let spec = root.field("spec");
    let names = spec.field("names");
    let group = spec.field("group");
    let wanted = format!("{}.{}", names.field("plural").text(), group.text());
    if definition.name() != wanted {
        let why = "must be spec.names.plural+\".\"+spec.group";
        errors.push(Error::invalid("metadata.name", definition.name(), why));
    }
    if group.must_be(&mut errors) {
        group.named(names::subdomain, &mut errors);
        if !group.text().contains('.') {
            errors.push(group.invalid("should be a domain with at least one dot"));
        }
    }
    let scope = spec.field("scope");
    if scope.must_be(&mut errors) {
        scope.one_of(&["Cluster", "Namespaced"], &mut errors);
    }
    self::names(&names, &mut errors);
    versions(&spec, definition, &mut errors);
    conversion(&spec, &mut errors);
    if spec.field("preserveUnknownFields").flag() {
        let why =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(spec.field("preserveUnknownFields").invalid(why));
    }
    protected(definition, group.text(), &mut errors);
    errors
}

fn names(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    for field in ["plural", "singular"] {
        let name = at.field(field);
        if name.must_be(errors) {
            name.named(names::label_1035, errors);
        }
    }
    for field in ["kind", "listKind"] {
        let name = at.field(field);
        if name.must_be(errors) {
            let problems = names::label_1035(&name.text().to_lowercase());
            errors.extend(
                problems
                    .into_iter()
                    .map(|why| name.invalid(format!("may have mixed case, but should otherwise match: {why}"))),
            );
        }
    }
    let (kind, list) = (at.field("kind").text(), at.field("listKind"));
    if !kind.is_empty() && kind == list.text() {
        errors.push(list.invalid("kind and listKind may not be the same"));
    }
    for field in ["shortNames", "categories"] {
        for name in at.field(field).items() {
            name.named(names::label_1035, errors);
        }
    }
}

fn versions(spec: &Place<'_, '_>, definition: &Value, errors: &mut Vec<Error>) {
    let list = spec.field("versions");
    let mut seen = BTreeSet::new();
    let (mut stored, mut twice) = (Vec::new(), false);
    for version in list.items() {
        let name = version.field("name");
        twice |= !seen.insert(name.text());
        name.named(names::label_1035, errors);
        if version.field("storage").flag() {
            stored.push(name.text());
        }
        let whole = version.field("schema");
        if !whole.field("openAPIV3Schema").exists() {
            errors.push(whole.field("openAPIV3Schema").required(""));
        }
        let warning = version.field("deprecationWarning");
        if warning.exists() && !version.field("deprecated").flag() {
            errors.push(warning.invalid("can only be set for deprecated versions"));
        }
    }
    // The first version has a second place in the real server's inner form.
    if let Some(first) = list.items().next() {
        let (place, text) = (spec.field("version"), first.field("name").text());
        errors.extend(names::label_1035(text).into_iter().map(|why| place.invalid_as(text, why)));
    }
    if twice {
        errors.push(list.invalid_raw(&shown(&list), "must contain unique version names"));
    }
    if stored.len() != 1 {
        errors.push(list.invalid_raw(&shown(&list), "must have exactly one version marked as storage version"));
    }
    stored_versions(definition, stored.last().copied(), &seen, errors);
    parts(spec, errors);
}

/// The versions in the real server's inner form.
fn shown(list: &Place<'_, '_>) -> String {
    let Some(versions) = list.value().as_array() else { return "null".to_owned() };
    let one = |version: &Value| {
        format!(
            "{{\"Name\":{:?},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}",
            text(version, "/name"),
            version.get("served") == Some(&json!(true)),
            version.get("storage") == Some(&json!(true)),
            version.get("deprecated") == Some(&json!(true)),
        )
    };
    format!("[{}]", versions.iter().map(one).collect::<Vec<_>>().join(","))
}

fn stored_versions(definition: &Value, storage: Option<&str>, known: &BTreeSet<&str>, errors: &mut Vec<Error>) {
    let root = Place::root(definition);
    let status = root.field("status");
    let list = status.field("storedVersions");
    if list.is_empty() {
        errors.push(list.invalid_as(list.value().clone(), "must have at least one stored version"));
        return;
    }
    if let Some(storage) = storage
        && !list.items().any(|one| one.text() == storage)
    {
        errors.push(list.invalid(format!("must have the storage version {storage}")));
    }
    for one in list.items() {
        let name = one.text();
        if !known.contains(name) {
            errors.push(one.invalid(format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            )));
        }
    }
}

/// Schemas, subresources and columns. Where all versions have the same, the real server tells them once, for the whole.
fn parts(spec: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let list = spec.field("versions");
    let all = list.value().as_array().map(Vec::as_slice).unwrap_or_default();
    let same = |pointer: &str| {
        all.iter().all(|version| version.pointer(pointer) == all.first().and_then(|one| one.pointer(pointer)))
    };
    for (index, version) in list.items().enumerate() {
        let hoisted = |pointer: &str, whole: &str, own: &str| match (same(pointer), index) {
            (true, 0) => Some(whole.to_owned()),
            (true, _) => None,
            (false, _) => Some(format!("spec.versions[{index}].{own}")),
        };
        let of = |pointer: &str| version.value().pointer(pointer).filter(|one| !one.is_null());
        let schema = of("/schema/openAPIV3Schema");
        let path = hoisted("/schema/openAPIV3Schema", "spec.validation.openAPIV3Schema", "schema.openAPIV3Schema");
        if let (Some(schema), Some(path)) = (schema, path) {
            schema::check(&Place::at(schema, &path), errors);
        }
        if let (Some(scale), Some(path)) =
            (of("/subresources/scale"), hoisted("/subresources", "spec.subresources.scale", "subresources.scale"))
        {
            self::scale(&Place::at(scale, &path), errors);
        }
        let path = hoisted("/additionalPrinterColumns", "spec.additionalPrinterColumns", "additionalPrinterColumns");
        if let (Some(columns), Some(path)) = (of("/additionalPrinterColumns"), path) {
            for column in Place::at(columns, &path).items() {
                self::column(&column, errors);
            }
        }
        let path = hoisted("/selectableFields", "spec.selectableFields", "selectableFields");
        if let (Some(fields), Some(path)) = (of("/selectableFields"), path) {
            for field in Place::at(fields, &path).items() {
                selectable(&field.field("jsonPath"), schema, errors);
            }
        }
    }
}

const SIMPLE: &str = "must be a simple json path starting with .";

fn is_simple(path: &str) -> bool {
    let part = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    path.strip_prefix('.').is_some_and(|rest| rest.split('.').all(part))
}

fn scale(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    for (field, below, words) in [
        ("specReplicasPath", [".spec."].as_slice(), "should be a json path under .spec"),
        ("statusReplicasPath", [".status."].as_slice(), "should be a json path under .status"),
        ("labelSelectorPath", [".spec.", ".status."].as_slice(), "should be a json path under either .spec or .status"),
    ] {
        let path = at.field(field);
        if path.is_empty() {
            if field != "labelSelectorPath" {
                errors.push(path.required(""));
            }
        } else if !is_simple(path.text()) {
            errors.push(path.invalid(SIMPLE));
        } else if !below.iter().any(|start| path.text().starts_with(start)) {
            errors.push(path.invalid(words));
        }
    }
}

fn column(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    at.field("name").must_be(errors);
    let kind = at.field("type");
    if kind.is_empty() {
        errors.push(kind.required("must be one of boolean,date,integer,number,string"));
    } else if !["boolean", "date", "integer", "number", "string"].contains(&kind.text()) {
        errors.push(kind.invalid("must be one of boolean,date,integer,number,string"));
    }
    const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    let format = at.field("format");
    if !format.is_empty() && !FORMATS.contains(&format.text()) {
        errors.push(format.invalid(format!("must be one of {}", FORMATS.join(","))));
    }
    // The real server tells this path by its old name.
    let path = at.field("jsonPath");
    let told = at.field("JSONPath");
    if path.is_empty() {
        errors.push(told.required(""));
    } else if !path.text().starts_with('.') || path.text().matches('[').count() != path.text().matches(']').count() {
        errors.push(told.invalid_as(path.text(), SIMPLE));
    }
}

fn selectable(path: &Place<'_, '_>, schema: Option<&Value>, errors: &mut Vec<Error>) {
    let text = path.text();
    let Some(rest) = text.strip_prefix('.') else {
        let first = text.chars().next().map(String::from).unwrap_or_default();
        errors.push(path.invalid(format!("is an invalid path: expected [ or . but got: {first}")));
        return;
    };
    let mut steps = rest.split('.');
    let found = schema.and_then(|schema| steps.try_fold(schema, |schema, step| schema.get("properties")?.get(step)));
    if found.is_none() {
        errors.push(path.invalid("is an invalid path: does not refer to a valid field"));
    }
}

fn conversion(spec: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let conversion = spec.field("conversion");
    let strategy = conversion.field("strategy");
    let webhook = conversion.field("webhook");
    let (client, versions) = (webhook.field("clientConfig"), webhook.field("conversionReviewVersions"));
    // The real server tells these by the names of an older version.
    let (told, told_versions) = (conversion.field("webhookClientConfig"), conversion.field("conversionReviewVersions"));
    match strategy.text() {
        "Webhook" => {
            if !client.exists() {
                errors.push(told.required("required when strategy is set to Webhook"));
            }
            if versions.is_empty() {
                errors.push(told_versions.required(""));
            } else if !versions.items().any(|one| ["v1", "v1beta1"].contains(&one.text())) {
                let why = "must include at least one of v1, v1beta1";
                errors.push(told_versions.invalid_as(versions.value().clone(), why));
            }
        }
        "None" | "" => {
            if client.exists() {
                errors.push(told.forbidden("should not be set when strategy is not set to Webhook"));
            }
            if !versions.is_empty() {
                errors.push(told_versions.forbidden("should not be set when strategy is not set to Webhook"));
            }
        }
        _ => strategy.one_of(&["None", "Webhook"], errors),
    }
}

pub const APPROVED: &str = "api-approved.kubernetes.io";

/// The groups of Kubernetes itself need somebody's word.
pub fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].iter().any(|own| group == *own || group.ends_with(&format!(".{own}")))
}

fn protected(definition: &Value, group: &str, errors: &mut Vec<Error>) {
    if !is_protected(group) {
        return;
    }
    const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";
    let rule = format!("protected groups must have approval annotation \"{APPROVED}\"");
    let path = format!("metadata.annotations[{APPROVED}]");
    match definition.annotation(APPROVED).unwrap_or_default() {
        "" => errors.push(Error::required(path, format!("{rule}, {SEE}"))),
        word if word.starts_with("unapproved") || word.contains("://") => {}
        word => {
            let form = "with either a URL or a reason starting with \"unapproved\"";
            errors.push(Error::invalid(path, word, format!("{rule} {form}, {SEE}")));
        }
    }
}

/// What objects are found by may not change once there can be objects.
pub fn check_update(new: &Value, old: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let (root, before) = (Place::root(new), Place::root(old));
    let (spec, old_spec) = (root.field("spec"), before.field("spec"));
    let (names, old_names) = (spec.field("names"), old_spec.field("names"));
    if conditions::is_true(old, "Established") {
        spec.field("scope").fixed(&old_spec.field("scope"), &mut errors);
        names.field("kind").fixed(&old_names.field("kind"), &mut errors);
    }
    spec.field("group").fixed(&old_spec.field("group"), &mut errors);
    names.field("plural").fixed(&old_names.field("plural"), &mut errors);
    errors
}
