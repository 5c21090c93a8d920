// SPDX-License-Identifier: Apache-2.0
//! Three hundred Workspaces: all become ready with eight requests each, then nothing is written, not even by a
//! second operator that starts over the settled world. Counted by the API server's audit log.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use bivouac_api::tenant::Workspace;
use bivouac_core::clock::SystemClock;
use bivouac_runtime::{
    client, lease,
    process::{self, Options},
};
use bivouac_testenv::TestCluster;
use futures::StreamExt;
use kube::{
    Api,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const WORKSPACES: usize = 300;
const AGENT: &str = "bivouac-scale-test";
const PATIENCE: Duration = Duration::from_secs(120);
/// The full five minutes are watched by `cargo xtask bench tenancy`; here it is a tenth.
const STEADY: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn three_hundred_workspaces_settle_and_then_nothing_is_written() {
    let options = bivouac_testenv::Options { audit: true, ..bivouac_testenv::Options::default() };
    let cluster = TestCluster::start(options).await.unwrap();
    cluster.install_crds(&bivouac_api::crds()).await.unwrap();
    let log = cluster.audit_log().unwrap().to_owned();
    let workspaces = Api::<Workspace>::all(cluster.client());

    let operator = start(cluster.kubeconfig(), "first").await;
    let names: Vec<String> = (0..WORKSPACES).map(|n| format!("team-{n:03}")).collect();
    futures::stream::iter(&names).for_each_concurrent(8, |name| create(&workspaces, name)).await;
    all_ready(&workspaces).await;
    let requests = settled(&log).await;
    println!("requests: {requests:?}");
    assert_eq!(requests.get("patch"), Some(&(7 * WORKSPACES)), "six children and one status each");
    assert_eq!(requests.get("create"), Some(&WORKSPACES), "one event each");
    // A busy server may close watches; opening them again is not a read of objects.
    let reads = ["get", "list"].iter().filter_map(|verb| requests.get(*verb)).sum::<usize>();
    assert!(reads < 20, "reads do not grow with the number of objects: {requests:?}");

    tokio::time::sleep(STEADY).await;
    assert_eq!(writes(&count(&log)), writes(&requests), "the steady state writes nothing");

    stop(operator).await;
    let second = start(cluster.kubeconfig(), "second").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(writes(&count(&log)), writes(&requests), "a restart over the settled world writes nothing");
    stop(second).await;
}

async fn start(kubeconfig: &Path, identity: &str) -> (tokio::task::JoinHandle<()>, CancellationToken) {
    let client = client::connect(client::config(Some(kubeconfig)).await.unwrap(), AGENT).unwrap();
    let stop = CancellationToken::new();
    let options = Options {
        controllers: vec![bivouac_tenancy::registration(bivouac_tenancy::Settings::default())],
        admin: None,
        lease: Some(lease::Settings::new("default", "scale-test", identity)),
        identity: identity.to_owned(),
    };
    let token = stop.clone();
    let run = async move { process::operate(client, Arc::new(SystemClock), options, token).await.unwrap() };
    (tokio::spawn(run), stop)
}

async fn stop((task, token): (tokio::task::JoinHandle<()>, CancellationToken)) {
    token.cancel();
    task.await.unwrap();
}

async fn create(api: &Api<Workspace>, name: &str) {
    let workspace: Workspace = serde_json::from_value(json!({
        "apiVersion": "tenant.otterscale.io/v1alpha1", "kind": "Workspace",
        "metadata": {
            "name": name,
            // As the mutating policy would set them.
            "labels": {"user.otterscale.io/ada": "true", "user.otterscale.io/bob": "true"},
        },
        "spec": {
            "namespace": name,
            "members": [{"subject": "ada", "role": "admin"}, {"subject": "bob", "role": "edit"}],
            "resourceQuota": {"hard": {
                "requests.cpu": "1", "requests.memory": "1Gi", "limits.cpu": "2", "limits.memory": "2Gi",
                "requests.nvidia.com/gpu": "4",
            }},
            "limitRange": {"limits": [{
                "type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "500m"},
                "max": {"cpu": "1"}, "min": {"cpu": "100m"},
            }]},
            "networkIsolation": {"enabled": true, "allowedNamespaces": ["kube-system", "otterscale-system"]},
        },
    }))
    .unwrap();
    let until = Instant::now() + PATIENCE;
    while let Err(error) = api.create(&PostParams::default(), &workspace).await {
        // A fresh CRD may answer with 503 or 404 for a moment.
        let fresh = matches!(&error, kube::Error::Api(status) if matches!(status.code, 404 | 429 | 503));
        assert!(fresh && Instant::now() < until, "{name}: {error}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn all_ready(api: &Api<Workspace>) {
    let until = Instant::now() + PATIENCE;
    loop {
        let list = api.list(&ListParams::default()).await.unwrap();
        let ready = list.iter().filter(|one| one.status.as_ref().is_some_and(is_ready)).count();
        if ready == WORKSPACES {
            return;
        }
        assert!(Instant::now() < until, "{ready} of {WORKSPACES} ready");
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

fn is_ready(status: &bivouac_api::tenant::WorkspaceStatus) -> bool {
    status.conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The counts, once they stand still for three seconds: events follow the status by a moment.
async fn settled(log: &Path) -> BTreeMap<String, usize> {
    let mut before = count(log);
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_secs(3)).await;
        let now = count(log);
        if writes(&now) == writes(&before) {
            return now;
        }
        before = now;
    }
    panic!("the operator never stopped writing: {before:?}");
}

/// Requests of the operator by verb, without its Lease.
fn count(log: &Path) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for line in std::fs::read_to_string(log).unwrap().lines() {
        let Ok(entry) = serde_json::from_str::<Value>(line) else { continue };
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        if text("userAgent") == AGENT && text("stage") == "ResponseComplete" && !text("requestURI").contains("/leases")
        {
            *counts.entry(text("verb")).or_insert(0) += 1;
        }
    }
    counts
}

fn writes(counts: &BTreeMap<String, usize>) -> usize {
    ["create", "update", "patch", "delete", "deletecollection"].iter().filter_map(|verb| counts.get(*verb)).sum()
}
