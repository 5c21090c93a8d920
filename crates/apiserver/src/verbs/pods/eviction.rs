// SPDX-License-Identifier: Apache-2.0
//! Deleting a pod if the budget of disruptions allows it.

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

use super::{change, done};
use crate::{
    answer::Answer,
    call::Call,
    decode,
    kinds::{conditions, labels},
    object::{Object, as_object, child_object, text},
    registry::Resource,
    status::{Cause, Details, Status},
    store::Range,
    verbs::delete,
};

const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
/// How many pods a budget remembers at most.
const MOST_DISRUPTED: usize = 2000;

pub async fn run(call: &mut Call, body: &Bytes) -> Result<Answer, Status> {
    call.options.check_write("CreateOptions")?;
    let eviction = decode::read(&call.headers, body, "Eviction")?.value;
    if eviction.name() != call.name() {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let options = eviction.get("deleteOptions").cloned().unwrap_or_else(|| json!({}));
    let dry_run = options.get("dryRun").and_then(Value::as_array).into_iter().flatten();
    call.options.dry_run.extend(dry_run.filter_map(Value::as_str).map(str::to_owned));
    let stored = call.server.store.get(&call.resource.keyspace, &call.key()).ok_or_else(|| call.not_found())?;
    let pod = call.resource.read(&stored);
    if !is_free(&pod) {
        ask_budget(call, &pod).await?;
    }
    let key = call.key();
    let resource = call.resource.clone();
    let now = call.server.now();
    if !pod.is_going() {
        change(call, &resource, &key, |pod| {
            let condition = json!({
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting",
                "lastProbeTime": null,
                "lastTransitionTime": now,
            });
            conditions::set(pod, condition);
            Ok(())
        })
        .await?;
    }
    delete::by_options(call, &key, &options).await?;
    Ok(done())
}

/// Pods that do no work yet, or no more, are under no budget.
fn is_free(pod: &Value) -> bool {
    pod.is_going() || matches!(text(pod, "/status/phase"), "Succeeded" | "Failed" | "Pending")
}

async fn ask_budget(call: &Call, pod: &Value) -> Result<(), Status> {
    let Some(budgets) = call.server.registry().find("policy", "v1", "poddisruptionbudgets").cloned() else {
        return Ok(());
    };
    let found = budgets_of(call, &budgets, pod)?;
    let budget = match found.as_slice() {
        [] => return Ok(()),
        [one] => one,
        _ => {
            let why =
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(Status::new(StatusCode::INTERNAL_SERVER_ERROR, "", why));
        }
    };
    if !conditions::is_true(pod, "Ready") {
        let number = |field: &str| count(budget, field);
        match text(budget, "/spec/unhealthyPodEvictionPolicy") {
            "AlwaysAllow" => return Ok(()),
            _ if number("desiredHealthy") > 0 && number("currentHealthy") >= number("desiredHealthy") => return Ok(()),
            _ => {}
        }
    }
    let key = budgets.key(budget.namespace(), budget.name());
    let (name, now) = (pod.name().to_owned(), call.server.now());
    change(call, &budgets, &key, |budget| take(budget, &name, &now)).await
}

fn budgets_of(call: &Call, budgets: &Resource, pod: &Value) -> Result<Vec<Value>, Status> {
    let range = Range { namespace: Some(pod.namespace()), ..Range::default() };
    let page = call.server.store.range(&budgets.keyspace, &range, |_| true).map_err(Status::internal)?;
    let own = pod.meta().and_then(|meta| meta.get("labels"));
    let covers =
        |budget: &Value| budget.pointer("/spec/selector").is_some_and(|selector| labels::matches(selector, own));
    Ok(page.items.iter().map(|stored| budgets.read(stored)).filter(covers).collect())
}

fn count(budget: &Value, field: &str) -> i64 {
    budget.pointer(&format!("/status/{field}")).and_then(Value::as_i64).unwrap_or_default()
}

/// Takes one disruption out of the budget.
fn take(budget: &mut Value, pod: &str, now: &str) -> Result<(), Status> {
    let name = budget.name().to_owned();
    if count(budget, "observedGeneration") < budget.generation() {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(refused(why, Some(10)));
    }
    let forbidden = |why: &str| Err(Status::forbidden("policy", "poddisruptionbudgets", &name, why));
    let allowed = count(budget, "disruptionsAllowed");
    if allowed < 0 {
        return forbidden("pdb disruptions allowed is negative");
    }
    let disrupted = budget.pointer("/status/disruptedPods").and_then(Value::as_object).map_or(0, serde_json::Map::len);
    if disrupted > MOST_DISRUPTED {
        return forbidden("DisruptedPods map too big - too many evictions not confirmed by PDB controller");
    }
    if allowed == 0 {
        let (needs, has) = (count(budget, "desiredHealthy"), count(budget, "currentHealthy"));
        return Err(refused(
            format!("The disruption budget {name} needs {needs} healthy pods and has {has} currently"),
            None,
        ));
    }
    if allowed == 1 {
        let condition = json!({
            "type": "DisruptionAllowed",
            "status": "False",
            "reason": "InsufficientPods",
            "message": "",
            "observedGeneration": budget.generation(),
            "lastTransitionTime": now,
        });
        conditions::set(budget, condition);
    }
    let status = child_object(as_object(budget), "status");
    status.insert("disruptionsAllowed".into(), (allowed - 1).into());
    child_object(status, "disruptedPods").insert(pod.to_owned(), now.into());
    Ok(())
}

fn refused(why: String, after: Option<u32>) -> Status {
    let cause = Cause { reason: "DisruptionBudget".into(), message: why, field: String::new() };
    let details = Details { causes: vec![cause], retry_after_seconds: after, ..Details::default() };
    Status::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", REFUSED).with(details)
}
