// SPDX-License-Identifier: Apache-2.0
//! What pods do on simulated nodes, second by second.

use serde_json::{Value, json};

use crate::camp::{PODS, after, camp, node, p, pod, reasons, truth};
use crate::stage::{self, Stage};

/// The state of a container in a word, and how often it has restarted.
fn state(status: &Value) -> (String, i64) {
    let state = &status["state"];
    let reason = |one: &Value| one["reason"].as_str().unwrap_or_default().to_owned();
    let word = match (state.get("running"), state.get("waiting"), state.get("terminated")) {
        (Some(_), ..) => "running".to_owned(),
        (_, Some(waiting), _) => reason(waiting),
        (.., Some(end)) => format!("{}({})", reason(end), end["exitCode"]),
        _ => "none".to_owned(),
    };
    (word, status["restartCount"].as_i64().unwrap_or_default())
}

async fn main_state(stage: &Stage) -> (String, String, i64) {
    let pod = p(stage).await;
    let (word, restarts) = state(&pod["status"]["containerStatuses"][0]);
    (pod["status"]["phase"].as_str().unwrap_or_default().to_owned(), word, restarts)
}

fn is(phase: &str, word: &str, restarts: i64) -> (String, String, i64) {
    (phase.to_owned(), word.to_owned(), restarts)
}

#[test]
fn a_pod_goes_through_its_phases() {
    stage::run(async {
        let stage = camp(&["a"]).await;
        let script = [("pull", "4s"), ("boot", "2s"), ("run", "20s"), ("ready-after", "5s")];
        stage.apply(pod(&script, json!({ "restartPolicy": "Never" }))).await;
        after(2).await;
        assert_eq!(main_state(&stage).await, is("Pending", "ContainerCreating", 0));
        let first = p(&stage).await;
        assert_eq!((first["spec"]["nodeName"].as_str(), truth(&first, "PodScheduled").as_str()), (Some("a"), "True"));
        assert_eq!(truth(&first, "PodReadyToStartContainers"), "False");
        after(5).await;
        assert_eq!(main_state(&stage).await, is("Running", "running", 0));
        let second = p(&stage).await;
        assert_eq!((truth(&second, "Ready").as_str(), &second["status"]["podIP"]), ("False", &json!("10.244.0.2")));
        after(5).await;
        assert_eq!(truth(&p(&stage).await, "Ready"), "True");
        after(20).await;
        assert_eq!(main_state(&stage).await, is("Succeeded", "Completed(0)", 0));
        let told = reasons(&stage, "p").await;
        for reason in ["Scheduled", "Pulling", "Pulled", "Created", "Started"] {
            assert!(told.iter().any(|one| one == reason), "{reason} is missing in {told:?}");
        }
    });
}

#[test]
fn failures_start_again_later_and_later() {
    stage::run(async {
        let stage = camp(&["a"]).await;
        stage.apply(pod(&[("boot", "0s"), ("pull", "0s"), ("crash-after", "5s")], json!({}))).await;
        after(1).await;
        assert_eq!(main_state(&stage).await, is("Running", "running", 0));
        after(6).await;
        assert_eq!(main_state(&stage).await, is("Running", "running", 1), "the first time at once");
        let mut restarts = 1;
        for wait in [10, 20, 40, 80, 160, 300, 300] {
            after(5).await;
            assert_eq!(main_state(&stage).await, is("Running", "CrashLoopBackOff", restarts));
            after(wait).await;
            restarts += 1;
            assert_eq!(main_state(&stage).await, is("Running", "running", restarts), "after {wait}");
        }
        assert!(reasons(&stage, "p").await.contains(&"BackOff".to_owned()));
    });
}

#[test]
fn exit_codes_and_restart_policies() {
    let cases = [
        ("Never", "0", is("Succeeded", "Completed(0)", 0)),
        ("Never", "3", is("Failed", "Error(3)", 0)),
        ("OnFailure", "0", is("Succeeded", "Completed(0)", 0)),
        ("OnFailure", "3", is("Running", "CrashLoopBackOff", 1)),
        ("Always", "0", is("Running", "CrashLoopBackOff", 1)),
    ];
    for (policy, code, expected) in cases {
        stage::run(async {
            let stage = camp(&["a"]).await;
            stage.apply(pod(&[("run", "10s"), ("exit-code", code)], json!({ "restartPolicy": policy }))).await;
            after(27).await;
            assert_eq!(main_state(&stage).await, expected, "{policy} {code}");
        });
    }
}

#[test]
fn containers_before_and_beside_the_others() {
    stage::run(async {
        let stage = camp(&["a"]).await;
        let first = json!([{ "name": "one", "image": "x" },
            { "name": "side", "image": "x", "restartPolicy": "Always" }, { "name": "two", "image": "x" }]);
        let script = [("pull", "1s"), ("run.two", "5s"), ("run", "10s")];
        stage.apply(pod(&script, json!({ "restartPolicy": "Never", "initContainers": first }))).await;
        let mut seen = Vec::new();
        for _ in 0..40 {
            after(1).await;
            let pod = p(&stage).await;
            let all = [&pod["status"]["initContainerStatuses"], &pod["status"]["containerStatuses"]];
            let all = all.into_iter().flat_map(|list| list.as_array().cloned().unwrap_or_default());
            let now: Vec<_> = all.map(|one| state(&one).0).collect();
            if seen.last() != Some(&now) {
                seen.push(now);
            }
        }
        let waits = "PodInitializing";
        assert_eq!(
            seen,
            [
                [waits, waits, waits, waits],
                ["running", waits, waits, waits],
                ["Completed(0)", waits, waits, waits],
                ["Completed(0)", "running", waits, waits],
                ["Completed(0)", "running", "running", waits],
                ["Completed(0)", "running", "Completed(0)", waits],
                ["Completed(0)", "running", "Completed(0)", "running"],
                ["Completed(0)", "Completed(0)", "Completed(0)", "Completed(0)"],
            ]
        );
        assert_eq!(p(&stage).await["status"]["phase"], "Succeeded");
    });
}

