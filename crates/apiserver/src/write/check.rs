// SPDX-License-Identifier: Apache-2.0
//! Whether an object may be as it is.

use serde_json::Value;

use crate::{
    call::Call,
    metadata,
    object::{Object, text},
    registry::{Backing, Resource},
    status::Status,
};

pub fn create(call: &Call, object: &Value) -> Result<(), Status> {
    let resource = &call.resource;
    let mut errors;
    match &resource.backing {
        Backing::Builtin(rules) => {
            errors = metadata::check(object, resource.namespaced, rules.name);
            errors.extend((rules.check)(object));
            errors.extend((rules.check_create)(object));
        }
        Backing::Custom(_) => {
            errors = metadata::check(object, resource.namespaced, crate::names::subdomain);
            errors.extend(resource.check_custom(object, None));
        }
    }
    refuse(resource, object, &errors)
}

pub fn update(call: &Call, new: &Value, old: &Value, subresource: &str) -> Result<(), Status> {
    let resource = &call.resource;
    let mut errors = metadata::check_update(new, old);
    // Twice, as in the real server, where two layers check this and neither knows of the other.
    errors.extend(metadata::check_update(new, old));
    match &resource.backing {
        Backing::Builtin(rules) => {
            errors.extend(metadata::check(new, resource.namespaced, |_| Vec::new()));
            if subresource == "status" {
                errors.extend((rules.check_status)(new, old));
            } else if let Some(part) = rules.part(subresource) {
                errors.extend((part.check)(new, old));
            } else {
                errors.extend((rules.check)(new));
                errors.extend((rules.check_update)(new, old));
            }
        }
        Backing::Custom(_) => {
            errors.extend(metadata::check(new, resource.namespaced, |_| Vec::new()));
            let wrong = resource.check_custom(new, Some(old));
            // The status alone is judged there, so the sentences name its fields from there on.
            let status = subresource == "status";
            errors.extend(wrong.into_iter().map(|error| if status { error.within("status") } else { error }));
        }
    }
    refuse(resource, new, &errors)
}

fn refuse(resource: &Resource, object: &Value, errors: &[crate::field::Error]) -> Result<(), Status> {
    if errors.is_empty() {
        return Ok(());
    }
    let kind = text(object, "/kind");
    let kind = if kind.is_empty() { &*resource.kind } else { kind };
    // What is stored as another kind is judged as that kind.
    let stored = match &resource.backing {
        Backing::Builtin(rules) => {
            rules.stored_as.map(|version| version.rsplit_once('/').map_or("", |(group, _)| group))
        }
        Backing::Custom(_) => None,
    };
    Err(Status::invalid(stored.unwrap_or(&resource.group), kind, object.name(), errors))
}
