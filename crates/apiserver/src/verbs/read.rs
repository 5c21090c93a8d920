// SPDX-License-Identifier: Apache-2.0
//! Reading one object, and lists.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use http::StatusCode;
use serde_json::{Value, json};

use crate::{
    answer::{Answer, List},
    call::Call,
    field::Error,
    registry::Resource,
    request::options::{Options, refuse},
    status::{Cause, Details, Status},
    store::{Page, Range, ReadError, Stored},
};

/// One object.
pub fn get(call: &Call) -> Result<Answer, Status> {
    if let Some(version) = &call.options.resource_version {
        let wanted = revision(version)?;
        reached(call, wanted)?;
    }
    let stored = call.server.store.get(&call.resource.keyspace, &call.key()).ok_or_else(|| call.not_found())?;
    Ok(Answer::Object { code: StatusCode::OK, resource: call.resource.clone(), body: call.resource.present(&stored) })
}

/// Many objects.
pub async fn list(call: &Call) -> Result<Answer, Status> {
    let options = &call.options;
    check(options)?;
    check_fields(&call.resource, options)?;
    let start = start(call)?;
    let names = options.fields.required("metadata.namespace");
    let namespace = call.target.namespace.as_deref().or(if call.resource.namespaced { names } else { None });
    let unfiltered = options.labels.is_empty() && options.fields.is_empty();
    let range = Range {
        namespace,
        after: start.after.as_deref(),
        limit: options.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
        at: start.at,
        count: options.limit.is_some() && unfiltered,
    };
    let page = call
        .server
        .store
        .range(&call.resource.keyspace, &range, |stored| matches(options, &call.resource, stored))
        .map_err(|error| read_error(&error, options))?;
    Ok(Answer::List(into_list(call, page)))
}

fn into_list(call: &Call, page: Page) -> List {
    let continue_token = page
        .items
        .iter()
        .nth_back(usize::from(fault!(PageRepeats)))
        .filter(|_| page.more)
        .map(|last| token(page.revision, last.key(), call.target.namespace.as_deref()));
    List {
        resource: call.resource.clone(),
        items: page.items.iter().map(|stored| call.resource.present_item(stored)).collect(),
        revision: if fault!(OldListRevision) { 1 } else { page.revision },
        continue_token,
        remaining: page.remaining,
    }
}

/// Whether an object is among those that the selectors ask for.
pub fn matches(options: &Options, resource: &Resource, stored: &Stored) -> bool {
    options.labels.matches(|key| stored.labels().get(key))
        && (options.fields.is_empty()
            || fault!(FieldsIgnored)
            || options.fields.matches(|field| selected(resource, stored, field)))
}

fn selected<'a>(resource: &Resource, stored: &'a Stored, field: &str) -> Option<&'a str> {
    let (namespace, name) = match stored.key().split_once('/') {
        Some((namespace, name)) if resource.namespaced => (namespace, name),
        _ => ("", stored.key()),
    };
    match field {
        "metadata.name" => Some(name),
        "metadata.namespace" => Some(namespace),
        _ => stored.fields().get(field),
    }
}

/// Refuses field selectors that the kind does not have.
pub fn check_fields(resource: &Resource, options: &Options) -> Result<(), Status> {
    for requirement in &options.fields.0 {
        let field = requirement.field.as_str();
        let known = field == "metadata.name"
            || (field == "metadata.namespace" && (resource.namespaced || resource.custom().is_none()))
            || resource.selectable(field);
        if !known {
            return Err(Status::bad_request(resource.unknown_selector(field)));
        }
    }
    Ok(())
}

/// Where a list begins.
#[derive(Debug, Default)]
struct Start {
    after: Option<String>,
    at: Option<u64>,
}

fn start(call: &Call) -> Result<Start, Status> {
    let options = &call.options;
    if let Some(token) = &options.continue_token {
        return read_token(token, call.target.namespace.as_deref());
    }
    let version = options.resource_version.as_deref().unwrap_or_default();
    let wanted = if version.is_empty() { 0 } else { revision(version)? };
    if wanted == 0 {
        return Ok(Start::default());
    }
    reached(call, wanted)?;
    let exact = match options.resource_version_match.as_deref() {
        Some("Exact") => true,
        Some(_) => false,
        None => options.limit.is_some(),
    };
    Ok(Start { after: None, at: exact.then_some(wanted) })
}