#[test]
fn an_image_that_cannot_be_pulled() {
    stage::run(async {
        let stage = camp(&["a"]).await;
        stage.apply(pod(&[("fails-to-pull", "true")], json!({}))).await;
        after(30).await;
        assert_eq!(main_state(&stage).await, is("Pending", "ImagePullBackOff", 0));
        let told = reasons(&stage, "p").await;
        assert!(told.contains(&"Failed".to_owned()) && told.contains(&"BackOff".to_owned()), "{told:?}");
        let repaired = json!({ "metadata": { "annotations": { "simulator.bivouac.dev/fails-to-pull": null } } });
        stage.patch(&format!("{PODS}/p"), repaired).await;
        after(1).await;
        assert_eq!(main_state(&stage).await, is("Running", "running", 0));
    });
}

#[test]
fn pods_stop_gracefully_within_their_grace() {
    for (stop, grace, gone) in [("3s", 30, 4), ("100s", 10, 11)] {
        stage::run(async {
            let stage = camp(&["a"]).await;
            stage.apply(pod(&[("stop", stop)], json!({ "terminationGracePeriodSeconds": grace }))).await;
            after(10).await;
            stage.delete(&format!("{PODS}/p")).await;
            after(gone - 2).await;
            assert_eq!(p(&stage).await["status"]["phase"], "Running", "it needs {stop}");
            after(3).await;
            assert_eq!(p(&stage).await, Value::Null);
            assert!(reasons(&stage, "p").await.contains(&"Killing".to_owned()));
        });
    }
}

#[test]
fn a_deadline_ends_a_pod() {
    stage::run(async {
        let stage = camp(&["a"]).await;
        stage.apply(pod(&[], json!({ "activeDeadlineSeconds": 20 }))).await;
        after(25).await;
        let pod = p(&stage).await;
        assert_eq!((&pod["status"]["phase"], &pod["status"]["reason"]), (&json!("Failed"), &json!("DeadlineExceeded")));
    });
}

#[test]
fn readiness_gates_hold_a_pod_back() {
    stage::run(async {
        let stage = camp(&["a"]).await;
        stage.apply(pod(&[], json!({ "readinessGates": [{ "conditionType": "example.com/open" }] }))).await;
        after(10).await;
        let shut = p(&stage).await;
        assert_eq!((truth(&shut, "ContainersReady").as_str(), truth(&shut, "Ready").as_str()), ("True", "False"));
        let mut conditions = shut["status"]["conditions"].as_array().unwrap().clone();
        conditions.push(json!({ "type": "example.com/open", "status": "True" }));
        stage.patch(&format!("{PODS}/p/status"), json!({ "status": { "conditions": conditions } })).await;
        after(1).await;
        assert_eq!(truth(&p(&stage).await, "Ready"), "True");
    });
}

#[test]
fn a_node_refuses_what_does_not_fit() {
    stage::run(async {
        let stage = camp(&["a"]).await;
        let asks = json!([{ "name": "main", "image": "x", "resources": { "requests": { "cpu": "9" } } }]);
        stage.apply(pod(&[], json!({ "nodeName": "a", "containers": asks }))).await;
        after(2).await;
        let pod = p(&stage).await;
        assert_eq!((&pod["status"]["phase"], &pod["status"]["reason"]), (&json!("Failed"), &json!("OutOfcpu")));
        let why = "Pod was rejected: Node didn't have enough resource: cpu, requested: 9000, used: 0, capacity: 8000";
        assert_eq!(pod["status"]["message"], why);
    });
}

#[test]
fn a_node_registers_itself() {
    stage::run(async {
        let stage = camp(&[]).await;
        stage.apply(node("gpu", json!({ "cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "4", "pods": "110" }))).await;
        after(1).await;
        let node = stage.get("/api/v1/nodes/gpu").await.unwrap();
        assert_eq!(node["status"]["allocatable"]["nvidia.com/gpu"], "4");
        assert_eq!((&node["spec"]["podCIDR"], &node["spec"]["taints"]), (&json!("10.244.0.0/24"), &Value::Null));
        assert_eq!(node["metadata"]["labels"]["kubernetes.io/hostname"], "gpu");
        assert_eq!(truth(&node, "Ready"), "True");
        assert_eq!(node["status"]["addresses"][0]["address"], "172.18.0.2");
    });
}

#[test]
fn logs_tell_what_containers_have_written() {
    let read = |script: &[(&str, &str)], state: Value| {
        let mut pod = pod(script, json!({}));
        pod["status"] = json!({ "containerStatuses": [
            { "name": "main", "image": "x", "imageID": "", "ready": true, "restartCount": 0, "state": state }] });
        bivouac_simulator::logs().read(&pod, "main").unwrap()
    };
    let running = json!({ "running": { "startedAt": "2026-01-01T00:00:00Z" } });
    assert_eq!(read(&[], json!({ "waiting": {} })), "");
    assert_eq!(read(&[], running.clone()), "image x\nstarted: the image's own command\n");
    assert_eq!(read(&[("logs", "epoch 1\nepoch 2")], running), "epoch 1\nepoch 2\n");
    let ended = read(&[], json!({ "terminated": { "exitCode": 3 } }));
    assert!(ended.ends_with("ended with exit code 3\n"), "{ended}");
}
