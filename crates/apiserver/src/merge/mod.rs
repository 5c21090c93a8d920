// SPDX-License-Identifier: Apache-2.0
//! Server-side apply: who owns which field of an object, and what an applied configuration makes of it.
//!
//! Two functions are the whole of it: [`apply`] for the apply patch and [`update`] for every other write. Both are pure;
//! the caller gives the time. They follow the field manager of the real server step by step, with its oddities, because
//! clients see each of them in `metadata.managedFields`.

mod combine;
mod compare;
mod element;
mod fields;
mod last_applied;
mod managers;
mod owned;
mod prune;
mod typed;
mod updater;
mod validate;
pub mod wording;
mod zero;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub use self::{
    element::{PathElement, same},
    fields::Set,
    zero::zero,
};
use self::{
    managers::Managers,
    updater::Refusal,
    validate::{Duplicates, validate},
};
use crate::{
    object::{Object, text},
    schema::{Root, Schema},
};

/// A kind in the version of a request.
#[derive(Debug, Clone, Copy)]
pub struct Kind<'a> {
    /// `v1`, `apps/v1`.
    pub api_version: &'a str,
    pub kind: &'a str,
    pub schema: Schema<'a>,
    /// What an object of this kind is before anything is written to it: see [`zero`] for built-in kinds; for custom
    /// resources only `apiVersion` and `kind`.
    pub empty: &'a Value,
    /// Whether the kind is a custom resource. Its managers of unknown versions are an error, those of others are forgotten.
    pub custom: bool,
    /// The other versions of the kind, if an object is the same in all of them but for `apiVersion`.
    pub versions: &'a [(Box<str>, Root)],
}

/// Who writes, where and when.
#[derive(Debug, Clone, Copy)]
pub struct Write<'a> {
    pub kind: Kind<'a>,
    /// The field manager of the request; for updates the start of its user agent if it names none.
    pub manager: &'a str,
    /// The subresource written to, or an empty text.
    pub subresource: &'a str,
    /// `2006-01-02T15:04:05Z`
    pub now: &'a str,
    /// The fields that this endpoint does not write, so that its writers cannot own them.
    pub reset: &'a Set<'a>,
}

/// Why a configuration was not applied.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum ApplyError {
    /// 409 `Conflict`: the message, and the causes with the reason `FieldManagerConflict`.
    #[error("{message}")]
    Conflict { message: String, causes: Vec<Conflict> },
    /// 400 `BadRequest`.
    #[error("{0}")]
    BadRequest(String),
    /// The real server answers 500 with this message and without a reason.
    #[error("{0}")]
    Failed(String),
}

/// One field that another manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub message: String,
    pub field: String,
}

/// Fills in `managedFields` for a write that is not an apply. `live` is the object before it, if there was one; `new` is
/// what will be stored.
pub fn update(live: Option<&Value>, mut new: Value, write: &Write<'_>) -> Value {
    let given = metadata(&mut new).and_then(|metadata| metadata.remove("managedFields"));
    let known = live.and_then(|live| live.at("/metadata/managedFields"));
    let entries = {
        let managers = current(given.as_ref(), known, write);
        // After a reset nobody is tracked until the next apply.
        let untracked = managers.0.is_empty() && live.is_some_and(|live| !text(live, "/metadata/uid").is_empty());
        if untracked {
            None
        } else {
            let live = live.unwrap_or(write.kind.empty);
            // Like the real server, an object that does not fit its schema loses its managers rather than the write.
            updater::update(live, &new, managers, write).ok().and_then(Managers::encode)
        }
    };
    set_managers(&mut new, entries);
    new
}

