// SPDX-License-Identifier: Apache-2.0
//! Policies that refuse.

use http::StatusCode;
use kube_cel::cel::Value as Cel;

use super::{
    Own, Policy, Registered, bound,
    cel::Variables,
    conditions_hold, params,
    registered::{Binding, Check},
    variables,
};
use crate::{
    admission::Review,
    call::Call,
    status::{Cause, Details, Status},
};

/// The longest message that an expression may make.
const LONGEST: usize = 5 * 1024;

/// What a policy has against a request.
struct Complaint {
    message: String,
    reason: String,
}

/// Refuses the request for the first reason, after all warnings have been given.
pub fn validate(call: &mut Call, review: &Review<'_>, registered: &Registered) -> Result<(), Status> {
    let mut refusal = None;
    for policy in &registered.validating {
        for binding in bound(call, review, policy) {
            let complaints = complaints(call, review, policy, binding);
            let actions = binding.spec.get("validationActions").and_then(serde_json::Value::as_array);
            let does = |action: &str| actions.is_some_and(|all| all.iter().any(|one| one == action));
            for complaint in complaints {
                let (of, by, why) = (&policy.name, &binding.name, &complaint.message);
                if does("Warn") {
                    call.warnings.push(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{of}' with binding '{by}': {why}"
                    ));
                }
                if does("Deny") && refusal.is_none() {
                    let why = format!("ValidatingAdmissionPolicy '{of}' with binding '{by}' denied request: {why}");
                    refusal = Some(refuse(call, review, why, &complaint.reason));
                }
            }
        }
    }
    refusal.map_or(Ok(()), Err)
}

fn refuse(call: &Call, review: &Review<'_>, why: String, reason: &str) -> Status {
    let code = match reason {
        "Forbidden" => StatusCode::FORBIDDEN,
        "Unauthorized" => StatusCode::UNAUTHORIZED,
        "RequestEntityTooLarge" => StatusCode::PAYLOAD_TOO_LARGE,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    };
    let named = review.forbidden(call, &why);
    let details = named.details.map(|details| *details).unwrap_or_default();
    let causes = vec![Cause { message: why, ..Cause::default() }];
    let reason = if reason.is_empty() { "Invalid" } else { reason };
    Status::new(code, reason, named.message).with(Details { causes, ..details })
}

fn complaints(call: &Call, review: &Review<'_>, policy: &Policy, binding: &Binding) -> Vec<Complaint> {
    let failure = |message: String| Complaint { message, reason: String::new() };
    let params = match params(call, review, policy, binding) {
        Ok(params) => params,
        Err(why) if policy.fails => return vec![failure(format!("failed to configure binding: {why}"))],
        Err(_) => return Vec::new(),
    };
    let mut complaints = Vec::new();
    for params in params {
        let mut all = variables(call, review, params.as_ref());
        match conditions_hold(policy, &all) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(why) => {
                complaints.extend(policy.fails.then(|| failure(why)));
                continue;
            }
        }
        let own = Own::evaluate(policy, &mut all);
        complaints.extend(policy.checks.iter().filter_map(|check| complaint(policy, check, &own, &all)));
    }
    complaints
}

fn complaint(policy: &Policy, check: &Check, own: &Own, all: &Variables) -> Option<Complaint> {
    let reason = check.reason.clone();
    match check.expression.evaluate(all) {
        Ok(Cel::Bool(true)) => None,
        Ok(Cel::Bool(false)) => Some(Complaint { message: message(check, all), reason }),
        Ok(_) => policy.fails.then(|| Complaint { message: "cel expression evaluates to false".into(), reason }),
        Err(error) => policy.fails.then(|| {
            let error = own.explain(error);
            let message = format!("expression '{}' resulted in error: {error}", check.expression.source);
            Complaint { message, reason }
        }),
    }
}

fn message(check: &Check, all: &Variables) -> String {
    let made = check.message_expression.as_ref().and_then(|expression| match expression.evaluate(all) {
        Ok(Cel::String(text)) => Some(text.trim().to_owned()),
        _ => None,
    });
    let made = made.filter(|text| !text.is_empty() && text.len() <= LONGEST && !text.contains('\n'));
    match made {
        Some(text) => text,
        None if check.message.is_empty() => format!("failed expression: {}", check.expression.source.trim()),
        None => check.message.clone(),
    }
}
