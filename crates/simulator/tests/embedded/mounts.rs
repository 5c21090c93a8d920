// SPDX-License-Identifier: Apache-2.0
//! Containers start when everything that they mount is there.

use serde_json::{Value, json};

use crate::camp::{EVENTS, PODS, after, camp, p, pod};
use crate::stage::{self, Stage};

fn map(name: &str, data: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "team" }, "data": data })
}

fn secret(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": "team" },
        "stringData": { "key": "k" } })
}

/// What failed to be mounted, and how often that was told.
async fn failures(stage: &Stage) -> Vec<(String, i64)> {
    let events = stage.list(EVENTS).await;
    let failed = events.iter().filter(|event| event["reason"] == "FailedMount");
    let mut words: Vec<_> = failed
        .map(|event| {
            assert_eq!(event["type"], "Warning");
            let message = event["message"].as_str().unwrap();
            let why = message.strip_prefix("MountVolume.SetUp failed for volume ").unwrap();
            (why.to_owned(), event["count"].as_i64().unwrap())
        })
        .collect();
    words.sort();
    words
}

async fn is_running(stage: &Stage) -> bool {
    p(stage).await["status"]["phase"] == "Running"
}

#[test]
fn a_pod_waits_for_each_thing_and_tells_it_once() {
    stage::run(async {
        let stage = camp(&["a"]).await;
        let sources = json!([
            { "configMap": { "name": "texts", "items": [{ "key": "one", "path": "1" }, { "key": "two", "path": "2" }] } },
            { "secret": { "name": "keys" } },
            { "serviceAccountToken": { "path": "token" } }]);
        let volumes = json!([{ "name": "all", "projected": { "sources": sources } },
            { "name": "more", "configMap": { "name": "more" } },
            { "name": "rather", "secret": { "secretName": "nowhere", "optional": true } }]);
        let main = json!([{ "name": "main", "image": "x",
            "volumeMounts": [{ "name": "all", "mountPath": "/all" }, { "name": "more", "mountPath": "/more" }] }]);
        stage.apply(pod(&[], json!({ "volumes": volumes, "containers": main }))).await;
        after(20).await;
        let waiting = p(&stage).await;
        assert_eq!(waiting["status"]["containerStatuses"][0]["state"]["waiting"]["reason"], "ContainerCreating");
        let once = |why: &str| (why.to_owned(), 1);
        let (keys, more) =
            (once("\"all\" : secret \"keys\" not found"), once("\"more\" : configmap \"more\" not found"));
        let texts = once("\"all\" : configmap \"texts\" not found");
        assert_eq!(failures(&stage).await, [texts.clone(), keys.clone(), more.clone()]);

        stage.apply(map("texts", json!({ "one": "1" }))).await;
        stage.apply(secret("keys")).await;
        after(20).await;
        let two = once("\"all\" : references non-existent config key: two");
        assert_eq!(failures(&stage).await, [texts, two, keys, more], "no word twice");
        assert!(!is_running(&stage).await);

        stage.apply(map("more", json!({}))).await;
        stage.apply(map("texts", json!({ "one": "1", "two": "2" }))).await;
        let asked = stage.server.clock().now();
        after(5).await;
        let running = p(&stage).await;
        let state = &running["status"]["containerStatuses"][0]["state"];
        let started: jiff::Timestamp = state["running"]["startedAt"].as_str().unwrap().parse().unwrap();
        assert!(started >= asked, "it does not start before it can: {started}, {asked}");
        let conditions = running["status"]["conditions"].to_string();
        assert!(!conditions.contains("simulator.bivouac.dev"), "{conditions}");
        assert_eq!(failures(&stage).await.len(), 4);
    });
}

#[test]
fn containers_that_run_keep_what_they_have() {
    stage::run(async {
        let stage = camp(&["a"]).await;
        stage.apply(map("texts", json!({}))).await;
        stage.apply(pod(&[], json!({ "volumes": [{ "name": "v", "configMap": { "name": "texts" } }] }))).await;
        after(10).await;
        assert!(is_running(&stage).await);
        stage.delete("/api/v1/namespaces/team/configmaps/texts").await;
        after(60).await;
        assert!(is_running(&stage).await);
        assert_eq!(failures(&stage).await, []);
    });
}

#[test]
fn a_pod_that_waits_can_go() {
    stage::run(async {
        let stage = camp(&["a"]).await;
        stage.apply(pod(&[], json!({ "volumes": [{ "name": "v", "secret": { "secretName": "keys" } }] }))).await;
        after(10).await;
        stage.delete(&format!("{PODS}/p")).await;
        after(2).await;
        assert_eq!(p(&stage).await, Value::Null);
    });
}
