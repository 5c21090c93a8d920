// SPDX-License-Identifier: Apache-2.0
//! Namespaces.

use serde_json::{Value, json};

use super::{Part, place::Place};
use crate::{
    field::Error,
    names,
    object::{Object, as_object, child_object},
};

pub fn prepare_create(namespace: &mut Value) {
    as_object(namespace).insert("status".into(), json!({ "phase": "Active" }));
}

/// Finalizers of the spec have a path of their own.
pub fn prepare_update(new: &mut Value, old: &Value) {
    let spec = old.get("spec").cloned();
    let map = as_object(new);
    match spec {
        Some(spec) => drop(map.insert("spec".into(), spec)),
        None => drop(map.remove("spec")),
    }
}

pub fn check(namespace: &Value) -> Vec<Error> {
    const NEITHER: &str = "name is neither a standard finalizer name nor is it fully qualified";
    let mut errors = Vec::new();
    let root = Place::root(namespace);
    let spec = root.field("spec");
    let list = spec.field("finalizers");
    for one in list.items() {
        let name = one.text();
        errors.extend(names::qualified_name(name).into_iter().map(|why| list.invalid_as(name, why)));
        if !name.contains('/') && name != "kubernetes" {
            errors.push(list.invalid_as(name, NEITHER));
        }
    }
    errors
}

/// Whoever empties a namespace takes itself off its spec here.
pub const FINALIZE: Part = Part {
    name: "finalize",
    prepare: |new, old| {
        let finalizers = new.pointer("/spec/finalizers").cloned();
        let managers = new.meta().and_then(|meta| meta.get("managedFields")).cloned();
        let metadata = new.get("metadata").cloned();
        *new = old.clone();
        if let Some(metadata) = metadata {
            as_object(new).insert("metadata".into(), metadata);
        }
        if let Some(managers) = managers {
            new.set_meta("managedFields", managers);
        }
        let spec = child_object(as_object(new), "spec");
        match finalizers {
            Some(finalizers) => drop(spec.insert("finalizers".into(), finalizers)),
            None => drop(spec.remove("finalizers")),
        }
    },
    check: |new, _| check(new),
    resets: &[&["status"]],
};