/// Applies a configuration. The result is the object to store: `live` itself, with its times, if nothing changed.
pub fn apply(live: Option<&Value>, config: &Value, write: &Write<'_>, force: bool) -> Result<Value, ApplyError> {
    let kind = write.kind;
    let found = (text(config, "/apiVersion"), text(config, "/kind"));
    if found != (kind.api_version, kind.kind) {
        return Err(ApplyError::BadRequest(format!("invalid object type: {}", group_version_kind(found.0, found.1))));
    }
    let live = live.unwrap_or(kind.empty);
    let managers = Managers::decode(live.at("/metadata/managedFields"));
    // The list of managers is often the larger part of an object; the walks do without it.
    let live = &without_managers(live);
    let mut managers = managers.map_err(|e| ApplyError::Failed(format!("failed to decode managed fields: {e}")))?;
    if managers.0.is_empty() {
        let first = Write { manager: "before-first-apply", ..*write };
        managers = updater::update(kind.empty, live, managers, &first)
            .map_err(|e| ApplyError::Failed(format!("failed to create manager for existing fields: {e}")))?;
    }
    if config.at("/metadata/managedFields").is_some_and(Value::is_array) {
        return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
    }
    let unfit = |what: &str, object: &Value, error: String| {
        ApplyError::Failed(format!("failed to create typed {what} object ({}): {error}", describe(object, &kind)))
    };
    validate(config, kind.schema, Duplicates::Refused).map_err(|e| unfit("patch", config, e))?;
    validate(live, kind.schema, Duplicates::Allowed).map_err(|e| unfit("live", live, e))?;

    let (mut new, managers) = if write.manager == last_applied::MANAGER {
        match updater::apply(live, config, managers.clone(), write, force) {
            Err(Refusal::Conflicts(conflicts)) => match last_applied::remaining(conflicts, live, &kind) {
                conflicts if conflicts.is_empty() => updater::apply(live, config, managers, write, true),
                conflicts => Err(Refusal::Conflicts(conflicts)),
            },
            other => other,
        }
    } else {
        updater::apply(live, config, managers, write, force)
    }
    .map_err(Refusal::into_error)?;
    let entries = managers.encode();
    if write.manager == last_applied::MANAGER {
        last_applied::refresh(&mut new, config);
    }
    set_managers(&mut new, entries);
    Ok(new)
}

/// Gives back their old times to the managers of an object that is otherwise the same as before. The store calls it last,
/// so that a write without effect is not written.
pub fn keep_times(new: &mut Value, old: &Value) {
    let (Some(mine), Some(others)) = (entries(new), entries(old)) else { return };
    let same_but_time = |(a, b): (&Value, &Value)| match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let timeless = |entry: &'_ Map<String, Value>| entry.len() - usize::from(entry.contains_key("time"));
            timeless(a) == timeless(b) && a.iter().all(|(key, value)| key == "time" || b.get(key) == Some(value))
        }
        _ => a == b,
    };
    if mine == others || mine.len() != others.len() || !mine.iter().zip(others).all(same_but_time) {
        return;
    }
    let old_entries = old.at("/metadata/managedFields").cloned();
    let new_entries = metadata(new).and_then(|metadata| metadata.remove("managedFields"));
    let kept = if *new == without_managers(old) { old_entries } else { new_entries };
    set_managers(new, kept);
}

/// The managers that a write starts from. Clients that do not know of them must not delete them by leaving them out.
fn current<'a>(given: Option<&'a Value>, known: Option<&'a Value>, write: &Write<'_>) -> Managers<'a> {
    let known = || Managers::decode(known).unwrap_or_default();
    match given {
        Some(given) if write.subresource.is_empty() => {
            if is_reset(given, write.kind.custom) {
                return Managers::default();
            }
            Managers::decode(Some(given)).ok().filter(|managers| !managers.0.is_empty()).unwrap_or_else(known)
        }
        _ => known(),
    }
}

/// A list of one empty entry asks to forget all managers. So does an empty list, but for custom resources it is lost on
/// the way.
fn is_reset(given: &Value, custom: bool) -> bool {
    match given.as_array().map(Vec::as_slice) {
        Some([]) => !custom,
        Some([Value::Object(entry)]) => entry.values().all(|value| value.is_null() || value == ""),
        _ => false,
    }
}

/// The object in messages: `namespace/name; group/version, Kind=kind`.
fn describe(object: &Value, kind: &Kind<'_>) -> String {
    let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
    format!("{namespace}/{name}; {}", group_version_kind(kind.api_version, kind.kind))
}

/// As Go prints it: the core group is an empty name before the slash.
fn group_version_kind(api_version: &str, kind: &str) -> String {
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind}")
}

fn metadata(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata").and_then(Value::as_object_mut)
}

fn entries(object: &Value) -> Option<&Vec<Value>> {
    object.at("/metadata/managedFields").and_then(Value::as_array)
}

/// A copy of the object without `managedFields`.
fn without_managers(object: &Value) -> Value {
    let Value::Object(fields) = object else { return object.clone() };
    let copy = fields.iter().map(|(name, value)| match value {
        Value::Object(metadata) if name == "metadata" => {
            let kept = metadata.iter().filter(|(name, _)| *name != "managedFields");
            (name.clone(), kept.map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        other => (name.clone(), other.clone()),
    });
    copy.collect()
}

fn set_managers(object: &mut Value, entries: Option<Value>) {
    let Some(object) = object.as_object_mut() else { return };
    match entries {
        Some(entries) => {
            let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(metadata) = metadata {
                metadata.insert("managedFields".to_owned(), entries);
            }
        }
        None => {
            if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
                metadata.remove("managedFields");
            }
        }
    }
}
