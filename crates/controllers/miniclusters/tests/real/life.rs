// SPDX-License-Identifier: Apache-2.0
//! The whole life of MiniClusters with the real controller-manager, scheduler and KWOK.

use std::{fmt::Debug, path::Path, sync::Arc, time::Duration};

use bivouac_api::flux::MiniCluster;
use bivouac_core::clock::SystemClock;
use bivouac_miniclusters::{Settings, registration};
use bivouac_runtime::{client, process};
use bivouac_testenv::{Options, TestCluster};
use k8s_openapi::api::{
    autoscaling::v2::HorizontalPodAutoscaler,
    batch::v1::Job,
    core::v1::{ConfigMap, Node, Pod, Secret, Service},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject, GroupVersionKind, NamespaceResourceScope},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::kueue::writes;

pub const PATIENCE: Duration = Duration::from_secs(60);
/// How the operator calls itself in the audit log.
pub const AGENT: &str = "bivouac-test";
const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";

pub struct Stage {
    // The operator goes first: the API server waits long for whoever watches it.
    _stop: DropGuard,
    pub cluster: TestCluster,
}

impl Stage {
    async fn new() -> Self {
        Self::with(Options::default()).await
    }

    pub async fn with(options: Options) -> Self {
        let cluster = TestCluster::start(options).await.unwrap();
        cluster.install_crds(&bivouac_api::crds()).await.unwrap();
        let stop = operator(cluster.kubeconfig()).await;
        Self { cluster, _stop: stop }
    }

