// SPDX-License-Identifier: Apache-2.0
//! LimitRanges: defaults for containers, and bounds for containers, pods and claims.

use bivouac_core::Quantity;
use serde_json::{Map, Value};

use super::{
    Operation, Review, list,
    resources::{self, Amounts},
};
use crate::{
    call::Call,
    object::{Object, as_object, child_object, text},
    status::Status,
};

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// The items of every LimitRange, with the type they are about.
fn ranges(call: &Call, review: &Review<'_>) -> Vec<Vec<Value>> {
    let ranges = list(&call.server, "", "limitranges", Some(review.namespace)).into_iter();
    ranges.map(|range| range.at("/spec/limits").and_then(Value::as_array).cloned().unwrap_or_default()).collect()
}

fn is_about(call: &Call, review: &Review<'_>) -> bool {
    review.creates(call, "", "pods")
        || (review.is(call, "", "persistentvolumeclaims") && review.operation != Operation::Delete)
}

/// Fills in what the containers of a pod leave open.
pub fn admit(call: &Call, review: &mut Review<'_>) -> Result<(), Status> {
    if review.creates(call, "", "pods") {
        for range in ranges(call, review) {
            if let Some(pod) = review.object_mut() {
                fill(pod, &range);
            }
        }
    }
    Ok(())
}

fn fill(pod: &mut Value, range: &[Value]) {
    let mut defaults: [(&str, Map<String, Value>); 2] = [("requests", Map::new()), ("limits", Map::new())];
    for limit in range.iter().filter(|limit| text(limit, "/type") == "Container") {
        for ((_, map), field) in defaults.iter_mut().zip(["defaultRequest", "default"]) {
            map.extend(limit.get(field).and_then(Value::as_object).cloned().unwrap_or_default());
        }
    }
    let mut notes = Vec::new();
    let spec = child_object(as_object(pod), "spec");
    for (kind, word) in [("containers", "container"), ("initContainers", "init container")] {
        for container in spec.get_mut(kind).and_then(Value::as_array_mut).into_iter().flatten() {
            let name = text(container, "/name").to_owned();
            for (field, values) in &defaults {
                let set = complete(container, field, values);
                if !set.is_empty() {
                    let what = field.trim_end_matches('s');
                    notes.push(format!("{} {what} for {word} {name}", set.join(", ")));
                }
            }
        }
    }
    if !notes.is_empty() {
        let note = format!("LimitRanger plugin set: {}", notes.join("; "));
        let meta = child_object(as_object(pod), "metadata");
        child_object(meta, "annotations").insert(ANNOTATION.to_owned(), note.into());
    }
}

/// Sets what is not set, and tells what that was.
fn complete(container: &mut Value, field: &str, values: &Map<String, Value>) -> Vec<String> {
    if values.is_empty() {
        return Vec::new();
    }
    let given = child_object(child_object(as_object(container), "resources"), field);
    let mut set: Vec<String> = values.keys().filter(|name| !given.contains_key(*name)).cloned().collect();
    for name in &set {
        given.extend(values.get(name).map(|value| (name.clone(), value.clone())));
    }
    set.sort();
    set
}

