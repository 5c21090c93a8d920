// SPDX-License-Identifier: Apache-2.0
//! Claims of volumes.

use serde_json::{Value, json};

use super::{place::Place, pod::resources::amount};
use crate::{field::Error, object::as_object};

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub fn prepare_create(claim: &mut Value) {
    as_object(claim).insert("status".into(), json!({ "phase": "Pending" }));
}

pub fn claim(object: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Place::root(object);
    let spec = root.field("spec");
    let modes = spec.field("accessModes");
    if modes.is_empty() {
        errors.push(modes.required("at least 1 access mode is required"));
    }
    for mode in modes.items() {
        if !MODES.contains(&mode.text()) {
            errors.push(Error::not_supported(modes.path(), mode.text(), &MODES));
        }
    }
    let resources = spec.field("resources");
    let requests = resources.field("requests");
    let storage = requests.key("storage");
    if !storage.exists() {
        errors.push(resources.key("storage").required(""));
    } else if amount(&storage).is_some_and(|amount| amount <= Default::default()) {
        errors.push(resources.key("storage").invalid_as(storage.text(), "must be greater than zero"));
    }
    errors
}