    pub fn all<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.cluster.client(), "default")
    }

    async fn node(&self, name: &str) {
        let room = json!({"cpu": "16", "memory": "64Gi", "pods": "110"});
        let node = json!({
            "metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}},
            "status": {"capacity": room, "allocatable": room},
        });
        Api::<Node>::all(self.cluster.client()).create(&PostParams::default(), &typed(node)).await.unwrap();
    }

    pub async fn make(&self, name: &str, spec: Value) {
        let object: MiniCluster = typed(json!({"metadata": {"name": name}, "spec": spec}));
        let until = Instant::now() + PATIENCE;
        // A fresh CRD may answer with 503 or 404 for a moment.
        while let Err(error) = self.all::<MiniCluster>().create(&PostParams::default(), &object).await {
            assert!(Instant::now() < until, "{error}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Waits until the list of a kind is as it should be, and gives it back.
    pub async fn until<K>(&self, what: &str, is_so: impl Fn(&[K]) -> bool) -> Vec<K>
    where
        K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        let until = Instant::now() + PATIENCE;
        loop {
            let all = self.all::<K>().list(&ListParams::default()).await.unwrap().items;
            if is_so(&all) {
                return all;
            }
            assert!(Instant::now() < until, "{what} never comes: {all:#?}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// What is left in the namespace, without what Kubernetes itself puts there.
    async fn things(&self) -> Vec<String> {
        async fn names<K>(api: Api<K>) -> Vec<String>
        where
            K: kube::Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
        {
            let all = api.list(&ListParams::default()).await.unwrap();
            all.iter().map(|one| format!("{} {}", K::kind(&()), one.name_any())).collect()
        }
        let mut things = names::<ConfigMap>(self.all()).await;
        things.extend(names::<Secret>(self.all()).await);
        things.extend(names::<Service>(self.all()).await);
        things.extend(names::<Job>(self.all()).await);
        things.extend(names::<Pod>(self.all()).await);
        things.retain(|thing| thing != "ConfigMap kube-root-ca.crt" && thing != "Service kubernetes");
        things
    }
}

async fn operator(kubeconfig: &Path) -> DropGuard {
    let client: Client = client::connect(client::config(Some(kubeconfig)).await.unwrap(), AGENT).unwrap();
    let options = process::Options {
        controllers: vec![registration(Settings::default())],
        admin: None,
        lease: None,
        identity: "test".to_owned(),
    };
    let stop = CancellationToken::new();
    let token = stop.clone();
    tokio::spawn(async move { process::operate(client, Arc::new(SystemClock), options, token).await.unwrap() });
    stop.drop_guard()
}

pub fn typed<K: DeserializeOwned>(json: Value) -> K {
    serde_json::from_value(json).unwrap()
}

pub fn says(minicluster: &MiniCluster, kind: &str) -> bool {
    let conditions = minicluster.status.iter().flat_map(|status| &status.conditions);
    conditions.into_iter().any(|one| one.type_ == kind && one.status == "True")
}

#[tokio::test(flavor = "multi_thread")]
async fn it_runs_to_its_end_and_leaves_nothing() {
    let stage = Stage::new().await;
    stage.node("kwok-1").await;
    stage.make("short", json!({"size": 4, "containers": [{"image": "app", "command": "sleep 1"}]})).await;
    let pods = stage.until::<Pod>("four pods", |pods| pods.len() == 4).await;
    let done = stage.until::<MiniCluster>("the end", |all| all.iter().all(|one| says(one, "JobFinished"))).await;
    let status = done[0].status.clone().unwrap();
    assert_eq!((status.size, status.exit_code), (4, Some(0)));
    assert!(status.start_time.is_some() && status.completion_time.is_some());
    assert_eq!(pods.len(), 4);
    stage.until::<Pod>("the label of the lead", |pods| labels(pods) == ["0"]).await;
    stage.all::<MiniCluster>().delete("short", &DeleteParams::default()).await.unwrap();
    let until = Instant::now() + PATIENCE;
    while !stage.things().await.is_empty() {
        assert!(Instant::now() < until, "left over: {:?}", stage.things().await);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The ranks that carry `job-index`. It is never a wrong one.
fn labels(pods: &[Pod]) -> Vec<&str> {
    let labelled = pods.iter().filter_map(|pod| Some((pod, pod.labels().get("job-index")?)));
    let right = labelled.map(|(pod, label)| {
        assert_eq!(Some(label), pod.annotations().get(COMPLETION_INDEX), "{pod:#?}");
        label.as_str()
    });
    right.collect()
}

/// The policy works once a lead that nobody keeps is made with its label.
async fn install_policies(stage: &Stage) {
    for object in bivouac_miniclusters::policies::mutating() {
        let object: DynamicObject = typed(object);
        let kind = GroupVersionKind::try_from(object.types.as_ref().unwrap()).unwrap();
        let api = Api::<DynamicObject>::all_with(stage.cluster.client(), &ApiResource::from_gvk(&kind));
        api.create(&PostParams::default(), &object).await.unwrap();
    }
    let lead: Pod = typed(json!({
        "metadata": {"name": "probe", "labels": {"app": "flux-operator", COMPLETION_INDEX: "0"}},
        "spec": {"containers": [{"name": "app", "image": "app"}]},
    }));
    let only_try = PostParams { dry_run: true, ..PostParams::default() };
    let until = Instant::now() + PATIENCE;
    while !stage.all::<Pod>().create(&only_try, &lead).await.unwrap().labels().contains_key("job-index") {
        assert!(Instant::now() < until, "the policy never works");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lead_is_made_with_its_index_and_no_pod_is_written() {
    let stage = Stage::with(Options { audit: true, ..Options::default() }).await;
    install_policies(&stage).await;
    stage.node("kwok-1").await;
    stage.make("short", json!({"size": 4, "containers": [{"image": "app", "command": "sleep 1"}]})).await;
    stage.until::<MiniCluster>("the end", |all| all.iter().all(|one| says(one, "JobFinished"))).await;
    let pods = stage.all::<Pod>().list(&ListParams::default()).await.unwrap().items;
    assert_eq!(labels(&pods), ["0"]);
    let writes = writes(&stage);
    assert!(writes.contains_key("patch jobs short"), "{writes:?}");
    assert!(!writes.keys().any(|write| write.starts_with("patch pods")), "{writes:?}");
}

/// An autoscaler needs no metric to keep a size within its bounds.
#[tokio::test(flavor = "multi_thread")]
async fn an_autoscaler_makes_it_larger_and_smaller() {
    let stage = Stage::new().await;
    // No node has this label: the pods exist, and that is all this is about.
    let pod = json!({"nodeSelector": {"nowhere": "true"}});
    let spec = json!({
        "size": 2, "maxSize": 8, "interactive": true, "pod": pod, "containers": [{"image": "app"}],
    });
    stage.make("elastic", spec).await;
    stage.until::<Pod>("two pods", |pods| pods.len() == 2).await;
    for (least, most, size) in [(5, 8, 5), (1, 3, 3)] {
        let autoscaler: HorizontalPodAutoscaler = typed(json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "elastic"},
            "spec": {
                "minReplicas": least, "maxReplicas": most,
                "scaleTargetRef": {"apiVersion": "flux-framework.org/v1alpha2", "kind": "MiniCluster", "name": "elastic"},
            },
        }));
        let apply = PatchParams::apply("test").force();
        stage.all::<HorizontalPodAutoscaler>().patch("elastic", &apply, &Patch::Apply(&autoscaler)).await.unwrap();
        let wanted = i32::try_from(size).unwrap();
        stage.until::<MiniCluster>("the size", |all| all[0].spec.size == wanted).await;
        stage.until::<Pod>("the pods", |pods| pods.iter().filter(|pod| lives(pod)).count() == size).await;
        let all = stage.until::<MiniCluster>("the status", |all| all[0].status.as_ref().unwrap().size == wanted).await;
        assert_eq!(all[0].status.as_ref().unwrap().maximum_size, 8);
    }
}

fn lives(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none()
}