/// Refuses what is outside the bounds.
pub fn validate(call: &Call, review: &Review<'_>) -> Result<(), Status> {
    let (true, Some(object)) = (is_about(call, review), review.object()) else { return Ok(()) };
    for range in ranges(call, review) {
        let wrong = if &*call.resource.plural == "pods" { pod(object, &range) } else { claim(object, &range) };
        let why = match wrong.as_slice() {
            [] => continue,
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        return Err(review.forbidden(call, why));
    }
    Ok(())
}

fn pod(pod: &Value, range: &[Value]) -> Vec<String> {
    let mut wrong = Vec::new();
    for limit in range {
        match text(limit, "/type") {
            "Container" => {
                for kind in ["containers", "initContainers"] {
                    let all = pod.at(&format!("/spec/{kind}")).and_then(Value::as_array).into_iter().flatten();
                    for container in all {
                        let [requests, limits] = ["requests", "limits"]
                            .map(|field| resources::at(container, &format!("/resources/{field}")));
                        bounds(limit, "Container", &requests, &limits, &mut wrong);
                    }
                }
            }
            "Pod" => bounds(limit, "Pod", &resources::requests(pod), &resources::limits(pod), &mut wrong),
            _ => {}
        }
    }
    let mut seen = Vec::new();
    wrong.retain(|one| {
        !seen.contains(one) && {
            seen.push(one.clone());
            true
        }
    });
    wrong
}

fn claim(claim: &Value, range: &[Value]) -> Vec<String> {
    const TYPE: &str = "PersistentVolumeClaim";
    let requests = resources::at(claim, "/spec/resources/requests");
    let mut wrong = Vec::new();
    for limit in range.iter().filter(|limit| text(limit, "/type") == TYPE) {
        for (name, bound) in resources::at(limit, "/min") {
            wrong.extend(least(TYPE, &name, bound, requests.get(&name), None));
        }
        for (name, bound) in resources::at(limit, "/max") {
            let start = format!("maximum {name} usage per {TYPE} is {bound}");
            match requests.get(&name) {
                None => wrong.push(format!("{start}.  No request is specified")),
                Some(found) if *found > bound => wrong.push(format!("{start}, but request is {found}")),
                Some(_) => {}
            }
        }
    }
    wrong
}

fn bounds(limit: &Value, kind: &str, requests: &Amounts, limits: &Amounts, wrong: &mut Vec<String>) {
    for (name, bound) in resources::at(limit, "/min") {
        wrong.extend(least(kind, &name, bound, requests.get(&name), limits.get(&name)));
    }
    for (name, bound) in resources::at(limit, "/max") {
        wrong.extend(most(kind, &name, bound, requests.get(&name), limits.get(&name)));
    }
    for (name, bound) in resources::at(limit, "/maxLimitRequestRatio") {
        wrong.extend(ratio(kind, &name, bound, requests.get(&name), limits.get(&name)));
    }
}

type Found<'a> = Option<&'a Quantity>;

fn least(kind: &str, name: &str, bound: Quantity, request: Found<'_>, limit: Found<'_>) -> Option<String> {
    let start = format!("minimum {name} usage per {kind} is {bound}");
    match (request, limit) {
        (None, _) => Some(format!("{start}.  No request is specified")),
        (Some(found), _) if *found < bound => Some(format!("{start}, but request is {found}")),
        (_, Some(found)) if *found < bound => Some(format!("{start}, but limit is {found}")),
        _ => None,
    }
}

fn most(kind: &str, name: &str, bound: Quantity, request: Found<'_>, limit: Found<'_>) -> Option<String> {
    let start = format!("maximum {name} usage per {kind} is {bound}");
    match (limit, request) {
        (None, _) => Some(format!("{start}.  No limit is specified")),
        (Some(found), _) if *found > bound => Some(format!("{start}, but limit is {found}")),
        (_, Some(found)) if *found > bound => Some(format!("{start}, but request is {found}")),
        _ => None,
    }
}

fn ratio(kind: &str, name: &str, bound: Quantity, request: Found<'_>, limit: Found<'_>) -> Option<String> {
    let start = format!("{name} max limit to request ratio per {kind} is {bound}");
    let thousandths = |found: Found<'_>| found.and_then(|found| found.milli_value()).filter(|value| *value != 0);
    let Some(request) = thousandths(request) else {
        return Some(format!("{start}, but no request is specified or request is 0"));
    };
    let Some(limit) = thousandths(limit) else {
        return Some(format!("{start}, but no limit is specified or limit is 0"));
    };
    #[allow(clippy::cast_precision_loss, reason = "the real server compares floats too")]
    let (found, most) = (limit as f64 / request as f64, bound.milli_value().unwrap_or(i64::MAX) as f64 / 1000.0);
    (found > most).then(|| format!("{start}, but provided ratio is {found:.6}"))
}
