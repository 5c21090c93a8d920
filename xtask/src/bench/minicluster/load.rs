// SPDX-License-Identifier: Apache-2.0
//! The MiniClusters of the measurement, and what is to be seen of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use bivouac_api::flux::MiniCluster;
use bivouac_runtime::client;
use bivouac_testenv::{Options, TestCluster};
use futures::{Stream, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Node, Pod, Service};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, PostParams},
    core::PartialObjectMeta,
    runtime::{WatchStreamExt, watcher},
};
use serde_json::json;
use tokio::sync::oneshot;

use crate::{bench::operator, repo};

const PATIENCE: Duration = Duration::from_secs(300);
const CREATORS: usize = 8;
const NODES: usize = 50;
/// Objects of the floor, and requests in flight.
const FLOOR: usize = 2_000;
const IN_FLIGHT: usize = 32;
const NAMESPACE: &str = "default";
const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";

#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub clusters: usize,
    pub size: usize,
}

/// Pods that carried `job-index`, and whether it was theirs.
#[derive(Debug, Default)]
pub struct Labels {
    pub right: usize,
    pub wrong: usize,
}

fn minicluster(number: usize, size: usize) -> Result<MiniCluster> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "flux-framework.org/v1alpha2", "kind": "MiniCluster",
        "metadata": {"name": format!("mc-{number:03}"), "namespace": NAMESPACE},
        "spec": {
            "logging": {"quiet": true}, "size": size,
            "containers": [{"image": "ubuntu:noble", "command": "sleep 1"}],
        },
    }))?)
}

/// Fresh servers, with the flags that the original had, and with what an installation brings along: kinds and policies.
pub async fn cluster() -> Result<TestCluster> {
    // The original's pods ran for a second.
    let job_pods_run = Duration::from_secs(1);
    let options = Options { audit: true, one_account: true, job_pods_run, ..Options::default() };
    let cluster = TestCluster::start(options).await?;
    cluster.install_crds(&bivouac_api::crds()).await?;
    let policies = repo::root().join("deploy/policies.yaml").display().to_string();
    let applied = cluster.kubectl(&["apply", "-f", &policies]).await?;
    ensure!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
    operator::wait_until_served::<MiniCluster>(&cluster.client()).await?;
    Ok(cluster)
}

/// Nodes that KWOK plays.
pub async fn nodes(client: &Client) -> Result<()> {
    let node = |number: usize| -> Result<Node> {
        let room = json!({"cpu": "64", "memory": "256Gi", "pods": "110"});
        Ok(serde_json::from_value(json!({
            "metadata": {"name": format!("kwok-{number:02}"), "annotations": {"kwok.x-k8s.io/node": "fake"}},
            "status": {"capacity": room, "allocatable": room},
        }))?)
    };
    let api = Api::<Node>::all(client.clone());
    for number in 0..NODES {
        api.create(&PostParams::default(), &node(number)?).await?;
    }
    Ok(())
}

