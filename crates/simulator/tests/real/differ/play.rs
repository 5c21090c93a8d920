// SPDX-License-Identifier: Apache-2.0
//! Plays a case in one world.

use http::Method;
use serde_json::{Value, json};

use crate::differ::{
    case::{Case, Pods, Step, no_tokens},
    normal,
    world::{World, collection},
};

/// What was there after the beginning and after each step, and the events in the end.
pub struct Played {
    pub states: Vec<Value>,
    pub events: Value,
}

pub async fn play(case: &Case, world: &World, namespace: &str) -> Played {
    let made = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
    world.must(Method::POST, "/api/v1/namespaces", Some(&made)).await;
    world.settle(namespace).await;
    for object in case.all_objects() {
        create(world, namespace, &object).await;
    }
    world.settle(namespace).await;
    let mut states = vec![state(case, world, namespace).await];
    for step in &case.steps {
        act(step, world, namespace).await;
        world.settle(namespace).await;
        states.push(state(case, world, namespace).await);
    }
    let events = normal::events(&world.list("Event", namespace).await, namespace, &case.by_chance);
    Played { states, events }
}

async fn create(world: &World, namespace: &str, object: &Value) {
    let kind = object["kind"].as_str().unwrap();
    let mut object = object.clone();
    no_tokens(&mut object);
    let meta = object.get_mut("metadata").and_then(Value::as_object_mut).unwrap();
    for owner in meta.get_mut("ownerReferences").and_then(Value::as_array_mut).into_iter().flatten() {
        let path =
            format!("{}/{}", collection(owner["kind"].as_str().unwrap(), namespace), owner["name"].as_str().unwrap());
        if owner["uid"].is_null() {
            owner["uid"] = world.must(Method::GET, &path, None).await["metadata"]["uid"].clone();
        }
    }
    world.must(Method::POST, &collection(kind, namespace), Some(&object)).await;
}

async fn act(step: &Step, world: &World, namespace: &str) {
    let path = |kind: &str, name: &str| format!("{}/{name}", collection(kind, namespace));
    match step {
        Step::Wait(seconds) => world.wait(*seconds).await,
        Step::Create(object) => create(world, namespace, object).await,
        Step::Patch { kind, name, body } => {
            world.must(Method::PATCH, &path(kind, name), Some(body)).await;
        }
        Step::Status { kind, name, body } => {
            let body = json!({ "status": body });
            world.must(Method::PATCH, &format!("{}/status", path(kind, name)), Some(&body)).await;
        }
        Step::Unfinalize { kind, name } => unfinalize(world, &path(kind, name)).await,
        Step::Delete { kind, name, propagation } => {
            let options = propagation.as_ref().map(|word| json!({ "propagationPolicy": word }));
            world.must(Method::DELETE, &path(kind, name), options.as_ref()).await;
        }
        Step::Pods(pods) => {
            for pod in chosen(pods, world.list("Pod", namespace).await) {
                let path = path("Pod", pod["metadata"]["name"].as_str().unwrap());
                touch(pods, &pod, world, &path).await;
            }
        }
    }
}

async fn unfinalize(world: &World, path: &str) {
    world.must(Method::PATCH, path, Some(&json!({ "metadata": { "finalizers": null } }))).await;
}

/// Pods that are alike but for the random end of their names may be taken for each other.
fn chosen(pods: &Pods, all: Vec<Value>) -> Vec<Value> {
    let index = |pod: &Value| {
        let annotation = pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"].as_str();
        let ordinal = pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"].as_str();
        annotation.or(ordinal).and_then(|text| text.parse::<i64>().ok())
    };
    let mut fit: Vec<Value> = all
        .into_iter()
        .filter(|pod| {
            let phase = pod["status"]["phase"].as_str().unwrap_or_default();
            matches!(phase, "Succeeded" | "Failed") == pods.stopped
                && pods.phase.as_ref().is_none_or(|asked| asked == phase)
                && pod["metadata"]["deletionTimestamp"].is_null() != pods.terminating
                && pods.index.as_ref().is_none_or(|list| index(pod).is_some_and(|index| list.contains(&index)))
                && pods.labels.iter().all(|(key, value)| pod["metadata"]["labels"][key] == value.as_str())
        })
        .collect();
    fit.sort_by_key(|pod| pod["status"]["phase"].as_str().unwrap_or_default().to_owned());
    fit.truncate(pods.count.unwrap_or(usize::MAX));
    assert!(!fit.is_empty(), "no pod fits {pods:?}");
    fit
}

