// SPDX-License-Identifier: Apache-2.0
//! Replacing an object.

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;

use super::create::match_namespace;
use crate::{
    answer::Answer, call::Call, decode, field::Error, object::Object, registry::Backing, status::Status, write,
};

/// How often a write without a condition is tried against others that write at the same time.
const TRIES: usize = 100;

pub async fn run(call: &mut Call, body: &Bytes) -> Result<Answer, Status> {
    part(call, body, "").await
}

/// Replaces an object, or the part of it that a subresource is.
pub async fn part(call: &mut Call, body: &Bytes, subresource: &str) -> Result<Answer, Status> {
    call.options.check_write("UpdateOptions")?;
    let read = decode::read(&call.headers, body, &call.resource.kind)?;
    let mut object = decode::object(&call.resource.clone(), read, call.options.field_validation(), &mut call.warnings)?;
    match_name(call, &object)?;
    match_namespace(call, &mut object)?;
    let change = |call: &mut Call, old: &Value| {
        check_condition(call, &object, old)?;
        Ok(write::manage(call, Some(old), object.clone(), subresource))
    };
    match write::replace_with(call, subresource, TRIES, change).await? {
        Some(body) => Ok(Answer::Object { code: StatusCode::OK, resource: call.resource.clone(), body }),
        None => create_instead(call, object).await,
    }
}

async fn create_instead(call: &mut Call, object: Value) -> Result<Answer, Status> {
    let allowed = matches!(&call.resource.backing, Backing::Builtin(rules) if rules.create_on_update);
    if !allowed {
        return Err(call.not_found());
    }
    let object = write::manage(call, None, object, "");
    let body = write::create(call, object).await?;
    Ok(Answer::Object { code: StatusCode::CREATED, resource: call.resource.clone(), body })
}

/// The object has the name that the path says.
pub fn match_name(call: &Call, object: &Value) -> Result<(), Status> {
    match object.name() {
        "" => Err(Status::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            call.name()
        ))),
        found if found == call.name() || fault!(WrongName) => Ok(()),
        found => Err(Status::bad_request(format!(
            "the name of the object ({found}) does not match the name on the URL ({})",
            call.name()
        ))),
    }
}

/// Refuses an update of another version of the object than the stored one.
pub fn check_condition(call: &Call, new: &Value, old: &Value) -> Result<(), Status> {
    let resource = &call.resource;
    let uid = new.uid();
    if !uid.is_empty() && uid != old.uid() {
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            etcd_key(call),
            old.uid()
        );
        return Err(Status::conflict(&resource.group, &resource.plural, call.name(), why));
    }
    let version = new.meta_str("resourceVersion");
    let unconditional = match &resource.backing {
        Backing::Builtin(rules) => rules.unconditional_update,
        Backing::Custom(_) => false,
    };
    if version.is_empty() || version == "0" {
        if unconditional {
            return Ok(());
        }
        let error = Error::invalid("metadata.resourceVersion", 0, "must be specified for an update");
        return Err(Status::invalid(&resource.group, &resource.plural, call.name(), &[error]));
    }
    check_version(version)?;
    if version != old.meta_str("resourceVersion") && !fault!(StaleUpdate) {
        return Err(Status::modified(&resource.group, &resource.plural, call.name()));
    }
    Ok(())
}

/// Refuses a version that is no number.
pub fn check_version(version: &str) -> Result<(), Status> {
    if version.parse::<u64>().is_ok() {
        return Ok(());
    }
    let why = format!("strconv.ParseUint: parsing {version:?}: invalid syntax");
    Err(Status::new(StatusCode::INTERNAL_SERVER_ERROR, "", why))
}

/// The key under which the real server would keep the object.
fn etcd_key(call: &Call) -> String {
    let group = if call.resource.custom().is_some() { format!("{}/", call.resource.group) } else { String::new() };
    format!("/registry/{group}{}/{}", call.resource.plural, call.key())
}
