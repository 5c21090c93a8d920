// SPDX-License-Identifier: Apache-2.0
//! Requests for certificates.

use serde_json::Value;

use super::{Part, keep_all_but_status, place::Place};
use crate::{
    field::Error,
    object::{as_object, child_object},
};

/// Who approves or denies writes conditions, and never the certificate.
pub const APPROVAL: Part = Part {
    name: "approval",
    prepare: |new, old| {
        keep_all_but_status(new, old);
        let certificate = old.pointer("/status/certificate").cloned();
        let status = child_object(as_object(new), "status");
        match certificate {
            Some(certificate) => drop(status.insert("certificate".into(), certificate)),
            None => drop(status.remove("certificate")),
        }
        for condition in status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
            // A decision is made when it is told first.
            let told = condition.get("lastUpdateTime").cloned();
            if let Some(time) = told.filter(|_| condition.get("lastTransitionTime").is_none_or(Value::is_null)) {
                as_object(condition).insert("lastTransitionTime".into(), time);
            }
        }
    },
    check: decided,
    resets: &[&["spec"], &["status", "certificate"]],
};

/// A decision stays what it is.
fn decided(new: &Value, old: &Value) -> Vec<Error> {
    let (root, before) = (Place::root(new), Place::root(old));
    let (status, before) = (root.field("status"), before.field("status"));
    let (now, then) = (status.field("conditions"), before.field("conditions"));
    let mut errors = Vec::new();
    for (index, condition) in now.items().enumerate() {
        let kind = condition.field("type");
        kind.must_be(&mut errors);
        if now.items().take(index).any(|other| other.field("type").text() == kind.text()) {
            errors.push(kind.duplicate());
        }
    }
    let has = |kind: &str| now.items().any(|one| one.field("type").text() == kind);
    if has("Approved") && has("Denied") {
        errors.push(now.invalid("Approved and Denied conditions are mutually exclusive"));
    }
    for kind in ["Approved", "Denied", "Failed"] {
        let had = then.items().any(|one| one.field("type").text() == kind);
        if had && !has(kind) {
            errors.push(now.forbidden(format!("updates may not remove a condition of type {kind:?}")));
        }
    }
    errors
}