async fn touch(pods: &Pods, pod: &Value, world: &World, path: &str) {
    if let Some(node) = &pods.bind {
        let own = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0";
        let node = if node == "its own" { pod.pointer(own).and_then(Value::as_str).unwrap() } else { node };
        let name = &pod["metadata"]["name"];
        let binding = json!({ "apiVersion": "v1", "kind": "Binding", "metadata": { "name": name },
            "target": { "kind": "Node", "name": node } });
        world.must(Method::POST, &format!("{path}/binding"), Some(&binding)).await;
    }
    if let Some(status) = status(pods, pod, &world.now()) {
        world.must(Method::PATCH, &format!("{path}/status"), Some(&json!({ "status": status }))).await;
    }
    if let Some(labels) = &pods.relabel {
        world.must(Method::PATCH, path, Some(&json!({ "metadata": { "labels": labels } }))).await;
    }
    if pods.unfinalize {
        unfinalize(world, path).await;
    }
    match pods.delete.as_deref() {
        Some("now") => drop(world.must(Method::DELETE, path, Some(&json!({ "gracePeriodSeconds": 0 }))).await),
        Some(_) => drop(world.must(Method::DELETE, path, None).await),
        None => {}
    }
}

/// What a kubelet would write.
fn status(pods: &Pods, pod: &Value, now: &str) -> Option<Value> {
    let word = pods.set.as_deref();
    if word.is_none() && pods.condition.is_none() && pods.restarts.is_none() {
        return None;
    }
    let (phase, ready) = match word {
        Some("Ready") => ("Running", true),
        Some(other) => (other, false),
        None => (pod["status"]["phase"].as_str().unwrap_or("Pending"), false),
    };
    let code = pods.exit.unwrap_or(i64::from(phase == "Failed"));
    let state = match phase {
        "Succeeded" | "Failed" => json!({ "terminated": { "exitCode": code, "finishedAt": now, "startedAt": now } }),
        "Running" => json!({ "running": { "startedAt": now } }),
        _ => json!({ "waiting": {} }),
    };
    let containers = pod["spec"]["containers"].as_array().cloned().unwrap_or_default();
    let containers = containers.iter().map(|container| {
        json!({ "name": container["name"], "image": "x", "imageID": "", "ready": ready, "started": ready,
            "restartCount": pods.restarts.unwrap_or_default(), "state": state })
    });
    let truth = if ready { "True" } else { "False" };
    let mut conditions = vec![json!({ "type": "Ready", "status": truth, "lastTransitionTime": now })];
    conditions
        .extend(pods.condition.iter().map(|kind| json!({ "type": kind, "status": "True", "lastTransitionTime": now })));
    let mut status = json!({ "phase": phase, "startTime": now, "conditions": conditions,
        "containerStatuses": containers.collect::<Vec<_>>() });
    if let Some(ip) = &pods.ip {
        status["podIP"] = json!(ip);
        status["podIPs"] = json!([{ "ip": ip }]);
    }
    Some(status)
}

async fn state(case: &Case, world: &World, namespace: &str) -> Value {
    let mut state = serde_json::Map::new();
    for kind in case.kinds() {
        let objects = world.list(kind, namespace).await;
        state.insert(kind.to_owned(), normal::objects(&objects, namespace));
    }
    let mut state = Value::Object(state);
    normal::forget_chance(&mut state, &case.by_chance);
    state
}