/// Refuses a revision that lies ahead, as the real server does after waiting for it in vain.
fn reached(call: &Call, wanted: u64) -> Result<(), Status> {
    let current = call.server.store.revision();
    if wanted <= current {
        return Ok(());
    }
    let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
    let cause = Cause {
        reason: "ResourceVersionTooLarge".into(),
        message: "Too large resource version".into(),
        field: String::new(),
    };
    Err(Status::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message).with(Details {
        causes: vec![cause],
        retry_after_seconds: Some(1),
        ..Details::default()
    }))
}

/// The number in a resourceVersion.
pub fn revision(text: &str) -> Result<u64, Status> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        Status::bad_request(format!(
            "invalid resource version: resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
        ))
    })
}

fn token(revision: u64, last: &str, namespace: Option<&str>) -> String {
    // The key is told from the start of the listed part, as the real server does.
    let start = namespace.and_then(|namespace| last.strip_prefix(namespace)?.strip_prefix('/')).unwrap_or(last);
    let token = json!({ "v": "meta.k8s.io/v1", "rv": revision, "start": format!("{start}\u{0}") });
    BASE64_URL_SAFE_NO_PAD.encode(token.to_string())
}

fn read_token(token: &str, namespace: Option<&str>) -> Result<Start, Status> {
    let bad = |why: String| Status::bad_request(format!("invalid continue token: {why}"));
    let bytes = BASE64_URL_SAFE_NO_PAD
        .decode(token.trim_end_matches('='))
        .map_err(|_| bad("continue key is not valid: illegal base64 data at input byte 0".into()))?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|_| {
        let first = bytes.first().map(|byte| crate::decode::go_char(char::from(*byte))).unwrap_or_default();
        bad(format!("continue key is not valid: invalid character {first} looking for beginning of value"))
    })?;
    if value.get("v").and_then(Value::as_str) != Some("meta.k8s.io/v1") {
        let version = value.get("v").and_then(Value::as_str).unwrap_or_default();
        return Err(bad(format!(
            "continue key is not valid: server does not recognize this encoded version {version:?}"
        )));
    }
    let start = value.get("start").and_then(Value::as_str).unwrap_or_default();
    if start.is_empty() {
        return Err(bad("continue key is not valid: encoded start key is missing".into()));
    }
    let last = start.trim_end_matches('\u{0}');
    let after = namespace.map_or_else(|| last.to_owned(), |namespace| format!("{namespace}/{last}"));
    let at = value.get("rv").and_then(Value::as_u64).filter(|revision| *revision > 0);
    Ok(Start { after: Some(after), at })
}

/// What is wrong with the options of a list.
pub fn check(options: &Options) -> Result<(), Status> {
    let mut errors = Vec::new();
    let forbidden = |text: &str| Error::forbidden("resourceVersionMatch", text);
    let version = options.resource_version.as_deref().unwrap_or_default();
    if options.watch {
        return Ok(());
    }
    if options.send_initial_events.is_some() {
        errors.push(Error::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    if let Some(how) = options.resource_version_match.as_deref() {
        if version.is_empty() {
            errors.push(forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided"));
        }
        if options.continue_token.is_some() {
            errors.push(forbidden("resourceVersionMatch is forbidden when continue is provided"));
        }
        if !["Exact", "NotOlderThan"].contains(&how) {
            errors.push(Error::not_supported("resourceVersionMatch", how, &["Exact", "NotOlderThan", ""]));
        }
        if how == "Exact" && version == "0" {
            errors.push(forbidden("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""));
        }
    }
    refuse("ListOptions", &errors)?;
    if options.continue_token.is_some() && !version.is_empty() && version != "0" {
        return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
    }
    Ok(())
}

fn read_error(error: &ReadError, options: &Options) -> Status {
    match error {
        ReadError::Compacted(_) if options.continue_token.is_some() => {
            let message = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.";
            Status::expired(message)
        }
        ReadError::Compacted(_) => Status::expired("The resourceVersion for the provided list is too old."),
        ReadError::Future { requested, current } => Status::new(
            StatusCode::GATEWAY_TIMEOUT,
            "Timeout",
            format!("Timeout: Too large resource version: {requested}, current: {current}"),
        ),
    }
}
