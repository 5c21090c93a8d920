// SPDX-License-Identifier: Apache-2.0
//! Policies that change objects, by JSON patches.

use http::StatusCode;
use kube_cel::cel::Value as Cel;
use serde_json::Value;

use super::{Own, Policy, Registered, bound, cel::to_json, conditions_hold, params, registered::Binding, variables};
use crate::{
    admission::Review,
    call::Call,
    decode, patch,
    status::{Cause, Details, Status},
};

/// Runs every policy; `again` only those that want to see what others have changed.
pub fn mutate(call: &mut Call, review: &mut Review<'_>, registered: &Registered, again: bool) -> Result<(), Status> {
    for policy in registered.mutating.iter().filter(|policy| !again || policy.again) {
        let bindings: Vec<String> = bound(call, review, policy).iter().map(|binding| binding.name.clone()).collect();
        for binding in policy.bindings.iter().filter(|binding| bindings.contains(&binding.name)) {
            if let Err(why) = run(call, review, policy, binding)
                && policy.fails
            {
                let (of, by) = (&policy.name, &binding.name);
                let why = format!("policy '{of}' with binding '{by}' denied request: {why}");
                let causes = vec![Cause { message: why.clone(), ..Cause::default() }];
                let named = review.forbidden(call, &why).details.map(|details| *details).unwrap_or_default();
                let details = Details { causes, ..named };
                return Err(Status::new(StatusCode::FORBIDDEN, "Invalid", why).with(details));
            }
        }
    }
    Ok(())
}

fn run(call: &Call, review: &mut Review<'_>, policy: &Policy, binding: &Binding) -> Result<(), String> {
    for params in params(call, review, policy, binding).map_err(|why| format!("failed to configure binding: {why}"))? {
        let all = variables(call, review, params.as_ref());
        if !conditions_hold(policy, &all)? {
            continue;
        }
        for mutation in &policy.mutations {
            let mut all = variables(call, review, params.as_ref());
            let own = Own::evaluate(policy, &mut all);
            let made = mutation.evaluate(&all).map_err(|error| {
                format!("expression '{}' resulted in error: {}", mutation.source, own.explain(error))
            })?;
            let Cel::List(_) = &made else { return Err("the expression does not give a list of patches".to_owned()) };
            let steps = to_json(&made).ok_or("the expression gives something that is no JSON")?;
            if steps.as_array().is_some_and(|steps| !steps.is_empty()) {
                apply(call, review, &steps)?;
            }
        }
    }
    Ok(())
}

fn apply(call: &Call, review: &mut Review<'_>, steps: &Value) -> Result<(), String> {
    let Some(object) = review.object_mut() else { return Ok(()) };
    let mut changed = patch::json(object.clone(), steps, false).map_err(|error| error.to_string())?;
    decode::fill(&call.resource, &mut changed);
    *object = changed;
    Ok(())
}
