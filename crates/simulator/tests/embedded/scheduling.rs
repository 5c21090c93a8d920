// SPDX-License-Identifier: Apache-2.0
//! Who gets a node first, and what becomes of those who wait. Placement itself is compared in `real/scheduler.rs`.

use serde_json::{Value, json};

use crate::camp::{PODS, after, camp, node, reasons};
use crate::stage::{self, Stage};

fn pod(name: &str, cpu: &str, spec: Value) -> Value {
    let container = json!({ "name": "main", "image": "x", "resources": { "requests": { "cpu": cpu } } });
    let mut whole = json!({ "containers": [container] });
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "team" }, "spec": whole })
}

async fn placed(stage: &Stage) -> Vec<String> {
    let pods = stage.list(PODS).await;
    let placed = pods.iter().filter(|pod| pod["spec"]["nodeName"].is_string());
    placed.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

async fn class(stage: &Stage, name: &str, value: i64) {
    let class = json!({ "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": { "name": name },
        "value": value });
    stage.apply(class).await;
}

#[test]
fn the_most_important_and_then_the_oldest_come_first() {
    stage::run(async {
        let stage = camp(&[]).await;
        class(&stage, "high", 100).await;
        for (name, spec) in [("z", json!({})), ("y", json!({})), ("x", json!({ "priorityClassName": "high" }))] {
            stage.apply(pod(name, "5", spec)).await;
            after(2).await;
        }
        let waits = stage.get(&format!("{PODS}/z")).await.unwrap();
        let told = &waits["status"]["conditions"][0];
        assert_eq!(
            (&told["reason"], &told["message"]),
            (&json!("Unschedulable"), &json!("no nodes available to schedule pods"))
        );
        for (at, expected) in [vec!["x"], vec!["x", "z"], vec!["x", "y", "z"]].into_iter().enumerate() {
            stage.apply(node(&format!("n{at}"), json!({ "cpu": "8", "memory": "8Gi", "pods": "10" }))).await;
            after(5).await;
            assert_eq!(placed(&stage).await, expected);
        }
    });
}

#[test]
fn the_important_take_the_place_of_others() {
    stage::run(async {
        let stage = camp(&["a"]).await;
        class(&stage, "high", 100).await;
        stage.apply(pod("low", "5", json!({}))).await;
        after(10).await;
        stage.apply(pod("high", "5", json!({ "priorityClassName": "high" }))).await;
        stage.apply(pod("late", "5", json!({}))).await;
        after(20).await;
        assert_eq!(placed(&stage).await, ["high"]);
        assert_eq!(stage.get(&format!("{PODS}/low")).await, None);
        assert!(reasons(&stage, "low").await.contains(&"Preempted".to_owned()));
        let late = stage.get(&format!("{PODS}/late")).await.unwrap();
        let told = late["status"]["conditions"][0]["message"].as_str().unwrap();
        assert!(told.starts_with("0/1 nodes are available: 1 Insufficient cpu."), "{told}");
        assert!(reasons(&stage, "late").await.contains(&"FailedScheduling".to_owned()));
    });
}

#[test]
fn gates_and_other_schedulers_are_respected() {
    stage::run(async {
        let stage = camp(&["a"]).await;
        stage.apply(pod("gated", "1", json!({ "schedulingGates": [{ "name": "example.com/wait" }] }))).await;
        stage.apply(pod("other", "1", json!({ "schedulerName": "somebody-else" }))).await;
        after(10).await;
        assert_eq!(placed(&stage).await, Vec::<String>::new());
        stage.patch(&format!("{PODS}/gated"), json!({ "spec": { "schedulingGates": null } })).await;
        after(10).await;
        assert_eq!(placed(&stage).await, ["gated"]);
    });
}

#[test]
fn whoever_waits_is_placed_when_there_is_room() {
    stage::run(async {
        let stage = camp(&["a"]).await;
        for name in ["one", "two", "three"] {
            let done = json!({ "restartPolicy": "Never" });
            stage.apply(pod(name, "4", done)).await;
        }
        after(5).await;
        assert_eq!(placed(&stage).await.len(), 2);
        let before = stage.server.store().revision();
        after(2).await;
        assert_eq!(stage.server.store().revision(), before, "those who wait do not write");
        after(30).await;
        assert_eq!(placed(&stage).await.len(), 3);
    });
}

#[test]
fn services_get_addresses_and_give_them_back() {
    stage::run(async {
        let stage = camp(&[]).await;
        let service = |name: &str, kind: &str| {
            json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name, "namespace": "team" },
                "spec": { "type": kind, "ports": [{ "port": 80 }] } })
        };
        let ip = async |name: &str| {
            let service = stage.get(&format!("/api/v1/namespaces/team/services/{name}")).await.unwrap();
            service.pointer("/status/loadBalancer/ingress/0/ip").and_then(Value::as_str).map(str::to_owned)
        };
        stage.apply(service("one", "LoadBalancer")).await;
        after(1).await;
        stage.apply(service("two", "LoadBalancer")).await;
        after(1).await;
        assert_eq!(
            (ip("one").await.as_deref(), ip("two").await.as_deref()),
            (Some("198.51.100.1"), Some("198.51.100.2"))
        );
        stage.apply(service("one", "ClusterIP")).await;
        after(1).await;
        stage.apply(service("three", "LoadBalancer")).await;
        after(1).await;
        assert_eq!((ip("one").await, ip("three").await.as_deref()), (None, Some("198.51.100.1")));
    });
}
