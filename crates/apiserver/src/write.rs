// SPDX-License-Identifier: Apache-2.0
//! The way of an object into the store: who owns what, admission, rules, checks, commit.

mod check;
mod prepare;

use bytes::Bytes;
use serde_json::Value;

use crate::{
    access,
    admission::{self, Operation, Review},
    answer::to_bytes,
    call::Call,
    hooks,
    merge::{self, Set},
    object::{Object, text},
    registry::{Backing, Resource},
    status::{Cause, Details, Status},
    store::{CommitError, Stored, Write},
};

/// How often a generated name is tried.
const NAME_TRIES: usize = 8;

/// Fills in `managedFields` for a write that is not an apply.
pub fn manage(call: &Call, live: Option<&Value>, new: Value, subresource: &str) -> Value {
    let now = call.server.now();
    let manager = call.manager();
    let reset = reset_fields(&call.resource, subresource);
    let write =
        merge::Write { kind: call.resource.merge_kind(), manager: &manager, subresource, now: &now, reset: &reset };
    merge::update(live, new, &write)
}

/// The fields that an endpoint does not write.
pub fn reset_fields(resource: &Resource, subresource: &str) -> Set<'static> {
    match (subresource, &resource.backing) {
        ("status", Backing::Builtin(rules)) => Set::of_fields(rules.status_resets),
        ("status", Backing::Custom(_)) => Set::of_fields(&[&["spec"], &["metadata"]]),
        ("", Backing::Builtin(rules)) if rules.status_apart && resource.subresource("status").is_some() => {
            Set::of_fields(&[&["status"]])
        }
        ("", Backing::Custom(custom)) if custom.has_status => Set::of_fields(&[&["status"]]),
        (part, Backing::Builtin(rules)) => rules.part(part).map(|part| Set::of_fields(part.resets)).unwrap_or_default(),
        _ => Set::default(),
    }
}

/// Creates an object, which has its managers already. The answer is what a reader would be given.
pub async fn create(call: &mut Call, mut object: Value) -> Result<Bytes, Status> {
    let resource = call.resource.clone();
    if resource.custom().is_some_and(|custom| custom.terminating) {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(Status::forbidden(&resource.group, &resource.plural, object.name(), why));
    }
    let mut tries = 0;
    let namespace = if resource.namespaced { call.namespace().to_owned() } else { String::new() };
    // Names are made after this: a plugin that changes objects does not know them yet.
    let name = object.name().to_owned();
    let mut review = Review {
        operation: Operation::Create,
        namespace: &namespace,
        name: &name,
        object: Some(&mut object),
        old: None,
    };
    admission::mutate(call, &mut review).await?;
    access::check_escalation(call, &object, None)?;
    let template = object.name().is_empty().then(|| object.clone());
    loop {
        if let Some(template) = &template {
            object = template.clone();
            let prefix = object.meta_str("generateName").to_owned();
            if !prefix.is_empty() {
                object.set_meta("name", generated(&prefix, &call.server.suffix()));
            }
        }
        prepare::create(call, &mut object);
        let name = object.name().to_owned();
        check::create(call, &object)?;
        access::check_creation(call)?;
        let review = Review {
            operation: Operation::Create,
            namespace: &namespace,
            name: &name,
            object: Some(&mut object),
            old: None,
        };
        admission::validate(call, &review).await?;
        let held = hooks::allocate(call, &mut object, None)?;
        warn(call, &object);
        if call.options.is_dry_run() && !fault!(DryRunStores) {
            let key = resource.key(&namespace, &name);
            if call.server.store.get(&resource.keyspace, &key).is_some() {
                return Err(exists(call, &key, &name));
            }
            return Ok(to_bytes(&object));
        }
        let key = resource.key(&namespace, &name);
        let outcome = call
            .server
            .store
            .commit(&resource.keyspace, &key, Write::Create, |revision| resource.draft(&mut object, revision))
            .await;
        match outcome {
            Ok(stored) => {
                held.keep();
                hooks::written(call, None, Some(&stored)).await?;
                return Ok(resource.present(&stored));
            }
            Err(CommitError::Exists) if template.is_some() && tries < NAME_TRIES => tries += 1,
            Err(CommitError::Exists) => return Err(exists(call, &key, &name)),
            Err(error) => return Err(commit_error(call, &name, &error)),
        }
    }
}

/// Says what is strange about an object that is taken.
fn warn(call: &mut Call, object: &Value) {
    if let Backing::Builtin(rules) = &call.resource.backing {
        for warning in (rules.warn)(object) {
            if !call.warnings.contains(&warning) {
                call.warnings.push(warning);
            }
        }
    }
}

fn exists(call: &Call, key: &str, name: &str) -> Status {
    let resource = &call.resource;
    let mut status = Status::already_exists(&resource.group, &resource.plural, name);
    let found = call.server.store.get(&resource.keyspace, key);
    if found.is_some_and(|stored| resource.read(&stored).is_going()) {
        status.message = format!("object is being deleted: {}", status.message);
    }
    status
}

