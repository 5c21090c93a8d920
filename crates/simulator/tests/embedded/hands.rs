// SPDX-License-Identifier: Apache-2.0
//! Does by hand what kubelets do, so that controllers can be tested without them.

use std::time::Duration;

use bivouac_simulator::Part;
use serde_json::{Value, json};

use crate::stage::Stage;

pub const PODS: &str = "/api/v1/namespaces/team/pods";

/// A stage with the controllers of workloads, and the namespace `team`.
pub async fn stage() -> Stage {
    let parts = [
        Part::Accounts,
        Part::Jobs,
        Part::JobOrphans,
        Part::JobExpiry,
        Part::ReplicaSets,
        Part::Deployments,
        Part::StatefulSets,
        Part::DaemonSets,
        Part::DisruptionBudgets,
        Part::Quotas,
        Part::Endpoints,
        Part::EndpointSlices,
    ];
    let stage = Stage::with(&parts).await;
    stage.apply(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "team" } })).await;
    after(1).await;
    stage
}

pub async fn after(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// Pods that have neither stopped nor are about to.
pub async fn active(stage: &Stage) -> Vec<Value> {
    let living = |pod: &Value| {
        !matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
            && pod["metadata"]["deletionTimestamp"].is_null()
    };
    stage.list(PODS).await.into_iter().filter(living).collect()
}

/// Sets the phase of a pod, and whether it is ready.
pub async fn set(stage: &Stage, pod: &Value, phase: &str, ready: bool) {
    let now = stage.server.clock().now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let status = if ready { "True" } else { "False" };
    let path = format!("{PODS}/{}/status", pod["metadata"]["name"].as_str().unwrap());
    let conditions = json!([{ "type": "Ready", "status": status, "lastTransitionTime": now }]);
    stage.patch(&path, json!({ "status": { "phase": phase, "conditions": conditions } })).await;
}

/// Makes everything ready that is not, again and again, until nothing changes. The answer is the most pods there were.
pub async fn ready_all(stage: &Stage) -> usize {
    let mut most = 0;
    loop {
        after(2).await;
        let all = active(stage).await;
        most = most.max(all.len());
        let waiting: Vec<_> = all.iter().filter(|pod| pod["status"]["phase"] == "Pending").collect();
        if waiting.is_empty() {
            return most;
        }
        for pod in waiting {
            set(stage, pod, "Running", true).await;
        }
    }
}

pub fn job(spec: Value) -> Value {
    let mut job = json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "job", "namespace": "team" },
        "spec": { "template": { "spec": { "restartPolicy": "Never",
            "containers": [{ "name": "main", "image": "x" }] } } } });
    job["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    job
}

/// Something with a selector and a template, of this API and kind.
pub fn workload(api: &str, kind: &str, spec: Value) -> Value {
    let mut object = json!({ "apiVersion": api, "kind": kind, "metadata": { "name": "w", "namespace": "team" },
        "spec": { "selector": { "matchLabels": { "app": "a" } }, "template": { "metadata": { "labels": { "app": "a" } },
            "spec": { "containers": [{ "name": "main", "image": "x" }] } } } });
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    object
}
