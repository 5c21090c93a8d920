// SPDX-License-Identifier: Apache-2.0
//! A simulated cluster with the controller in it, for one test.

use std::{
    collections::BTreeSet,
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use bivouac_api::flux::MiniCluster;
use bivouac_apiserver::{ApiServer, TokioClock, User};
use bivouac_miniclusters::{Settings, registration};
use bivouac_runtime::{process, reconcile::Kind};
use bivouac_simulator::{Cluster, Part};
use k8s_openapi::{
    api::{
        batch::v1::Job,
        core::v1::{ConfigMap, Node, Pod, Secret, Service},
        events::v1::Event,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
    client::Body,
    core::NamespaceResourceScope,
};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

pub struct Stage {
    server: ApiServer,
    pub client: Client,
    /// What the operator asked the server for, watches and its own discovery left out.
    requests: Arc<Mutex<Vec<String>>>,
    /// Which pods it watches, as label selectors.
    watches: Arc<Mutex<BTreeSet<String>>>,
    operator: Mutex<Option<(CancellationToken, tokio::task::JoinHandle<()>)>>,
    settings: Settings,
    _stop: DropGuard,
}

/// Plays a test in virtual time.
pub fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(test);
}

impl Stage {
    /// A cluster with so many nodes of 16 cpu, and the operator.
    pub async fn new(nodes: usize, settings: Settings) -> Self {
        Self::with_crds(nodes, settings, &[]).await
    }

    pub async fn with_crds(nodes: usize, settings: Settings, more: &[CustomResourceDefinition]) -> Self {
        let clock = Arc::new(TokioClock::default());
        let server =
            ApiServer::start(bivouac_apiserver::Settings { clock, seed: Some(1), ..Default::default() }).await.unwrap();
        let stop = CancellationToken::new();
        let cluster = Cluster::start(&server, &bivouac_simulator::Settings { parts: Part::ALL.to_vec() });
        tokio::spawn(cluster.run(stop.clone()));
        let collecting = server.clone();
        tokio::spawn(stop.clone().run_until_cancelled_owned(async move { collecting.collect().await }));
        let client = Client::new(server.speaking_as(User::admin()), "default");
        let stage = Self {
            server,
            client,
            requests: Arc::default(),
            watches: Arc::default(),
            operator: Mutex::default(),
            settings,
            _stop: stop.drop_guard(),
        };
        let crds = bivouac_api::crds().into_iter().filter(|crd| crd.name_any() == "miniclusters.flux-framework.org");
        for crd in crds.chain(more.iter().cloned()) {
            stage.apply(&crd).await;
        }
        for number in 0..nodes {
            stage.node(&format!("n{number}")).await;
        }
        stage.start();
        stage.pass(5).await;
        stage
    }

    pub fn start(&self) {
        let (server, requests, watches) = (self.server.clone(), self.requests.clone(), self.watches.clone());
        let send = move |request: http::Request<Body>| {
            let server = server.clone();
            note(&requests, &request);
            watches.lock().unwrap().extend(pods_watched(&request));
            async move { Ok::<_, std::convert::Infallible>(server.answer(request).await) }
        };
        let client = Client::new(tower::service_fn(send), "default");
        let options = process::Options {
            controllers: vec![registration(self.settings.clone())],
            admin: None,
            lease: None,
            identity: "test".to_owned(),
        };
        let (stop, clock) = (CancellationToken::new(), self.server.clock());
        let token = stop.clone();
        let task = tokio::spawn(async move { process::operate(client, clock, options, token).await.unwrap() });
        *self.operator.lock().unwrap() = Some((stop, task));
    }

    pub async fn stop(&self) {
        let (stop, task) = self.operator.lock().unwrap().take().unwrap();
        stop.cancel();
        task.await.unwrap();
    }

    pub async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    /// What was asked since the last time, as `VERB path`.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.requests.lock().unwrap())
    }

    /// Whether the operator ever asked to see pods by these labels.
    pub fn watches_pods(&self, labels: &str) -> bool {
        self.watches.lock().unwrap().contains(labels)
    }

    pub async fn node(&self, name: &str) {
        let node: Node = serde_json::from_value(json!({
            "metadata": {"name": name, "annotations": {"simulator.bivouac.dev/node": "true"}},
        }))
        .unwrap();
        self.apply(&node).await;
    }

    /// A MiniCluster in the namespace `default`. Its pods run for as long as `run` says.
    pub async fn make(&self, name: &str, spec: &str, run: &str) -> MiniCluster {
        let mut object = MiniCluster::new(name, serde_saphyr::from_str(spec).unwrap());
        object.metadata.namespace = Some("default".into());
        let pod = object.spec.pod.get_or_insert_default();
        pod.annotations.insert("simulator.bivouac.dev/run".into(), run.into());
        self.apply_in(&object).await
    }

    pub async fn apply<K: Kind>(&self, object: &K) -> K {
        let params = PatchParams::apply("test").force();
        let api = Api::<K>::all(self.client.clone());
        api.patch(&object.name_any(), &params, &Patch::Apply(object)).await.unwrap()
    }

    pub async fn apply_in<K: Kind + kube::Resource<Scope = NamespaceResourceScope>>(&self, object: &K) -> K {
        let params = PatchParams::apply("test").force();
        self.all::<K>().patch(&object.name_any(), &params, &Patch::Apply(object)).await.unwrap()
    }

    pub fn all<K: Kind + kube::Resource<Scope = NamespaceResourceScope>>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), "default")
    }

    pub async fn minicluster(&self, name: &str) -> MiniCluster {
        self.all().get(name).await.unwrap()
    }

    pub async fn job(&self, name: &str) -> Option<Job> {
        self.all().get_opt(name).await.unwrap()
    }

    pub async fn resize(&self, name: &str, size: i32) -> Result<MiniCluster, kube::Error> {
        let patch = json!({"spec": {"size": size}});
        self.all::<MiniCluster>().patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await
    }

    pub async fn delete(&self, name: &str) {
        self.all::<MiniCluster>().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// The reason that the MiniCluster gives, and the sentence with it.
    pub async fn says(&self, name: &str) -> (String, String) {
        let status = self.minicluster(name).await.status.unwrap_or_default();
        let ready = status.conditions.into_iter().find(|one| one.type_ == "Ready");
        ready.map(|one| (one.reason, one.message)).unwrap_or_default()
    }

    pub async fn pods(&self) -> Vec<Pod> {
        let all = self.all::<Pod>().list(&ListParams::default()).await.unwrap().items;
        all.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect()
    }

    /// The reasons of all events, in order.
    pub async fn events(&self) -> Vec<String> {
        let mut all = self.all::<Event>().list(&ListParams::default()).await.unwrap().items;
        all.retain(|event| event.reporting_controller.as_deref() == Some("bivouac-miniclusters"));
        all.sort_by_key(|event| event.event_time.as_ref().map(|time| time.0));
        all.into_iter().filter_map(|event| event.reason).collect()
    }

    /// What is in the namespace, as `Kind name`, without what Kubernetes itself puts there.
    pub async fn things(&self) -> Vec<String> {
        async fn names<K>(stage: &Stage) -> Vec<String>
        where
            K: Kind + kube::Resource<Scope = NamespaceResourceScope>,
        {
            let all = stage.all::<K>().list(&ListParams::default()).await.unwrap();
            all.iter().map(|one| format!("{} {}", K::kind(&()), one.name_any())).collect()
        }
        let mut things = [
            names::<ConfigMap>(self).await,
            names::<Secret>(self).await,
            names::<Service>(self).await,
            names::<Job>(self).await,
            names::<Pod>(self).await,
        ]
        .concat();
        things.retain(|thing| thing != "ConfigMap kube-root-ca.crt" && thing != "Service kubernetes");
        things
    }
}

/// Remembers a request. A watch counts as none: it is opened once and told all the time.
fn note(requests: &Mutex<Vec<String>>, request: &http::Request<Body>) {
    let path = request.uri().path();
    let opens = request.uri().query().is_some_and(|query| query.contains("watch=") || query.contains("limit="));
    let greets = path == "/version" || path == "/apis" || path.contains("/leases/");
    if !opens && !greets {
        requests.lock().unwrap().push(format!("{} {path}", request.method()));
    }
}

fn pods_watched(request: &http::Request<Body>) -> Option<String> {
    let query = request.uri().query().filter(|_| request.uri().path() == "/api/v1/pods")?;
    let mut asked = form_urlencoded::parse(query.as_bytes());
    asked.find(|(key, _)| key == "labelSelector").map(|(_, labels)| labels.into_owned())
}

/// Something typed out of JSON.
pub fn typed<K: Kind>(json: Value) -> K {
    serde_json::from_value(json).unwrap()
}
