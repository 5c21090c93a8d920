// SPDX-License-Identifier: Apache-2.0
//! The rules of `metadata` that hold for every kind.

use serde_json::{Map, Value};

use crate::{field::Error, names, object::Object};

const MOST_ANNOTATION_BYTES: usize = 256 * 1024;

/// What is wrong with the metadata of an object. `name` says what is wrong with a name of the kind.
pub fn check(object: &Value, namespaced: bool, name: fn(&str) -> Vec<String>) -> Vec<Error> {
    let mut errors = Vec::new();
    let generate = object.meta_str("generateName");
    if !generate.is_empty() {
        // The prefix is judged as a name: what follows it is always fine.
        let prefix = generate.strip_suffix('-').map_or_else(|| generate.to_owned(), |stem| format!("{stem}a"));
        errors.extend(name(&prefix).into_iter().map(|why| Error::invalid("metadata.generateName", generate, why)));
    }
    match object.name() {
        "" => errors.push(Error::required("metadata.name", "name or generateName is required")),
        found => errors.extend(name(found).into_iter().map(|why| Error::invalid("metadata.name", found, why))),
    }
    match (namespaced, object.namespace()) {
        (true, "") => errors.push(Error::required("metadata.namespace", "")),
        (true, found) => {
            errors.extend(names::label(found).into_iter().map(|why| Error::invalid("metadata.namespace", found, why)));
        }
        (false, "") => {}
        (false, _) => errors.push(Error::forbidden("metadata.namespace", "not allowed on this type")),
    }
    if object.generation() < 0 {
        errors.push(Error::invalid("metadata.generation", object.generation(), "must be greater than or equal to 0"));
    }
    errors.extend(labels(object.meta(), "metadata.labels"));
    errors.extend(annotations(object.meta(), "metadata.annotations"));
    errors.extend(owners(object.owner_references()));
    errors.extend(finalizers(object));
    errors
}

/// What is wrong with `labels` of some metadata, which may be that of a template.
pub fn labels(meta: Option<&Map<String, Value>>, path: &str) -> Vec<Error> {
    let mut errors = Vec::new();
    for (key, value) in meta.and_then(|meta| meta.get("labels")).and_then(Value::as_object).into_iter().flatten() {
        errors.extend(names::qualified_name(key).into_iter().map(|why| Error::invalid(path, key.as_str(), why)));
        let value = value.as_str().unwrap_or_default();
        errors.extend(names::label_value(value).into_iter().map(|why| Error::invalid(path, value, why)));
    }
    errors
}

pub fn annotations(meta: Option<&Map<String, Value>>, path: &str) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut size = 0;
    for (key, value) in meta.and_then(|meta| meta.get("annotations")).and_then(Value::as_object).into_iter().flatten() {
        let lower = key.to_ascii_lowercase();
        errors.extend(names::qualified_name(&lower).into_iter().map(|why| Error::invalid(path, key.as_str(), why)));
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > MOST_ANNOTATION_BYTES {
        errors.push(Error::too_long(path, MOST_ANNOTATION_BYTES));
    }
    errors
}

fn owners(owners: &[Value]) -> Vec<Error> {
    let path = "metadata.ownerReferences";
    let mut errors = Vec::new();
    let mut controller: Option<String> = None;
    for owner in owners {
        let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let version = api_version.rsplit('/').next().unwrap_or_default();
        if version.is_empty() || api_version.matches('/').count() > 1 {
            errors.push(Error::invalid(format!("{path}.apiVersion"), api_version, "version must not be empty"));
        }
        for (field, value) in [("kind", kind), ("name", text("name")), ("uid", text("uid"))] {
            if value.is_empty() {
                errors.push(Error::invalid(format!("{path}.{field}"), value, "must not be empty"));
            }
        }
        if kind == "Event" && (api_version == "v1" || api_version.starts_with("events.k8s.io/")) {
            errors.push(Error::invalid(
                path,
                api_version,
                format!("{api_version}, Kind={kind} is disallowed from being an owner"),
            ));
        }
        if owner.get("controller").and_then(Value::as_bool) == Some(true) {
            if let Some(first) = &controller {
                let shown = Value::Array(owners.to_vec());
                let why = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {}",
                    text("name")
                );
                errors.push(Error::invalid(path, shown, why));
            } else {
                controller = Some(text("name").to_owned());
            }
        }
    }
    errors
}

fn finalizers(object: &Value) -> Vec<Error> {
    const PATH: &str = "metadata.finalizers";
    const KNOWN: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];
    let all = object.finalizers();
    let mut errors = Vec::new();
    for (index, finalizer) in all.iter().enumerate() {
        let problems = names::qualified_name(finalizer);
        let bad = !problems.is_empty();
        errors.extend(problems.into_iter().map(|why| Error::invalid(PATH, *finalizer, why)));
        if !bad && !finalizer.contains('/') && !KNOWN.contains(finalizer) {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(Error::invalid(format!("{PATH}[{index}]"), *finalizer, why));
        }
    }
    if all.contains(&"orphan") && all.contains(&"foregroundDeletion") {
        let shown = Value::from(all.clone());
        errors.push(Error::invalid(PATH, shown, "finalizer orphan and foregroundDeletion cannot be both set"));
    }
    errors
}

/// What may not change in metadata.
pub fn check_update(new: &Value, old: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    if old.is_going() {
        let known = old.finalizers();
        let mut added: Vec<&str> = new.finalizers().into_iter().filter(|one| !known.contains(one)).collect();
        added.sort_unstable();
        if !added.is_empty() {
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers {}",
                go_strings(&added)
            );
            errors.push(Error::forbidden("metadata.finalizers", why));
        }
    }
    let immutable = |field: &str, errors: &mut Vec<Error>| {
        let of = |object: &Value| object.meta().and_then(|meta| meta.get(field)).cloned().unwrap_or_default();
        if of(new) != of(old) {
            let shown = match of(new) {
                Value::Null => Value::from(""),
                value => value,
            };
            errors.push(Error::invalid(format!("metadata.{field}"), shown, "field is immutable"));
        }
    };
    for field in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        immutable(field, &mut errors);
    }
    errors
}

/// A list of strings as Go prints it with `%#v`.
fn go_strings(list: &[&str]) -> String {
    let quoted: Vec<String> = list.iter().map(|one| format!("{one:?}")).collect();
    format!("[]string{{{}}}", quoted.join(", "))
}
