// SPDX-License-Identifier: Apache-2.0
//! Nodes that die, come back, go away or are not wanted any more; and what that means for their pods.

use serde_json::{Value, json};

use crate::camp::{PODS, after, camp, kill, p, patch_node, pod, truth};
use crate::stage::{self, Stage};

async fn taints(stage: &Stage, node: &str) -> Vec<String> {
    let node = stage.get(&format!("/api/v1/nodes/{node}")).await.unwrap();
    let all = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let text = |one: &Value, field: &str| one[field].as_str().unwrap().to_owned();
    all.iter().map(|one| format!("{}:{}", text(one, "key"), text(one, "effect"))).collect()
}

fn disruption(pod: &Value) -> String {
    let all = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = all.iter().find(|one| one["type"] == "DisruptionTarget");
    found.map(|one| one["reason"].as_str().unwrap().to_owned()).unwrap_or_default()
}

#[test]
fn a_dead_node_is_missed_and_its_pods_are_given_up() {
    stage::run(async {
        let stage = camp(&["a"]).await;
        stage.apply(pod(&[], json!({}))).await;
        after(10).await;
        kill(&stage, "a", true).await;
        after(38).await;
        assert_eq!(taints(&stage, "a").await, Vec::<String>::new());
        after(4).await;
        let node = stage.get("/api/v1/nodes/a").await.unwrap();
        let ready = node["status"]["conditions"].as_array().unwrap().iter().find(|one| one["type"] == "Ready").unwrap();
        assert_eq!((&ready["status"], &ready["reason"]), (&json!("Unknown"), &json!("NodeStatusUnknown")));
        assert_eq!(ready["message"], "Kubelet stopped posting node status.");
        let unreachable = ["NoSchedule", "NoExecute"].map(|effect| format!("node.kubernetes.io/unreachable:{effect}"));
        assert_eq!(taints(&stage, "a").await, unreachable);
        assert_eq!(truth(&p(&stage).await, "Ready"), "False");
        after(295).await;
        assert_eq!(p(&stage).await["metadata"]["deletionTimestamp"], Value::Null);
        after(5).await;
        let given_up = p(&stage).await;
        assert!(given_up["metadata"]["deletionTimestamp"].is_string());
        assert_eq!(disruption(&given_up), "DeletionByTaintManager");
        after(86_400).await;
        assert_ne!(p(&stage).await, Value::Null, "a dead kubelet confirms nothing");
        kill(&stage, "a", false).await;
        after(2).await;
        assert_eq!(p(&stage).await, Value::Null);
        assert_eq!(taints(&stage, "a").await, Vec::<String>::new());
    });
}

#[test]
fn a_node_that_comes_back_in_time_keeps_its_pods() {
    stage::run(async {
        let stage = camp(&["a"]).await;
        stage.apply(pod(&[], json!({}))).await;
        after(10).await;
        kill(&stage, "a", true).await;
        after(200).await;
        kill(&stage, "a", false).await;
        after(400).await;
        let kept = p(&stage).await;
        assert_eq!((truth(&kept, "Ready").as_str(), &kept["metadata"]["deletionTimestamp"]), ("True", &Value::Null));
        assert_eq!(kept["status"]["containerStatuses"][0]["restartCount"], 0);
    });
}

#[test]
fn pods_of_a_node_that_is_gone_are_collected() {
    stage::run(async {
        let stage = camp(&["a"]).await;
        let mut held = pod(&[], json!({}));
        held["metadata"]["finalizers"] = json!(["example.com/see"]);
        stage.apply(held).await;
        after(10).await;
        stage.delete("/api/v1/nodes/a").await;
        after(38).await;
        assert_eq!(p(&stage).await["status"]["phase"], "Running");
        after(4).await;
        let lost = p(&stage).await;
        assert_eq!((&lost["status"]["phase"], disruption(&lost).as_str()), (&json!("Failed"), "DeletionByPodGC"));
        stage.patch(&format!("{PODS}/p"), json!({ "metadata": { "finalizers": null } })).await;
        after(1).await;
        assert_eq!(p(&stage).await, Value::Null);
    });
}

#[test]
fn a_cordoned_node_says_so_and_takes_nobody() {
    stage::run(async {
        let stage = camp(&["a"]).await;
        patch_node(&stage, "a", json!({ "spec": { "unschedulable": true } })).await;
        after(1).await;
        assert_eq!(taints(&stage, "a").await, ["node.kubernetes.io/unschedulable:NoSchedule"]);
        stage.apply(pod(&[], json!({}))).await;
        after(10).await;
        assert_eq!(p(&stage).await["spec"]["nodeName"], Value::Null);
        patch_node(&stage, "a", json!({ "spec": { "unschedulable": null } })).await;
        after(10).await;
        assert_eq!((taints(&stage, "a").await.len(), &p(&stage).await["spec"]["nodeName"]), (0, &json!("a")));
    });
}

#[test]
fn a_taint_that_cannot_be_borne_evicts() {
    let bears = |seconds: Value| json!([{ "key": "mine", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds }]);
    for (tolerations, gone) in [(json!([]), Some(0)), (bears(json!(60)), Some(60)), (bears(Value::Null), None)] {
        stage::run(async {
            let stage = camp(&["a"]).await;
            stage.apply(pod(&[], json!({ "tolerations": tolerations }))).await;
            after(10).await;
            patch_node(&stage, "a", json!({ "spec": { "taints": [{ "key": "mine", "effect": "NoExecute" }] } })).await;
            match gone {
                None => after(86_400).await,
                Some(seconds) => {
                    after(seconds).await;
                    after(3).await;
                }
            }
            assert_eq!(p(&stage).await.is_null(), gone.is_some(), "{tolerations}");
        });
    }
}
