// SPDX-License-Identifier: Apache-2.0
//! Controllers that have nothing to do write nothing.

use serde_json::{Value, json};

use crate::hands::{self, active, after, job, ready_all, set, workload};
use crate::stage;

fn named(mut object: Value, name: &str, spec: Value) -> Value {
    object["metadata"]["name"] = json!(name);
    object["spec"]["selector"] = json!({ "matchLabels": { "app": name } });
    object["spec"]["template"]["metadata"] = json!({ "labels": { "app": name } });
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    object
}

#[test]
fn everything_comes_to_rest() {
    stage::run(async {
        let stage = hands::stage().await;
        stage.apply(json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n" } })).await;
        stage
            .apply(json!({ "apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": { "name": "q", "namespace": "team" }, "spec": { "hard": { "pods": "50", "cpu": "9" } } }))
            .await;
        let resources = json!([{ "name": "main", "image": "x", "resources": { "requests": { "cpu": "0.10" } } }]);
        for (kind, spec) in [
            ("Deployment", json!({ "replicas": 2 })),
            ("StatefulSet", json!({ "replicas": 2, "serviceName": "s", "minReadySeconds": 5 })),
            ("DaemonSet", json!({})),
        ] {
            let mut object = named(workload("apps/v1", kind, json!({})), &kind.to_lowercase(), spec);
            object["spec"]["template"]["spec"] =
                json!({ "containers": resources, "tolerations": [{ "operator": "Exists" }] });
            stage.apply(object).await;
        }
        stage
            .apply(json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "s", "namespace": "team" },
            "spec": { "selector": { "app": "deployment" }, "ports": [{ "port": 80 }] } }))
            .await;
        stage
            .apply(json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": { "name": "b", "namespace": "team" },
            "spec": { "maxUnavailable": "50%", "selector": { "matchLabels": { "app": "deployment" } } } }))
            .await;
        let mut counted = job(json!({ "completions": 2, "parallelism": 2, "completionMode": "Indexed" }));
        counted["spec"]["template"]["spec"]["containers"] = resources.clone();
        stage.apply(counted).await;
        after(1).await;
        let done = |pod: &Value| pod["metadata"]["labels"]["job-name"] == "job";
        for pod in active(&stage).await.iter().filter(|pod| done(pod)) {
            set(&stage, pod, "Succeeded", false).await;
        }
        ready_all(&stage).await;
        after(60).await;
        assert_eq!(active(&stage).await.len(), 5, "two, two and one");
        let before = stage.server.store().revision();
        after(3_600).await;
        assert_eq!(stage.server.store().revision(), before, "an hour without writes");
    });
}
