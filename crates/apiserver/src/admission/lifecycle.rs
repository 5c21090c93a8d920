// SPDX-License-Identifier: Apache-2.0
//! Nothing is made in a namespace that is absent or going, and some namespaces stay for ever.

use super::{Operation, Review};
use crate::{
    call::Call,
    status::{Cause, Status},
    store::Keyspace,
};

const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

pub fn admit(call: &Call, review: &Review<'_>) -> Result<(), Status> {
    let resource = &call.resource;
    let is_namespace = resource.group.is_empty() && &*resource.kind == "Namespace";
    if is_namespace && review.operation == Operation::Delete && IMMORTAL.contains(&review.name) {
        return Err(review.forbidden(call, "this namespace may not be deleted"));
    }
    let is_question = &*resource.plural == "localsubjectaccessreviews";
    if is_namespace || is_question || review.namespace.is_empty() || review.operation == Operation::Delete {
        return Ok(());
    }
    let Some(namespace) = call.server.store.get(&Keyspace::new("", "namespaces"), review.namespace) else {
        return Err(Status::not_found("", "namespaces", review.namespace));
    };
    // The phase is a field that selectors know: no need to read the object, which every write would pay for.
    if review.operation == Operation::Create && namespace.fields().get("status.phase") == Some("Terminating") {
        let name = review.namespace;
        let why = format!("unable to create new content in namespace {name} because it is being terminated");
        let mut status = review.forbidden(call, why);
        if let Some(details) = &mut status.details {
            details.causes.push(Cause {
                reason: "NamespaceTerminating".into(),
                message: format!("namespace {name} is being terminated"),
                field: "metadata.namespace".into(),
            });
        }
        return Err(status);
    }
    Ok(())
}
