// SPDX-License-Identifier: Apache-2.0
//! Creating an object.

use bytes::Bytes;
use http::StatusCode;

use crate::{answer::Answer, call::Call, decode, object::Object, status::Status, verbs::review, write};

pub async fn run(call: &mut Call, body: &Bytes) -> Result<Answer, Status> {
    if call.resource.group.is_empty() && &*call.resource.plural == "bindings" {
        return super::pods::binding::run(call, body).await;
    }
    call.options.check_write("CreateOptions")?;
    let read = decode::read(&call.headers, body, &call.resource.kind)?;
    let mut object = decode::object(&call.resource.clone(), read, call.options.field_validation(), &mut call.warnings)?;
    if let Some(answer) = review::run(call, &object)? {
        return Ok(answer);
    }
    if !object.meta_str("resourceVersion").is_empty() {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(Status::new(StatusCode::INTERNAL_SERVER_ERROR, "", message));
    }
    match_namespace(call, &mut object)?;
    let object = write::manage(call, None, object, "");
    let body = write::create(call, object).await?;
    Ok(Answer::Object { code: StatusCode::CREATED, resource: call.resource.clone(), body })
}

/// The object lives where the request says.
pub fn match_namespace(call: &Call, object: &mut serde_json::Value) -> Result<(), Status> {
    let wanted = call.namespace();
    if !call.resource.namespaced {
        return Ok(());
    }
    match object.namespace() {
        "" => object.set_meta("namespace", wanted),
        found if found == wanted => {}
        _ => {
            let message = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(Status::bad_request(message));
        }
    }
    Ok(())
}
