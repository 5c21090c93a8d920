// SPDX-License-Identifier: Apache-2.0
//! Deleting one object, and collections.

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

use super::read;
use crate::{
    admission::{self, Operation, Review},
    answer::{Answer, List, to_bytes},
    call::Call,
    decode,
    field::Error,
    hooks,
    object::{Object, set, text},
    registry::Backing,
    request::options::{check_dry_run, refuse},
    status::Status,
    store::{CommitError, Range, Stored, Write},
    write,
};

const TRIES: usize = 100;
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// How to delete.
#[derive(Debug, Default)]
struct Wish {
    uid: Option<String>,
    resource_version: Option<String>,
    grace: Option<i64>,
    propagation: Option<String>,
    orphan_dependents: Option<bool>,
}

/// What became of a deletion.
enum Fate {
    Gone(Value),
    /// It still exists: finalizers or a grace period hold it.
    Going(Value),
}

pub async fn one(call: &mut Call, body: &Bytes) -> Result<Answer, Status> {
    let wish = wish(call, body)?;
    let key = call.key();
    let resource = call.resource.clone();
    let fate = delete(call, &key, &wish).await?;
    let returns = matches!(&resource.backing, Backing::Builtin(rules) if rules.returns_deleted);
    Ok(match fate {
        Fate::Going(object) => {
            // What still exists is accepted only in the eyes of those who ask in the old way for dependents to go too.
            let code = if wish.orphan_dependents == Some(false) { StatusCode::ACCEPTED } else { StatusCode::OK };
            Answer::Object { code, resource, body: to_bytes(&object) }
        }
        Fate::Gone(object) if returns => Answer::Object { code: StatusCode::OK, resource, body: to_bytes(&object) },
        Fate::Gone(object) => {
            let mut details = json!({ "name": call.name(), "kind": &*resource.plural, "uid": object.uid() });
            if !resource.group.is_empty() {
                set(&mut details, "group", resource.group.as_ref());
            }
            let body = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details });
            Answer::Document { code: StatusCode::OK, body }
        }
    })
}

/// Deletes everything that the selectors ask for, one after the other.
pub async fn collection(call: &mut Call, body: &Bytes) -> Result<Answer, Status> {
    let wish = wish(call, body)?;
    read::check(&call.options)?;
    read::check_fields(&call.resource, &call.options)?;
    let range = Range {
        namespace: call.target.namespace.as_deref(),
        limit: call.options.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
        ..Range::default()
    };
    let options = call.options.clone();
    let resource = call.resource.clone();
    let page = call
        .server
        .store
        .range(&resource.keyspace, &range, |stored| read::matches(&options, &resource, stored))
        .map_err(|error| Status::expired(error.to_string()))?;
    let mut items = Vec::new();
    for stored in &page.items {
        match delete(call, stored.key(), &wish).await {
            Ok(_) => items.push(resource.present_item(stored)),
            Err(status) if status.code == 404 => items.push(resource.present_item(stored)),
            Err(status) => return Err(status),
        }
    }
    Ok(Answer::List(List { resource, items, revision: page.revision, continue_token: None, remaining: None }))
}

/// Deletes one object inside of another action.
pub async fn by_options(call: &mut Call, key: &str, options: &Value) -> Result<(), Status> {
    let wish = wish(call, &to_bytes(options))?;
    delete(call, key, &wish).await.map(|_| ())
}

fn wish(call: &mut Call, body: &Bytes) -> Result<Wish, Status> {
    let mut wish = Wish {
        grace: call.options.grace_period_seconds,
        propagation: call.options.propagation_policy.clone(),
        orphan_dependents: call.options.orphan_dependents,
        ..Wish::default()
    };
    if !body.is_empty() {
        let read = if decode::is_protobuf(&call.headers) {
            decode::read(&call.headers, body, "DeleteOptions")?.value
        } else {
            options(body)?
        };
        let text = |pointer: &str| read.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        wish.uid = text("/preconditions/uid");
        wish.resource_version = text("/preconditions/resourceVersion");
        wish.grace = read.get("gracePeriodSeconds").and_then(Value::as_i64);
        wish.propagation = text("/propagationPolicy");
        wish.orphan_dependents = read.get("orphanDependents").and_then(Value::as_bool);
        let dry_run = read.get("dryRun").and_then(Value::as_array).into_iter().flatten();
        call.options.dry_run.extend(dry_run.filter_map(Value::as_str).map(str::to_owned));
    }
    check(&wish, &call.options.dry_run)?;
    Ok(wish)
}