/// Until the controller-manager has welcomed all nodes, which it does every five seconds: that is not what is measured.
pub async fn nodes_are_known(client: &Client) -> Result<()> {
    let events = Api::<Event>::namespaced(client.clone(), NAMESPACE);
    let welcomes = ListParams::default().fields("reason=RegisteredNode");
    let until = Instant::now() + PATIENCE;
    while events.list_metadata(&welcomes).await?.items.len() < NODES {
        if Instant::now() > until {
            bail!("the controller-manager does not welcome the nodes");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

/// How many ConfigMaps of a kilobyte a bare client creates in a second.
pub async fn floor(cluster: &TestCluster, round: &str) -> Result<f64> {
    let client = client::connect(client::config(Some(cluster.kubeconfig())).await?, "bivouac-floor")?;
    // The connection is made before the clock starts.
    client.apiserver_version().await?;
    let api = Api::<ConfigMap>::namespaced(client, "kube-public");
    let data = BTreeMap::from([("text".to_owned(), "x".repeat(1_000))]);
    let create = |number: usize| {
        let (api, data) = (api.clone(), data.clone());
        async move {
            let metadata =
                kube::core::ObjectMeta { name: Some(format!("floor-{round}-{number}")), ..Default::default() };
            api.create(&PostParams::default(), &ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }).await
        }
    };
    let started = Instant::now();
    let all = futures::stream::iter((0..FLOOR).map(create)).buffer_unordered(IN_FLIGHT);
    all.try_for_each(|_| futures::future::ok(())).await?;
    Ok(FLOOR as f64 / started.elapsed().as_secs_f64())
}

/// How the MiniClusters come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Load {
    /// One `kubectl apply` of one file, one after the other, as the original got them
    Apply,
    /// Eight requests at a time: all are there before the first pods run
    Burst,
}

impl Load {
    pub async fn bring(self, cluster: &TestCluster, shape: Shape) -> Result<()> {
        let all = (0..shape.clusters).map(|number| minicluster(number, shape.size)).collect::<Result<Vec<_>>>()?;
        match self {
            Self::Apply => apply(cluster, &all).await,
            Self::Burst => burst(&cluster.client(), &all).await,
        }
    }
}

async fn apply(cluster: &TestCluster, all: &[MiniCluster]) -> Result<()> {
    let file = tempfile::NamedTempFile::new()?;
    serde_json::to_writer(&file, &json!({"apiVersion": "v1", "kind": "List", "items": all}))?;
    let applied = cluster.kubectl(&["apply", "-f", &file.path().display().to_string()]).await?;
    ensure!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
    Ok(())
}

async fn burst(client: &Client, all: &[MiniCluster]) -> Result<()> {
    let api = Api::<MiniCluster>::namespaced(client.clone(), NAMESPACE);
    let params = PostParams::default();
    let creates = all.iter().map(|one| api.create(&params, one));
    futures::stream::iter(creates).buffer_unordered(CREATORS).try_for_each(|_| futures::future::ok(())).await?;
    Ok(())
}

/// When the first MiniCluster was there, for whoever watches.
pub async fn first_seen(client: Client) -> Result<Instant> {
    let api = Api::<PartialObjectMeta<MiniCluster>>::namespaced(client, NAMESPACE);
    let mut all = Box::pin(watcher(api, watcher::Config::default()).applied_objects());
    let first = tokio::time::timeout(PATIENCE, all.try_next()).await.context("no MiniCluster comes")??;
    first.context("the watch ended")?;
    Ok(Instant::now())
}

/// Every MiniCluster as it comes and changes.
pub fn miniclusters(client: &Client) -> impl Stream<Item = Result<MiniCluster, watcher::Error>> + Unpin {
    let api = Api::<MiniCluster>::namespaced(client.clone(), NAMESPACE);
    Box::pin(watcher(api, watcher::Config::default()).applied_objects())
}

/// What happens to the pods, so that looking costs the server little: without their spec and status.
fn watched_pods(client: &Client) -> impl Stream<Item = Result<PartialObjectMeta<Pod>, watcher::Error>> + Unpin {
    let api = Api::<PartialObjectMeta<Pod>>::namespaced(client.clone(), NAMESPACE);
    Box::pin(watcher(api, watcher::Config::default()).applied_objects())
}

/// Somebody who asks for the label on the pods.
pub async fn select_by_rank(client: &Client) -> Result<()> {
    let service: Service = serde_json::from_value(json!({
        "metadata": {"name": "lead", "namespace": NAMESPACE},
        "spec": {"selector": {"job-index": "0"}, "ports": [{"port": 80}]},
    }))?;
    Api::<Service>::namespaced(client.clone(), NAMESPACE).create(&PostParams::default(), &service).await?;
    Ok(())
}

/// Follows the pods with one watch, for every watch costs the server something: tells when all of them existed, and
/// compares every `job-index` with the pod's own index until all MiniClusters are finished.
pub async fn pods(client: Client, shape: Shape, all_exist: oneshot::Sender<Instant>) -> Result<Labels> {
    let mut pods = watched_pods(&client);
    let (mut seen, mut labels, mut all_exist) = (BTreeSet::new(), BTreeMap::new(), Some(all_exist));
    let watch = async {
        while let Some(pod) = pods.try_next().await? {
            if all_exist.is_some() && seen.insert(pod.uid()) && seen.len() == shape.clusters * shape.size {
                all_exist.take().map(|tell| tell.send(Instant::now()));
            }
            let Some(label) = pod.labels().get("job-index") else { continue };
            let own = pod.annotations().get(COMPLETION_INDEX).or_else(|| pod.labels().get(COMPLETION_INDEX));
            labels.insert(pod.uid(), own == Some(label));
        }
        anyhow::Ok(())
    };
    tokio::select! {
        ended = watch => ended?,
        finished = all_finished(&client, shape) => finished?,
    }
    let right = labels.values().filter(|right| **right).count();
    Ok(Labels { right, wrong: labels.len() - right })
}

pub async fn all_finished(client: &Client, shape: Shape) -> Result<()> {
    let mut all = miniclusters(client);
    let mut done = BTreeSet::new();
    let watch = async {
        while done.len() < shape.clusters {
            let Some(minicluster) = all.try_next().await? else { bail!("the watch ended") };
            let status = minicluster.status.clone().unwrap_or_default();
            if status.conditions.iter().any(|one| one.type_ == "JobFinished" && one.status == "True") {
                done.insert(minicluster.name_any());
            }
        }
        Ok(())
    };
    let outcome = tokio::time::timeout(PATIENCE, watch).await;
    outcome.unwrap_or_else(|_| bail!("{} of {} finished after {} s", done.len(), shape.clusters, PATIENCE.as_secs()))
}
