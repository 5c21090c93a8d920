// SPDX-License-Identifier: Apache-2.0
//! Everything together: workloads find nodes, run there, and move when a node dies.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::camp::{self, PODS, after, camp, kill};
use crate::hands::{job, workload};
use crate::stage;

fn text<'a>(pod: &'a Value, path: &str) -> &'a str {
    pod.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

#[test]
fn a_deployment_and_a_job_run_on_three_nodes_and_survive_one() {
    stage::run(async {
        let stage = camp(&["a", "b", "c"]).await;
        stage.apply(workload("apps/v1", "Deployment", json!({ "replicas": 20 }))).await;
        let indexed = json!({ "completions": 5, "parallelism": 2, "completionMode": "Indexed" });
        stage.apply(job(indexed)).await;
        after(90).await;
        let deployment = stage.get("/apis/apps/v1/namespaces/team/deployments/w").await.unwrap();
        assert_eq!(deployment["status"]["availableReplicas"], 20, "{deployment:#}");
        let job = stage.get("/apis/batch/v1/namespaces/team/jobs/job").await.unwrap();
        assert_eq!(job["status"]["completedIndexes"], "0-4", "{job:#}");
        assert_eq!(camp::truth(&job, "Complete"), "True");

        let pods = stage.list(PODS).await;
        let running: Vec<_> = pods.iter().filter(|pod| text(pod, "/status/phase") == "Running").collect();
        let addresses: BTreeSet<_> = running.iter().map(|pod| text(pod, "/status/podIP")).collect();
        assert_eq!(addresses.len(), 20, "each pod has an address of its own");
        let mut on: BTreeMap<&str, usize> = BTreeMap::new();
        running.iter().for_each(|pod| *on.entry(text(pod, "/spec/nodeName")).or_default() += 1);
        assert!(on.len() == 3 && on.values().all(|count| (6..=7).contains(count)), "{on:?}");

        kill(&stage, "a", true).await;
        after(39).await;
        assert_eq!(camp::truth(&stage.get("/api/v1/nodes/a").await.unwrap(), "Ready"), "True");
        after(10).await;
        let deployment = stage.get("/apis/apps/v1/namespaces/team/deployments/w").await.unwrap();
        assert_eq!(deployment["status"]["availableReplicas"], 20 - on["a"], "its pods get no more requests");
        after(330).await;
        let pods = stage.list(PODS).await;
        let alive =
            |pod: &&Value| pod["metadata"]["deletionTimestamp"].is_null() && camp::truth(pod, "Ready") == "True";
        let alive: Vec<_> = pods.iter().filter(alive).collect();
        assert_eq!(alive.len(), 20);
        assert!(alive.iter().all(|pod| text(pod, "/spec/nodeName") != "a"));
        let stuck = pods.iter().filter(|pod| !pod["metadata"]["deletionTimestamp"].is_null()).count();
        assert_eq!(stuck, on["a"], "nobody confirms that they have stopped");

        kill(&stage, "a", false).await;
        after(5).await;
        let node = stage.get("/api/v1/nodes/a").await.unwrap();
        assert_eq!((camp::truth(&node, "Ready").as_str(), &node["spec"]["taints"]), ("True", &Value::Null));
        let pods = stage.list(PODS).await;
        assert!(pods.iter().all(|pod| pod["metadata"]["deletionTimestamp"].is_null()), "now they have stopped");
    });
}

#[test]
fn a_daemon_set_and_a_stateful_set_become_ready() {
    stage::run(async {
        let stage = camp(&["a", "b"]).await;
        let mut daemons = workload("apps/v1", "DaemonSet", json!({}));
        daemons["metadata"]["name"] = json!("d");
        stage.apply(daemons).await;
        stage.apply(workload("apps/v1", "StatefulSet", json!({ "replicas": 3, "serviceName": "w" }))).await;
        after(60).await;
        let set = stage.get("/apis/apps/v1/namespaces/team/daemonsets/d").await.unwrap();
        assert_eq!(set["status"]["numberReady"], 2, "{set:#}");
        let set = stage.get("/apis/apps/v1/namespaces/team/statefulsets/w").await.unwrap();
        assert_eq!(set["status"]["readyReplicas"], 3, "{set:#}");
    });
}

#[test]
fn a_cluster_at_rest_writes_almost_nothing() {
    stage::run(async {
        let stage = camp(&["a", "b", "c"]).await;
        stage.apply(workload("apps/v1", "Deployment", json!({ "replicas": 9 }))).await;
        after(600).await;
        let before = stage.server.store().revision();
        after(10 * 86_400).await;
        let writes = stage.server.store().revision() - before;
        assert!((30..=33).contains(&writes), "one lease for each node and day, not {writes}");
    });
}