fn generated(prefix: &str, suffix: &str) -> String {
    const MOST: usize = 63;
    let suffix = if fault!(NoSuffix) { "" } else { suffix };
    let stem: String = prefix.chars().take(MOST - suffix.len()).collect();
    format!("{stem}{suffix}")
}

/// Replaces the object of a call by what `change` makes of it, again as long as others write in between. The answer is
/// what a reader would be given, or nothing if there is no such object.
pub async fn replace_with(
    call: &mut Call,
    subresource: &str,
    tries: usize,
    mut change: impl FnMut(&mut Call, &Value) -> Result<Value, Status>,
) -> Result<Option<Bytes>, Status> {
    for _ in 0..tries {
        let Some(stored) = call.server.store.get(&call.resource.keyspace, &call.key()) else { return Ok(None) };
        let old = call.resource.read(&stored);
        let new = change(call, &old)?;
        match replace(call, &stored, &old, new, subresource).await {
            Ok(written) => return Ok(Some(written)),
            Err(Outcome::Refused(status)) => return Err(status),
            Err(Outcome::Raced) => {}
        }
    }
    Err(Status::modified(&call.resource.group, &call.resource.plural, call.name()))
}

/// Replaces an object. `new` has its managers already; `stored` is what it replaces.
pub async fn replace(
    call: &mut Call,
    stored: &Stored,
    old: &Value,
    mut new: Value,
    subresource: &str,
) -> Result<Bytes, Outcome> {
    let resource = call.resource.clone();
    let (namespace, name) = (old.namespace().to_owned(), old.name().to_owned());
    let mut review = Review {
        operation: Operation::Update,
        namespace: &namespace,
        name: &name,
        object: Some(&mut new),
        old: Some(old),
    };
    admission::mutate(call, &mut review).await?;
    access::check_escalation(call, &new, Some(old))?;
    prepare::update(call, &mut new, old, subresource);
    prepare::count_generation(&resource, &mut new, old, subresource);
    check::update(call, &new, old, subresource)?;
    let review = Review {
        operation: Operation::Update,
        namespace: &namespace,
        name: &name,
        object: Some(&mut new),
        old: Some(old),
    };
    admission::validate(call, &review).await?;
    let held = hooks::allocate(call, &mut new, Some(old))?;
    warn(call, &new);
    new.set_meta("resourceVersion", text(old, "/metadata/resourceVersion"));
    merge::keep_times(&mut new, old);
    if call.options.is_dry_run() {
        return Ok(to_bytes(&new));
    }
    let goes = new.is_going() && new.finalizers().is_empty() && grace(&new) == 0 && hooks::may_go(&resource, &new);
    if new == *old && !goes {
        return Ok(to_bytes(&new));
    }
    let write = if goes { Write::Delete(stored.revision()) } else { Write::Update(stored.revision()) };
    let key = resource.key(&namespace, &name);
    let draft = |revision| match goes {
        // Whoever watches sees an object go as it was stored, not as the last write would have left it.
        true => resource.draft(&mut old.clone(), revision),
        false => resource.draft(&mut new, revision),
    };
    let outcome = call.server.store.commit(&resource.keyspace, &key, write, draft).await;
    match outcome {
        Ok(now) => {
            held.keep();
            hooks::written(call, Some(stored), (!goes).then_some(&now)).await?;
            // The answer to the write that let an object go shows it as it was before.
            Ok(if goes { to_bytes(&new) } else { resource.present(&now) })
        }
        Err(CommitError::Changed(_) | CommitError::Absent) => Err(Outcome::Raced),
        Err(error) => Err(commit_error(call, &name, &error).into()),
    }
}

/// Why a write did not happen.
#[derive(Debug)]
pub enum Outcome {
    /// Somebody else wrote in between.
    Raced,
    Refused(Status),
}

impl From<Status> for Outcome {
    fn from(status: Status) -> Self {
        Self::Refused(status)
    }
}

pub fn grace(object: &Value) -> i64 {
    object.meta().and_then(|meta| meta.get("deletionGracePeriodSeconds")).and_then(Value::as_i64).unwrap_or_default()
}

pub fn commit_error(call: &Call, name: &str, error: &CommitError) -> Status {
    match error {
        CommitError::Exists => Status::already_exists(&call.resource.group, &call.resource.plural, name),
        CommitError::Absent => Status::not_found(&call.resource.group, &call.resource.plural, name),
        CommitError::Changed(_) => Status::modified(&call.resource.group, &call.resource.plural, name),
        CommitError::Failed(failure) => Status::internal(failure),
    }
}

/// A refused apply on the wire.
pub fn apply_error(error: merge::ApplyError) -> Status {
    match error {
        merge::ApplyError::Conflict { message, causes } => {
            let causes = causes
                .into_iter()
                .map(|one| Cause { reason: "FieldManagerConflict".into(), message: one.message, field: one.field })
                .collect();
            Status::new(http::StatusCode::CONFLICT, "Conflict", message).with(Details { causes, ..Details::default() })
        }
        merge::ApplyError::BadRequest(message) => Status::bad_request(message),
        merge::ApplyError::Failed(message) => Status::new(http::StatusCode::INTERNAL_SERVER_ERROR, "", message),
    }
}
