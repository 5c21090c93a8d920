// SPDX-License-Identifier: Apache-2.0
//! A whole simulated cluster with nodes, and pods that follow a script.

use std::time::Duration;

use serde_json::{Value, json};

use crate::stage::Stage;

pub const PODS: &str = "/api/v1/namespaces/team/pods";
pub const EVENTS: &str = "/api/v1/namespaces/team/events";

/// A cluster with these nodes and the namespace `team`.
pub async fn camp(nodes: &[&str]) -> Stage {
    let stage = Stage::new().await;
    stage.apply(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "team" } })).await;
    for name in nodes {
        stage.apply(node(name, json!({ "cpu": "8", "memory": "32Gi", "pods": "30" }))).await;
    }
    after(1).await;
    stage
}

pub fn node(name: &str, capacity: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "annotations": {
        "simulator.bivouac.dev/node": "true", "simulator.bivouac.dev/capacity": capacity.to_string() } } })
}

/// A pod called `p` whose script is these words.
pub fn pod(script: &[(&str, &str)], spec: Value) -> Value {
    let said = script.iter().map(|(word, value)| (format!("simulator.bivouac.dev/{word}"), json!(value)));
    let said: serde_json::Map<_, _> = said.collect();
    let mut whole = json!({ "containers": [{ "name": "main", "image": "x" }] });
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    json!({ "apiVersion": "v1", "kind": "Pod", "spec": whole,
        "metadata": { "name": "p", "namespace": "team", "annotations": said } })
}

pub async fn after(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

pub async fn p(stage: &Stage) -> Value {
    stage.get(&format!("{PODS}/p")).await.unwrap_or_default()
}

pub async fn patch_node(stage: &Stage, name: &str, body: Value) {
    stage.patch(&format!("/api/v1/nodes/{name}"), body).await;
}

pub async fn kill(stage: &Stage, name: &str, dead: bool) {
    let word = if dead { json!("true") } else { Value::Null };
    patch_node(stage, name, json!({ "metadata": { "annotations": { "simulator.bivouac.dev/dead": word } } })).await;
}

/// The value of a condition.
pub fn truth(object: &Value, kind: &str) -> String {
    let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = all.iter().find(|one| one["type"] == kind);
    found.map(|one| one["status"].as_str().unwrap().to_owned()).unwrap_or_default()
}

pub async fn reasons(stage: &Stage, about: &str) -> Vec<String> {
    let events = stage.list(EVENTS).await;
    let about = events.iter().filter(|event| event["involvedObject"]["name"] == about);
    about.map(|event| event["reason"].as_str().unwrap().to_owned()).collect()
}
