// SPDX-License-Identifier: Apache-2.0
//! The simulated scheduler places what the real kube-scheduler places, and explains in the same words what it cannot place.
//!
//! Each document in `scheduling/` is one case: nodes, pods that are there already, and the pod that looks for a place.

use std::{fs, path::Path, time::Duration};

use bivouac_simulator::Part;
use bivouac_testenv::{Options, TestCluster};
use http::{Method, Request};
use http_body_util::BodyExt;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::stage::{self, Stage};

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
const NODES: &str = "/api/v1/nodes";

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default)]
    nodes: Vec<Spot>,
    #[serde(default)]
    before: Vec<Wanted>,
    #[serde(default)]
    budgets: Vec<Budget>,
    pod: Wanted,
    /// Only one node is right, or clearly the best: both must choose the same.
    #[serde(default)]
    exact: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Spot {
    name: String,
    labels: Value,
    spec: Value,
    capacity: Value,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Wanted {
    name: String,
    labels: Value,
    /// The node on which it is already.
    on: Option<String>,
    cpu: Option<String>,
    spec: Value,
}

/// Pods with these labels, of which so many may go.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Budget {
    name: String,
    labels: Value,
    allowed: i32,
}

impl Default for Spot {
    fn default() -> Self {
        let capacity = json!({ "cpu": "4", "memory": "8Gi", "pods": "10" });
        Self { name: "a".into(), labels: json!({}), spec: json!({}), capacity }
    }
}

impl Default for Wanted {
    fn default() -> Self {
        Self { name: "wanted".into(), labels: json!({}), on: None, cpu: None, spec: json!({}) }
    }
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/scheduling");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let asked = std::env::var("CASES").unwrap_or_default();
    let all = files.iter().flat_map(|file| {
        let text = fs::read_to_string(file).unwrap();
        serde_saphyr::from_multiple::<Case>(&text).unwrap()
    });
    all.filter(|case| case.name.contains(&asked)).collect()
}

enum World {
    Real(kube::Client),
    Ours(Stage),
}

impl World {
    async fn ask(&self, method: Method, path: &str, body: &Value) -> Value {
        let content = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let (code, answer) = match self {
            Self::Ours(stage) => {
                let (code, answer) = stage.ask(method.clone(), path, content, text).await;
                (code.as_u16(), answer)
            }
            Self::Real(client) => {
                let request = Request::builder().method(method.clone()).uri(path).header("content-type", content);
                let answer = client.send(request.body(text.into_bytes().into()).unwrap()).await.unwrap();
                let code = answer.status().as_u16();
                let bytes = answer.into_body().collect().await.unwrap().to_bytes();
                (code, serde_json::from_slice(&bytes).unwrap_or_default())
            }
        };
        assert!((200..300).contains(&code) || code == 404 || code == 409, "{method} {path}: {answer:#}");
        answer
    }

    async fn list(&self, path: &str) -> Vec<Value> {
        self.ask(Method::GET, path, &Value::Null).await["items"].as_array().cloned().unwrap_or_default()
    }

