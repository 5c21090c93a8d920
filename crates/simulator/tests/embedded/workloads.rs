// SPDX-License-Identifier: Apache-2.0
//! Workloads that go on: Deployments, StatefulSets, DaemonSets, and what lives around their pods.

use serde_json::{Value, json};

use crate::hands::{self, active, after, ready_all, set, workload};
use crate::stage;

const APPS: &str = "/apis/apps/v1/namespaces/team";

fn versions(pods: &[Value]) -> Vec<&str> {
    pods.iter().map(|pod| pod["metadata"]["annotations"]["version"].as_str().unwrap_or("1")).collect()
}

fn next_version() -> Value {
    json!({ "spec": { "template": { "metadata": { "annotations": { "version": "2" } } } } })
}

#[test]
fn a_deployment_rolls_within_its_limits() {
    stage::run(async {
        let stage = hands::stage().await;
        let limits = json!({ "rollingUpdate": { "maxSurge": 2, "maxUnavailable": 0 } });
        stage.apply(workload("apps/v1", "Deployment", json!({ "replicas": 6, "strategy": limits }))).await;
        assert_eq!(ready_all(&stage).await, 6);
        stage.patch(&format!("{APPS}/deployments/w"), next_version()).await;
        assert_eq!(ready_all(&stage).await, 8, "two more than wanted, never fewer");
        let pods = active(&stage).await;
        assert_eq!(versions(&pods), ["2"; 6]);
        let deployment = stage.get(&format!("{APPS}/deployments/w")).await.unwrap();
        assert_eq!(deployment["status"]["updatedReplicas"], 6);
        assert_eq!(deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "2");
        let sets = stage.list(&format!("{APPS}/replicasets")).await;
        assert_eq!(sets.len(), 2, "the old one is kept for a way back");
    });
}

#[test]
fn a_stateful_set_grows_and_rolls_in_order() {
    stage::run(async {
        let stage = hands::stage().await;
        let claims = json!([{ "metadata": { "name": "data" }, "spec": { "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" } } } }]);
        let spec = json!({ "replicas": 3, "serviceName": "w", "volumeClaimTemplates": claims });
        stage.apply(workload("apps/v1", "StatefulSet", spec)).await;
        after(5).await;
        assert_eq!(active(&stage).await.len(), 1, "the second waits for the first");
        ready_all(&stage).await;
        let names: Vec<_> = active(&stage).await.iter().map(|pod| pod["metadata"]["name"].clone()).collect();
        assert_eq!(names, ["w-0", "w-1", "w-2"]);
        assert_eq!(stage.list("/api/v1/namespaces/team/persistentvolumeclaims").await.len(), 3);
        stage.patch(&format!("{APPS}/statefulsets/w"), next_version()).await;
        after(2).await;
        assert_eq!(versions(&active(&stage).await), ["1", "1", "2"], "the last one first");
        ready_all(&stage).await;
        assert_eq!(versions(&active(&stage).await), ["2"; 3]);
        let set = stage.get(&format!("{APPS}/statefulsets/w")).await.unwrap();
        assert_eq!(set["status"]["currentRevision"], set["status"]["updateRevision"]);
    });
}

#[test]
fn a_daemon_set_follows_the_nodes() {
    stage::run(async {
        let stage = hands::stage().await;
        let node = |name: &str| json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name } });
        stage.apply(node("a")).await;
        let mut set = workload("apps/v1", "DaemonSet", json!({}));
        set["spec"]["template"]["spec"]["tolerations"] = json!([{ "operator": "Exists" }]);
        stage.apply(set).await;
        assert_eq!(ready_all(&stage).await, 1);
        stage.apply(node("b")).await;
        assert_eq!(ready_all(&stage).await, 2);
        let set = stage.get(&format!("{APPS}/daemonsets/w")).await.unwrap();
        assert_eq!((&set["status"]["desiredNumberScheduled"], &set["status"]["numberReady"]), (&json!(2), &json!(2)));
        stage.patch(&format!("{APPS}/daemonsets/w"), next_version()).await;
        after(2).await;
        assert_eq!(versions(&active(&stage).await).iter().filter(|version| **version == "2").count(), 1);
        ready_all(&stage).await;
        assert_eq!(versions(&active(&stage).await), ["2"; 2]);
        stage.delete("/api/v1/nodes/b").await;
        after(2).await;
        assert_eq!(active(&stage).await.len(), 1, "a pod that waits for a node that is gone is deleted");
    });
}

#[test]
fn a_budget_limits_evictions() {
    stage::run(async {
        let stage = hands::stage().await;
        stage.apply(workload("apps/v1", "ReplicaSet", json!({ "replicas": 3 }))).await;
        let budget = json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": { "name": "b", "namespace": "team" },
            "spec": { "minAvailable": 2, "selector": { "matchLabels": { "app": "a" } } } });
        stage.apply(budget).await;
        ready_all(&stage).await;
        let pods = active(&stage).await;
        let evict = async |pod: &Value| {
            let name = pod["metadata"]["name"].as_str().unwrap();
            let body = json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": name } });
            let path = format!("{}/{name}/eviction", hands::PODS);
            stage.ask(http::Method::POST, &path, "application/json", body.to_string()).await.0.as_u16()
        };
        assert_eq!((evict(&pods[0]).await, evict(&pods[1]).await), (201, 429), "one, then no more");
        ready_all(&stage).await;
        assert_eq!(evict(&pods[1]).await, 201, "another one has taken the place");
    });
}

#[test]
fn a_service_knows_the_pods_behind_it() {
    stage::run(async {
        let stage = hands::stage().await;
        stage
            .apply(json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "s", "namespace": "team" },
            "spec": { "selector": { "app": "a" }, "ports": [{ "port": 80, "targetPort": 8080 }] } }))
            .await;
        stage.apply(workload("apps/v1", "ReplicaSet", json!({ "replicas": 2 }))).await;
        after(2).await;
        for (at, pod) in active(&stage).await.iter().enumerate() {
            let path = format!("{}/{}/status", hands::PODS, pod["metadata"]["name"].as_str().unwrap());
            let ip = format!("10.0.0.{}", at + 1);
            stage.patch(&path, json!({ "status": { "podIP": ip, "podIPs": [{ "ip": ip }] } })).await;
            set(&stage, pod, "Running", at == 0).await;
        }
        after(2).await;
        let list = stage.get("/api/v1/namespaces/team/endpoints/s").await.unwrap();
        assert_eq!(list["subsets"][0]["addresses"][0]["ip"], "10.0.0.1");
        assert_eq!(list["subsets"][0]["notReadyAddresses"][0]["ip"], "10.0.0.2");
        let slices = stage.list("/apis/discovery.k8s.io/v1/namespaces/team/endpointslices").await;
        let ready = |slice: &Value| {
            let all = slice["endpoints"].as_array().unwrap().clone();
            all.iter().filter(|one| one["conditions"]["ready"] == true).count()
        };
        assert_eq!((slices.len(), ready(&slices[0])), (1, 1));
        stage.delete("/api/v1/namespaces/team/services/s").await;
        after(5).await;
        assert_eq!(stage.get("/api/v1/namespaces/team/endpoints/s").await, None);
        assert!(stage.list("/apis/discovery.k8s.io/v1/namespaces/team/endpointslices").await.is_empty());
    });
}