/// The options in the body.
fn options(body: &Bytes) -> Result<Value, Status> {
    let bad = |why: String| Status::bad_request(format!("couldn't get version/kind; json parse error: {why}"));
    let read = crate::json::parse(body).map_err(|error| bad(decode::syntax_error(body, &error)))?.value;
    if !read.is_object() {
        return Err(bad(format!("json: cannot unmarshal {} into Go value", decode::json_name(&read))));
    }
    let (version, kind) = (text(&read, "/apiVersion"), text(&read, "/kind"));
    if !kind.is_empty() && kind != "DeleteOptions" {
        return Err(Status::bad_request(format!(
            "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    Ok(read)
}

fn check(wish: &Wish, dry_run: &[String]) -> Result<(), Status> {
    let mut errors = Vec::new();
    if let Some(policy) = wish.propagation.as_deref() {
        if !["Foreground", "Background", "Orphan"].contains(&policy) {
            errors.push(Error::not_supported(
                "propagationPolicy",
                policy,
                &["Foreground", "Background", "Orphan", "nil"],
            ));
        }
        if wish.orphan_dependents.is_some() {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.push(Error::invalid("propagationPolicy", policy, why));
        }
    }
    errors.extend(check_dry_run(dry_run));
    refuse("DeleteOptions", &errors)
}

async fn delete(call: &mut Call, key: &str, wish: &Wish) -> Result<Fate, Status> {
    let resource = call.resource.clone();
    let name = key.rsplit('/').next().unwrap_or(key).to_owned();
    let name = if resource.namespaced { name } else { key.to_owned() };
    let absent = || Status::not_found(&resource.group, &resource.plural, &name);
    for _ in 0..TRIES {
        let stored = call.server.store.get(&resource.keyspace, key).ok_or_else(absent)?;
        let old = resource.read(&stored);
        check_preconditions(call, wish, &old, &name)?;
        let namespace = old.namespace().to_owned();
        let review =
            Review { operation: Operation::Delete, namespace: &namespace, name: &name, object: None, old: Some(&old) };
        admission::validate(call, &review).await?;
        match step(call, key, &stored, old, wish).await {
            Ok(fate) => return Ok(fate),
            Err(CommitError::Changed(_)) => {}
            Err(CommitError::Absent) => return Err(absent()),
            Err(error) => return Err(write::commit_error(call, &name, &error)),
        }
    }
    Err(Status::modified(&resource.group, &resource.plural, &name))
}

/// One try: mark the object as going, or remove it.
async fn step(call: &mut Call, key: &str, stored: &Stored, old: Value, wish: &Wish) -> Result<Fate, CommitError> {
    let resource = call.resource.clone();
    let going = old.is_going();
    if going && write::grace(&old) > 0 {
        return shorten(call, key, stored, old, wish).await;
    }
    let mut new = old.clone();
    let orphans = matches!(&resource.backing, Backing::Builtin(rules) if rules.orphans);
    let mut finalizers = wanted_finalizers(&old, wish, orphans);
    finalizers.retain(|_| !fault!(FinalizersIgnored));
    let grace = hooks::grace(&resource, &old, wish.grace.filter(|_| !fault!(GraceIgnored))).filter(|_| !going);
    let held = !finalizers.is_empty() || grace.is_some_and(|grace| grace > 0) || !hooks::may_go(&resource, &new);
    // What may take its time is marked even if it has none left: whoever watches sees it go in two steps.
    let mut revision = stored.revision();
    if held || grace.is_some() {
        mark(call, &mut new, finalizers, grace.unwrap_or_default());
        if !going {
            hooks::marked(&resource, &mut new, &call.server.now());
        }
        if new == old {
            return Ok(Fate::Going(new));
        }
        if call.options.is_dry_run() {
            return Ok(if held { Fate::Going(new) } else { Fate::Gone(new) });
        }
        let now = commit(call, key, Write::Update(revision), &mut new).await?;
        let _ = hooks::written(call, Some(stored), Some(&now)).await;
        if held {
            return Ok(Fate::Going(resource.read(&now)));
        }
        revision = now.revision();
    }
    if call.options.is_dry_run() {
        return Ok(Fate::Gone(new));
    }
    let gone = commit(call, key, Write::Delete(revision), &mut new).await?;
    let _ = hooks::written(call, Some(stored), None).await;
    Ok(Fate::Gone(resource.read(&gone)))
}

async fn commit(call: &Call, key: &str, write: Write, object: &mut Value) -> Result<Stored, CommitError> {
    let resource = &call.resource;
    call.server.store.commit(&resource.keyspace, key, write, |revision| resource.draft(object, revision)).await
}

/// An object that is going already can only go sooner.
async fn shorten(call: &mut Call, key: &str, stored: &Stored, old: Value, wish: &Wish) -> Result<Fate, CommitError> {
    let granted = write::grace(&old);
    let resource = call.resource.clone();
    let sooner = wish.grace.filter(|wanted| *wanted < granted && hooks::grace(&resource, &old, None).is_some());
    let Some(grace) = sooner.map(|wanted| wanted.max(0)) else { return Ok(Fate::Going(old)) };
    let mut new = old.clone();
    let ended = text(&old, "/metadata/deletionTimestamp").parse::<jiff::Timestamp>().unwrap_or(call.server.clock.now());
    let ends = ended - jiff::SignedDuration::from_secs(granted - grace);
    new.set_meta("deletionTimestamp", crate::object::time(ends));
    new.set_meta("deletionGracePeriodSeconds", grace);
    let orphans = matches!(&resource.backing, Backing::Builtin(rules) if rules.orphans);
    set_finalizers(&mut new, wanted_finalizers(&old, wish, orphans));
    let goes = grace == 0 && new.finalizers().is_empty();
    if call.options.is_dry_run() {
        return Ok(if goes { Fate::Gone(new) } else { Fate::Going(new) });
    }
    let now = commit(call, key, Write::Update(stored.revision()), &mut new).await?;
    if !goes {
        let _ = hooks::written(call, Some(stored), Some(&now)).await;
        return Ok(Fate::Going(resource.read(&now)));
    }
    let gone = commit(call, key, Write::Delete(now.revision()), &mut new).await?;
    let _ = hooks::written(call, Some(stored), None).await;
    Ok(Fate::Gone(resource.read(&gone)))
}

fn set_finalizers(object: &mut Value, finalizers: Vec<String>) {
    if finalizers.is_empty() {
        object.meta_mut().remove("finalizers");
    } else {
        object.set_meta("finalizers", finalizers);
    }
}

/// Marks the object as going.
fn mark(call: &Call, new: &mut Value, finalizers: Vec<String>, grace: i64) {
    set_finalizers(new, finalizers);
    if new.is_going() {
        return;
    }
    if new.generation() > 0 {
        new.set_meta("generation", new.generation() + 1);
    }
    let ends = call.server.clock.now() + jiff::SignedDuration::from_secs(grace);
    new.set_meta("deletionTimestamp", crate::object::time(ends));
    new.set_meta("deletionGracePeriodSeconds", grace);
}

/// The finalizers that the wanted propagation leaves on the object.
fn wanted_finalizers(old: &Value, wish: &Wish, orphans: bool) -> Vec<String> {
    let has = |name: &str| old.finalizers().contains(&name);
    let (orphan, foreground) = match (wish.orphan_dependents, wish.propagation.as_deref()) {
        (Some(orphan), _) => (orphan, false),
        _ if fault!(PropagationIgnored) => (false, false),
        (None, Some("Orphan")) => (true, false),
        (None, Some("Foreground")) => (false, true),
        (None, Some(_)) => (false, false),
        (None, None) if has(ORPHAN) || has(FOREGROUND) => (has(ORPHAN), has(FOREGROUND)),
        (None, None) => (orphans, false),
    };
    let mut finalizers: Vec<String> =
        old.finalizers().into_iter().filter(|one| *one != ORPHAN && *one != FOREGROUND).map(str::to_owned).collect();
    if orphan {
        finalizers.push(ORPHAN.to_owned());
    }
    if foreground {
        finalizers.push(FOREGROUND.to_owned());
    }
    finalizers
}

fn check_preconditions(call: &Call, wish: &Wish, old: &Value, name: &str) -> Result<(), Status> {
    let resource = &call.resource;
    let refuse = |why: String| Err(Status::conflict(&resource.group, &resource.kind, name, why));
    if let Some(uid) = wish.uid.as_deref()
        && !fault!(PreconditionIgnored)
        && uid != old.uid()
    {
        return refuse(format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            old.uid()
        ));
    }
    if let Some(version) = wish.resource_version.as_deref() {
        let found = old.meta_str("resourceVersion");
        if version != found {
            return refuse(format!(
                "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({found}). The object might have been modified"
            ));
        }
    }
    Ok(())
}