    async fn prepare(&self) {
        let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "default" } });
        self.ask(Method::POST, "/api/v1/namespaces/default/serviceaccounts", &account).await;
        for (name, value, policy) in [("high", 1000, "PreemptLowerPriority"), ("polite", 1000, "Never")] {
            let class = json!({ "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                "metadata": { "name": name }, "value": value, "preemptionPolicy": policy });
            self.ask(Method::POST, "/apis/scheduling.k8s.io/v1/priorityclasses", &class).await;
        }
    }

    async fn clear(&self) {
        let now = json!({ "gracePeriodSeconds": 0 });
        for (path, options) in [(PODS, &now), (NODES, &Value::Null), (BUDGETS, &Value::Null)] {
            for one in self.list(path).await {
                let path = format!("{path}/{}", one["metadata"]["name"].as_str().unwrap());
                self.ask(Method::DELETE, &path, options).await;
            }
        }
        self.rest(400).await;
    }

    async fn rest(&self, millis: u64) {
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }

    async fn add_node(&self, spot: &Spot) {
        let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": spot.name, "labels": spot.labels },
            "spec": spot.spec });
        self.ask(Method::POST, NODES, &node).await;
        let ready = json!([{ "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "" }]);
        let status = json!({ "capacity": spot.capacity, "allocatable": spot.capacity, "conditions": ready });
        let path = format!("{NODES}/{}", spot.name);
        self.ask(Method::PATCH, &format!("{path}/status"), &json!({ "status": status })).await;
        // The server has added one that goes with readiness.
        let taints = spot.spec.get("taints").cloned().unwrap_or(json!([]));
        self.ask(Method::PATCH, &path, &json!({ "spec": { "taints": taints } })).await;
    }

    async fn add_pod(&self, wanted: &Wanted) {
        let mut container = json!({ "name": "main", "image": "x" });
        if let Some(cpu) = &wanted.cpu {
            container["resources"] = json!({ "requests": { "cpu": cpu } });
        }
        let mut spec = json!({ "containers": [container], "automountServiceAccountToken": false });
        spec.as_object_mut().unwrap().extend(wanted.spec.as_object().unwrap().clone());
        if let Some(node) = &wanted.on {
            spec["nodeName"] = json!(node);
        }
        let pod = json!({ "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": wanted.name, "labels": wanted.labels }, "spec": spec });
        self.ask(Method::POST, PODS, &pod).await;
    }

    async fn add_budget(&self, budget: &Budget) {
        let spec = json!({ "minAvailable": 1, "selector": { "matchLabels": budget.labels } });
        let object = json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": { "name": budget.name }, "spec": spec });
        self.ask(Method::POST, BUDGETS, &object).await;
        let status = json!({ "disruptionsAllowed": budget.allowed, "currentHealthy": 1, "desiredHealthy": 1,
            "expectedPods": 1, "observedGeneration": 1 });
        self.ask(Method::PATCH, &format!("{BUDGETS}/{}/status", budget.name), &json!({ "status": status })).await;
    }

    async fn play(&self, case: &Case) -> Value {
        self.clear().await;
        for spot in &case.nodes {
            self.add_node(spot).await;
        }
        for pod in &case.before {
            self.add_pod(pod).await;
        }
        for budget in &case.budgets {
            self.add_budget(budget).await;
        }
        self.rest(300).await;
        self.add_pod(&case.pod).await;
        for _ in 0..60 {
            self.rest(100).await;
            let pod = self.ask(Method::GET, &format!("{PODS}/wanted"), &Value::Null).await;
            let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let Some(placed) = conditions.iter().find(|one| one["type"] == "PodScheduled") else { continue };
            // A nomination is written together with the reason; the victims go right before.
            self.rest(200).await;
            let gone = self.list(PODS).await;
            let gone = gone.iter().filter(|pod| !pod["metadata"]["deletionTimestamp"].is_null());
            let gone: Vec<_> = gone.map(|pod| pod["metadata"]["name"].clone()).collect();
            let node = pod["spec"]["nodeName"].as_str();
            return json!({ "placed": placed["status"], "reason": placed["reason"], "message": placed["message"],
                "node": if case.exact { json!(node) } else { Value::Null },
                "nominated": pod["status"]["nominatedNodeName"], "victims": gone });
        }
        json!("nobody has looked at it")
    }
}

#[test]
fn places_and_words_equal_those_of_the_real_scheduler() {
    let cases = cases();
    let real = play_real(&cases);
    let mut failed = Vec::new();
    for (case, real) in cases.iter().zip(real) {
        let ours = play_ours(case);
        if real != ours {
            failed.push(format!("{}:\n  real {real}\n  ours {ours}", case.name));
        }
    }
    println!("{} of {} cases agree", cases.len() - failed.len(), cases.len());
    assert!(failed.is_empty(), "{} of {} cases differ:\n{}", failed.len(), cases.len(), failed.join("\n"));
}

fn play_real(cases: &[Case]) -> Vec<Value> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let without = vec!["kube-controller-manager".to_owned(), "kwok".to_owned()];
        let cluster = TestCluster::start(Options { without, ..Options::default() }).await.unwrap();
        let world = World::Real(cluster.client());
        world.prepare().await;
        let mut played = Vec::new();
        for case in cases {
            let outcome = world.play(case).await;
            if std::env::var_os("SHOW").is_some() {
                println!("{}: {outcome}", case.name);
            }
            played.push(outcome);
        }
        played
    })
}

fn play_ours(case: &Case) -> Value {
    let mut played = Value::Null;
    stage::run(async {
        let world = World::Ours(Stage::with(&[Part::Accounts, Part::Scheduler]).await);
        world.prepare().await;
        played = world.play(case).await;
    });
    played
}
