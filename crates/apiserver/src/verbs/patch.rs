// SPDX-License-Identifier: Apache-2.0
//! Changing a part of an object.

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;

use super::update::{check_version, match_name};
use crate::{
    answer::Answer,
    call::Call,
    decode,
    field::Error,
    merge,
    object::Object,
    patch::{self, PatchError},
    request::options::{FieldValidation, refuse},
    status::Status,
    write,
};

/// How often a patch is tried against others that write at the same time.
const TRIES: usize = 5;

/// A patch that was read.
pub enum Change {
    Json(Value),
    Merge(Value),
    Strategic(Value),
    Apply(Value),
}

pub async fn run(call: &mut Call, body: &Bytes) -> Result<Answer, Status> {
    part(call, body, "").await
}

/// Patches an object, or the part of it that a subresource is.
pub async fn part(call: &mut Call, body: &Bytes, subresource: &str) -> Result<Answer, Status> {
    let change = read(call, body)?;
    check_options(call, &change)?;
    let patched = |call: &mut Call, old: &Value| {
        let new = change_object(call, old, &change, subresource)?;
        match_name(call, &new)?;
        // A patch may carry a condition: the version that it is meant for.
        let version = new.meta_str("resourceVersion");
        if !version.is_empty() && version != old.meta_str("resourceVersion") {
            check_version(version)?;
            return Err(Status::modified(&call.resource.group, &call.resource.plural, call.name()));
        }
        Ok(new)
    };
    match (write::replace_with(call, subresource, TRIES, patched).await?, change) {
        (Some(body), _) => Ok(Answer::Object { code: StatusCode::OK, resource: call.resource.clone(), body }),
        (None, Change::Apply(config)) if subresource.is_empty() => create_by_apply(call, config).await,
        (None, _) => Err(call.not_found()),
    }
}

pub fn read(call: &Call, body: &Bytes) -> Result<Change, Status> {
    const BUILTIN: [&str; 4] = [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    ];
    const CUSTOM: [&str; 3] =
        ["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];
    let custom = call.resource.custom().is_some();
    let json = || crate::json::parse(body).map(|read| read.value).map_err(|error| decode::syntax_error(body, &error));
    let patch = || json().map_err(|why| Status::bad_request(format!("error decoding patch: {why}")));
    match decode::media_type(&call.headers).as_str() {
        "application/json-patch+json" => Ok(Change::Json(patch()?)),
        "application/merge-patch+json" => Ok(Change::Merge(patch()?)),
        "application/strategic-merge-patch+json" if !custom => {
            Ok(Change::Strategic(json().map_err(Status::bad_request)?))
        }
        "application/apply-patch+yaml" => Ok(Change::Apply(decode::yaml(body)?)),
        _ if custom => Err(Status::unsupported_media_type(&CUSTOM)),
        "application/strategic-merge-patch+json" => Err(Status::unsupported_media_type(&BUILTIN)),
        _ => {
            let message = "415: Unsupported Media Type";
            Err(Status::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
                .with(crate::status::Details::default()))
        }
    }
}

pub fn check_options(call: &Call, change: &Change) -> Result<(), Status> {
    let apply = matches!(change, Change::Apply(_));
    let mut errors = Vec::new();
    if apply && call.options.field_manager.is_none() {
        errors.push(Error::required("fieldManager", "is required for apply patch"));
    }
    if !apply && call.options.force.is_some() {
        errors.push(Error::forbidden("force", "may not be specified for non-apply patch"));
    }
    refuse("PatchOptions", &errors)?;
    call.options.check_write("PatchOptions")
}

fn change_object(call: &mut Call, old: &Value, change: &Change, subresource: &str) -> Result<Value, Status> {
    let resource = call.resource.clone();
    if let Change::Apply(config) = change {
        return apply(call, Some(old), config, subresource);
    }
    let mut new = changed(call, old, change)?;
    // A strategic merge is shown as the server holds it, the others as they come out.
    let shown = match change {
        Change::Strategic(patch) => merge::wording::plain(patch),
        _ => new.to_string(),
    };
    let unfit = |why: String| {
        let error = Error::invalid("patch", shown.as_str(), why);
        Status::invalid("", "", "", &[error])
    };
    let unknown = decode::fit(&resource, &mut new).map_err(&unfit)?;
    let complaints = decode::complaints(&resource, &unknown, &[], shown.as_bytes());
    match call.options.field_validation() {
        _ if complaints.is_empty() => {}
        FieldValidation::Ignore => {}
        FieldValidation::Warn => call.warnings.extend(complaints),
        FieldValidation::Strict => return Err(unfit(format!("strict decoding error: {}", complaints.join(", ")))),
    }
    decode::fill(&resource, &mut new);
    Ok(write::manage(call, Some(old), new, subresource))
}

/// What a patch other than an apply makes of an object.
pub fn changed(call: &Call, old: &Value, change: &Change) -> Result<Value, Status> {
    let strict = call.options.field_validation() != FieldValidation::Ignore;
    let old = old.clone();
    let changed = match change {
        Change::Json(operations) => patch::json(old, operations, strict),
        Change::Merge(merge) => patch::merge(old, merge.clone()),
        Change::Strategic(strategic) => patch::strategic(old, strategic.clone(), call.resource.schema.schema()),
        Change::Apply(_) => Ok(old),
    };
    changed.map_err(patch_error)
}

fn patch_error(error: PatchError) -> Status {
    let message = error.to_string();
    match error {
        PatchError::BadRequest(_) => Status::bad_request(message),
        PatchError::TooLarge(_) => Status::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message),
        PatchError::Rejected => {
            Status::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).with(crate::status::Details::default())
        }
        PatchError::Failed(_) => Status::new(StatusCode::INTERNAL_SERVER_ERROR, "", message),
    }
}

/// The object that an applied configuration makes of the live one.
fn apply(call: &mut Call, live: Option<&Value>, config: &Value, subresource: &str) -> Result<Value, Status> {
    let resource = call.resource.clone();
    let mut config = config.clone();
    if !config.is_object() {
        return Err(Status::bad_request("error decoding YAML: the configuration is not an object"));
    }
    if call.resource.namespaced && !config.namespace().is_empty() {
        super::create::match_namespace(call, &mut config)?;
    }
    let now = call.server.now();
    let manager = call.manager();
    let reset = write::reset_fields(&resource, subresource);
    let kind = resource.merge_kind();
    let request = merge::Write { kind, manager: &manager, subresource, now: &now, reset: &reset };
    let mut new =
        merge::apply(live, &config, &request, call.options.force.unwrap_or_default()).map_err(write::apply_error)?;
    decode::fit(&resource, &mut new).map_err(|why| decode::unfit(&resource, &why))?;
    decode::fill_applied(&resource, &mut new);
    Ok(new)
}

async fn create_by_apply(call: &mut Call, config: Value) -> Result<Answer, Status> {
    let mut new = apply(call, None, &config, "")?;
    let uid = new.uid().to_owned();
    if !uid.is_empty() {
        let error = Error::invalid("metadata.uid", uid, "field is immutable");
        return Err(Status::invalid(&call.resource.group, &call.resource.kind, call.name(), &[error]));
    }
    new.meta_mut().remove("resourceVersion");
    match_name(call, &new)?;
    let body = write::create(call, new).await?;
    Ok(Answer::Object { code: StatusCode::CREATED, resource: call.resource.clone(), body })
}
