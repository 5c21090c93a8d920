// SPDX-License-Identifier: Apache-2.0
//! What pods get: a priority, tolerations, and what their runtime class says.

use serde_json::{Map, Value, json};

use super::{Operation, Review, list_with, look};
use crate::{
    call::Call,
    object::{Object, as_object, child_object, text},
    status::Status,
};

const SCHEDULING: &str = "scheduling.k8s.io";
const PREEMPTS: &str = "PreemptLowerPriority";
/// How long a pod stays on a node that is not ready.
const PATIENCE: u32 = 300;

fn spec<'a>(review: &'a mut Review<'_>) -> Option<&'a mut Map<String, Value>> {
    review.object_mut().map(|pod| child_object(as_object(pod), "spec"))
}

/// Gives a pod the priority of its class.
pub fn prioritise(call: &Call, review: &mut Review<'_>) -> Result<(), Status> {
    if !review.is(call, "", "pods") {
        return Ok(());
    }
    if let (Operation::Update, Some(old)) = (review.operation, review.old) {
        let Some(spec) = spec(review) else { return Ok(()) };
        for field in ["priority", "preemptionPolicy"] {
            if let (None, Some(value)) = (spec.get(field), old.at(&format!("/spec/{field}"))) {
                spec.insert(field.to_owned(), value.clone());
            }
        }
        return Ok(());
    }
    if review.operation != Operation::Create {
        return Ok(());
    }
    let Some(pod) = review.object() else { return Ok(()) };
    let class = match text(pod, "/spec/priorityClassName") {
        "" => default_class(call),
        name => match look(&call.server, SCHEDULING, "priorityclasses", name) {
            Some(class) => Some(class),
            None => return Err(review.forbidden(call, format!("no PriorityClass with name {name} was found"))),
        },
    };
    let class = class.unwrap_or_else(|| json!({ "value": 0, "preemptionPolicy": PREEMPTS }));
    let value = class.get("value").and_then(Value::as_i64).unwrap_or_default();
    let policy = class.get("preemptionPolicy").and_then(Value::as_str).unwrap_or(PREEMPTS);
    if let Some(given) = pod.at("/spec/priority").and_then(Value::as_i64).filter(|given| *given != value) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name"
        );
        return Err(review.forbidden(call, why));
    }
    let given = text(pod, "/spec/preemptionPolicy");
    if !given.is_empty() && given != policy {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
        );
        return Err(review.forbidden(call, why));
    }
    if let Some(spec) = spec(review) {
        if !class.name().is_empty() {
            spec.insert("priorityClassName".into(), class.name().into());
        }
        spec.insert("priority".into(), value.into());
        spec.insert("preemptionPolicy".into(), policy.into());
    }
    Ok(())
}

fn is_default(class: &Value) -> bool {
    class.get("globalDefault").and_then(Value::as_bool).unwrap_or_default()
}

/// The class of pods that name none. Of several the lowest counts.
fn default_class(call: &Call) -> Option<Value> {
    let classes = list_with(&call.server, SCHEDULING, "priorityclasses", None, "\"globalDefault\":true").into_iter();
    classes.filter(is_default).min_by_key(|class| class.get("value").and_then(Value::as_i64))
}

/// Refuses a second class for pods that name none.
pub fn check_default_priority(call: &Call, review: &Review<'_>) -> Result<(), Status> {
    let (true, Some(class)) = (review.is(call, SCHEDULING, "priorityclasses"), review.object()) else { return Ok(()) };
    if !is_default(class) {
        return Ok(());
    }
    match default_class(call) {
        Some(other) if review.operation == Operation::Create || other.name() != class.name() => {
            let why =
                format!("PriorityClass {} is already marked as default. Only one default can exist", other.name());
            Err(review.forbidden(call, why))
        }
        _ => Ok(()),
    }
}

/// Lets a pod stay on a troubled node for a while.
pub fn tolerate(call: &Call, review: &mut Review<'_>) {
    if !review.is(call, "", "pods") || review.operation == Operation::Delete {
        return;
    }
    let Some(spec) = spec(review) else { return };
    let tolerations = spec.get("tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
    let tolerates = |key: &str| {
        tolerations.iter().any(|one| {
            let of = text(one, "/key");
            (of == key || of.is_empty()) && matches!(text(one, "/effect"), "NoExecute" | "")
        })
    };
    let keys = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
    let missing: Vec<Value> = keys
        .into_iter()
        .filter(|key| !tolerates(key))
        .map(|key| json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": PATIENCE }))
        .collect();
    if !missing.is_empty() {
        spec.insert("tolerations".into(), tolerations.iter().cloned().chain(missing).collect());
    }
}

fn runtime_class(call: &Call, pod: &Value) -> Option<Value> {
    let name = text(pod, "/spec/runtimeClassName");
    if name.is_empty() { None } else { look(&call.server, "node.k8s.io", "runtimeclasses", name) }
}

/// Gives a pod the overhead and the nodes of its runtime class.
pub fn run_as(call: &Call, review: &mut Review<'_>) -> Result<(), Status> {
    if !review.creates(call, "", "pods") {
        return Ok(());
    }
    let Some(pod) = review.object() else { return Ok(()) };
    let name = text(pod, "/spec/runtimeClassName");
    let Some(class) = runtime_class(call, pod) else {
        if name.is_empty() {
            return Ok(());
        }
        return Err(review.forbidden(call, format!("pod rejected: RuntimeClass {name:?} not found")));
    };
    let overhead = class.at("/overhead/podFixed").cloned();
    if let (Some(wanted), Some(given)) = (&overhead, pod.at("/spec/overhead"))
        && wanted != given
    {
        let why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
        return Err(review.forbidden(call, why));
    }
    let selector = class.at("/scheduling/nodeSelector").and_then(Value::as_object).cloned().unwrap_or_default();
    for (key, wanted) in &selector {
        let given = pod.at("/spec/nodeSelector").and_then(|map| map.get(key));
        if let Some(given) = given.filter(|given| *given != wanted) {
            let (wanted, given) = (wanted.as_str().unwrap_or_default(), given.as_str().unwrap_or_default());
            let why = format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted}; pod.spec.nodeSelector[{key}] = {given}"
            );
            return Err(review.forbidden(call, why));
        }
    }
    let tolerations = class.at("/scheduling/tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(spec) = spec(review) else { return Ok(()) };
    if let Some(overhead) = overhead {
        spec.insert("overhead".into(), overhead);
    }
    if !selector.is_empty() {
        child_object(spec, "nodeSelector").extend(selector);
    }
    if !tolerations.is_empty()
        && let Some(all) = spec.entry("tolerations").or_insert_with(|| json!([])).as_array_mut()
    {
        let new: Vec<Value> = tolerations.into_iter().filter(|one| !all.contains(one)).collect();
        all.extend(new);
    }
    Ok(())
}

pub fn check_overhead(call: &Call, review: &Review<'_>) -> Result<(), Status> {
    let (true, Some(pod)) = (review.creates(call, "", "pods"), review.object()) else { return Ok(()) };
    let given = pod.at("/spec/overhead").and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    let defined = runtime_class(call, pod).is_some_and(|class| class.at("/overhead/podFixed").is_some());
    if given && !defined {
        let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
        return Err(review.forbidden(call, why));
    }
    Ok(())
}
