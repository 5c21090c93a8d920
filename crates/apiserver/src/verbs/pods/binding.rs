// SPDX-License-Identifier: Apache-2.0
//! Giving a pod its node.

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

use super::{change, done};
use crate::{
    answer::Answer,
    call::Call,
    decode,
    field::Error,
    kinds::conditions,
    object::{Object, as_object, child_object, text},
    status::Status,
};

/// The pod is named by the path, or by the binding where the path names no pod.
pub async fn run(call: &mut Call, body: &Bytes) -> Result<Answer, Status> {
    call.options.check_write("CreateOptions")?;
    let binding = decode::read(&call.headers, body, "Binding")?.value;
    let name = match call.name() {
        "" if binding.name().is_empty() => return Err(Status::bad_request("Name parameter required.")),
        "" => binding.name().to_owned(),
        name if name == binding.name() => name.to_owned(),
        _ => return Err(Status::bad_request("name in URL does not match name in Binding object")),
    };
    check(&binding)?;
    let Some(pods) = call.server.registry().find("", "v1", "pods").cloned() else { return Err(call.not_found()) };
    let key = pods.key(call.namespace(), &name);
    let now = call.server.now();
    change(call, &pods, &key, |pod| assign(pod, &binding, &now)).await?;
    Ok(done())
}

fn check(binding: &Value) -> Result<(), Status> {
    let (kind, name) = (text(binding, "/target/kind"), text(binding, "/target/name"));
    let refuse = |error: Error| Err(Status::new(StatusCode::INTERNAL_SERVER_ERROR, "", error.to_string()));
    if !["", "Node"].contains(&kind) {
        return refuse(Error::not_supported("target.kind", kind, &["Node", "<empty>"]));
    }
    if name.is_empty() {
        return refuse(Error::required("target.name", ""));
    }
    Ok(())
}

fn assign(pod: &mut Value, binding: &Value, now: &str) -> Result<(), Status> {
    let name = pod.name().to_owned();
    let refuse = |why: String| Err(Status::conflict("", "pods/binding", &name, why));
    for (field, what) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
        let (wanted, found) = (binding.meta_str(field), pod.meta_str(field));
        if !wanted.is_empty() && wanted != found {
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: /registry/pods/{}/{name}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}",
                pod.namespace()
            );
            return Err(Status::conflict("", "pods", &name, why));
        }
    }
    if pod.is_going() {
        return refuse(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let node = text(pod, "/spec/nodeName");
    if !node.is_empty() {
        return refuse(format!("pod {name} is already assigned to node {node:?}"));
    }
    if pod.pointer("/spec/schedulingGates").and_then(Value::as_array).is_some_and(|gates| !gates.is_empty()) {
        return refuse(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    child_object(as_object(pod), "spec").insert("nodeName".into(), text(binding, "/target/name").into());
    for field in ["annotations", "labels"] {
        let added = binding.meta().and_then(|meta| meta.get(field)).and_then(Value::as_object).cloned();
        if let Some(added) = added.filter(|added| !added.is_empty()) {
            child_object(pod.meta_mut(), field).extend(added);
        }
    }
    let condition =
        json!({ "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now });
    conditions::set(pod, condition);
    Ok(())
}
