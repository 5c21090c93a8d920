// SPDX-License-Identifier: Apache-2.0
//! A cluster of one's own: it survives restarts of its parts and leaves nothing behind.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bivouac_testenv::supervisor::Ready;
use bivouac_testenv::{Options, TestCluster};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::runtime::wait::{await_condition, conditions::is_job_completed};
use kube::{Api, ResourceExt};

fn without(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn is_alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn wait_until_dead(pids: &BTreeMap<String, u32>) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while let Some((name, pid)) = pids.iter().find(|(_, pid)| is_alive(**pid)) {
        assert!(Instant::now() < deadline, "{name} ({pid}) still runs");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn supervise(dir: &Path) -> (Child, Ready) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_testenv"));
    command.args(["supervise", "--without", "kwok,scheduler", "--dir"]).arg(dir);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let ready: Ready = serde_json::from_str(&line).unwrap();
    assert!(ready.pids.len() == 3 && ready.pids.values().all(|pid| is_alive(*pid)), "{ready:?}");
    (child, ready)
}

#[tokio::test]
async fn pods_of_jobs_run_as_long_as_they_are_told() {
    let run = Duration::from_secs(5);
    let cluster = TestCluster::start(Options { job_pods_run: run, ..Options::default() }).await.unwrap();
    let room = serde_json::json!({"cpu": "1", "memory": "1Gi", "pods": "10"});
    let node: Node = serde_json::from_value(serde_json::json!({
        "metadata": {"name": "kwok-0", "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {"capacity": room, "allocatable": room},
    }))
    .unwrap();
    Api::<Node>::all(cluster.client()).create(&PostParams::default(), &node).await.unwrap();
    let job: Job = serde_json::from_value(serde_json::json!({
        "metadata": {"name": "short"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "one", "image": "one"}]}}},
    }))
    .unwrap();
    let started = Instant::now();
    let api = Api::<Job>::namespaced(cluster.client(), "default");
    api.create(&PostParams::default(), &job).await.unwrap();
    let ended = await_condition(api, "short", is_job_completed());
    tokio::time::timeout(Duration::from_secs(60), ended).await.unwrap().unwrap();
    assert!(started.elapsed() >= run, "{:?}", started.elapsed());
}

#[tokio::test]
async fn keeps_its_data_over_a_restart() {
    let options =
        Options { audit: true, without: without(&["kwok", "controller-manager", "scheduler"]), ..Options::default() };
    let cluster = TestCluster::start(options).await.unwrap();
    let namespace = cluster.namespace("Restart Me").await.unwrap();
    assert!(namespace.name().starts_with("restart-me-"));
    let api = Api::<ConfigMap>::namespaced(cluster.client(), namespace.name());
    let metadata = ObjectMeta { name: Some("kept".into()), ..ObjectMeta::default() };
    let made = api.create(&PostParams::default(), &ConfigMap { metadata, ..ConfigMap::default() }).await.unwrap();

    cluster.restart("kube-apiserver").await.unwrap();
    assert_eq!(api.get("kept").await.unwrap().uid(), made.uid());

    cluster.stop("kube-apiserver").await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(500), api.get("kept")).await.is_ok_and(|got| got.is_err()));
    cluster.start_server("apiserver").await.unwrap();
    assert_eq!(api.get("kept").await.unwrap().uid(), made.uid());

    let error = cluster.restart("kwok").await.unwrap_err().to_string();
    assert!(error.contains("started without kwok"), "{error}");
    let error = cluster.restart("nginx").await.unwrap_err().to_string();
    assert!(error.contains("is no server"), "{error}");

    let log = std::fs::read_to_string(cluster.audit_log().unwrap()).unwrap();
    assert!(log.lines().any(|line| line.contains(r#""verb":"create""#) && line.contains(r#""name":"kept""#)));
}

#[tokio::test]
async fn a_bad_flag_is_explained_by_the_server_itself() {
    let options = Options { apiserver_args: vec!["--no-such-flag".into()], ..Options::default() };
    let error = format!("{:#}", TestCluster::start(options).await.unwrap_err());
    assert!(
        error.contains("kube-apiserver ended by itself") && error.contains("unknown flag: --no-such-flag"),
        "{error}"
    );
}

#[test]
fn the_end_of_its_input_stops_everything() {
    let dir = tempfile::tempdir().unwrap();
    let (mut child, ready) = supervise(dir.path());
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    assert!(ready.pids.values().all(|pid| !is_alive(*pid)), "{ready:?}");
}

#[test]
fn a_killed_supervisor_takes_its_servers_along() {
    let dir = tempfile::tempdir().unwrap();
    let (mut child, ready) = supervise(dir.path());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until_dead(&ready.pids);
}

#[tokio::test]
async fn dropping_it_stops_it_and_kwok_makes_nodes_ready() {
    let cluster =
        TestCluster::start(Options { without: without(&["kube-scheduler"]), ..Options::default() }).await.unwrap();
    let api = Api::<Node>::all(cluster.client());
    let annotations = BTreeMap::from([("kwok.x-k8s.io/node".to_owned(), "fake".to_owned())]);
    let metadata = ObjectMeta { name: Some("fake".into()), annotations: Some(annotations), ..ObjectMeta::default() };
    api.create(&PostParams::default(), &Node { metadata, ..Node::default() }).await.unwrap();
    let is_ready = |node: Option<&Node>| {
        let conditions = node.and_then(|node| node.status.as_ref()?.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"))
    };
    tokio::time::timeout(Duration::from_secs(20), await_condition(api, "fake", is_ready)).await.unwrap().unwrap();
    // Roles exist because RBAC is on, and its hook has run before the cluster counted as ready.
    let roles = Api::<ClusterRole>::all(cluster.client()).list(&ListParams::default()).await.unwrap();
    assert!(roles.iter().any(|role| role.name_any() == "cluster-admin"));

    let pids: BTreeMap<String, u32> = cluster.pids().map(|(name, pid)| (name.to_owned(), pid)).collect();
    assert_eq!(pids.len(), 4);
    drop(cluster);
    assert!(pids.values().all(|pid| !is_alive(*pid)), "{pids:?}");
}
