// SPDX-License-Identifier: Apache-2.0
//! The two worlds in which a case is played.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use bivouac_simulator::Part;
use bivouac_testenv::{Options, TestCluster};
use futures::StreamExt;
use http::{Method, Request};
use http_body_util::BodyExt;
use kube::{
    Api, Client,
    api::{DynamicObject, WatchEvent, WatchParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::Value;

use crate::stage::Stage;

/// The controllers that the real controller manager has, too.
pub const PARTS: &[Part] = &[
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

pub const KINDS: &[(&str, &str, &str)] = &[
    ("v1", "Pod", "pods"),
    ("v1", "ConfigMap", "configmaps"),
    ("v1", "Service", "services"),
    ("v1", "Endpoints", "endpoints"),
    ("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    ("v1", "ResourceQuota", "resourcequotas"),
    ("v1", "Event", "events"),
    ("batch/v1", "Job", "jobs"),
    ("apps/v1", "Deployment", "deployments"),
    ("apps/v1", "ReplicaSet", "replicasets"),
    ("apps/v1", "StatefulSet", "statefulsets"),
    ("apps/v1", "DaemonSet", "daemonsets"),
    ("apps/v1", "ControllerRevision", "controllerrevisions"),
    ("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    ("discovery.k8s.io/v1", "EndpointSlice", "endpointslices"),
];

/// The real controllers look again a second after what they saw, and do so several times.
const STILL: Duration = Duration::from_millis(2_700);
const NEVER_STILL: Duration = Duration::from_secs(30);

pub enum World {
    Real(Real),
    Ours(Box<Stage>),
}

/// The last change of each namespace.
type Changes = Arc<Mutex<BTreeMap<String, Instant>>>;

#[derive(Clone)]
pub struct Real {
    client: Client,
    changes: Changes,
}

/// The path of the objects of a kind.
pub fn collection(kind: &str, namespace: &str) -> String {
    if kind == "Node" {
        return "/api/v1/nodes".to_owned();
    }
    let Some((api, _, plural)) = KINDS.iter().find(|(_, one, _)| *one == kind) else { panic!("what is {kind}?") };
    let root = if api.contains('/') { "apis" } else { "api" };
    format!("/{root}/{api}/namespaces/{namespace}/{plural}")
}

// === impl Real ===

impl Real {
    pub async fn start() -> (TestCluster, Self) {
        let without = vec!["kube-scheduler".to_owned(), "kwok".to_owned()];
        let cluster = TestCluster::start(Options { without, ..Options::default() }).await.unwrap();
        let real = Self { client: cluster.client(), changes: Changes::default() };
        for (api, kind, plural) in KINDS.iter().filter(|(_, kind, _)| *kind != "Event") {
            let (group, version) = api.rsplit_once('/').unwrap_or(("", api));
            let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
            tokio::spawn(follow(real.client.clone(), resource, real.changes.clone()));
        }
        (cluster, real)
    }

    async fn still(&self, namespace: &str) {
        let begin = Instant::now();
        self.changes.lock().unwrap().insert(namespace.to_owned(), begin);
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let last = self.changes.lock().unwrap().get(namespace).copied().unwrap_or(begin);
            if last.elapsed() > STILL {
                return;
            }
            assert!(begin.elapsed() < NEVER_STILL, "{namespace} does not come to rest");
        }
    }
}

async fn follow(client: Client, resource: ApiResource, changes: Changes) {
    let api = Api::<DynamicObject>::all_with(client, &resource);
    let mut version = "0".to_owned();
    loop {
        // Also where the cluster is gone: the task ends with the runtime, for which it must rest somewhere.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let Ok(events) = api.watch_metadata(&WatchParams::default(), &version).await else { continue };
        let mut events = events.boxed();
        while let Some(Ok(event)) = events.next().await {
            let (WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object)) = event else {
                continue;
            };
            version = object.metadata.resource_version.unwrap_or(version);
            changes.lock().unwrap().insert(object.metadata.namespace.unwrap_or_default(), Instant::now());
        }
    }
}

// === impl World ===

impl World {
    pub async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
        let patch = method == Method::PATCH;
        let content = if patch { "application/merge-patch+json" } else { "application/json" };
        let text = body.map(ToString::to_string).unwrap_or_default();
        match self {
            Self::Ours(stage) => {
                let (code, answer) = stage.ask(method, path, content, text).await;
                (code.as_u16(), answer)
            }
            Self::Real(real) => {
                let request = Request::builder().method(method).uri(path).header("content-type", content);
                let answer = real.client.send(request.body(text.into_bytes().into()).unwrap()).await.unwrap();
                let code = answer.status().as_u16();
                let bytes = answer.into_body().collect().await.unwrap().to_bytes();
                (code, serde_json::from_slice(&bytes).unwrap_or_default())
            }
        }
    }

    pub async fn must(&self, method: Method, path: &str, body: Option<&Value>) -> Value {
        let (code, answer) = self.ask(method.clone(), path, body).await;
        assert!((200..300).contains(&code), "{method} {path}: {answer:#}");
        answer
    }

    pub async fn list(&self, kind: &str, namespace: &str) -> Vec<Value> {
        let answer = self.must(Method::GET, &collection(kind, namespace), None).await;
        answer["items"].as_array().cloned().unwrap_or_default()
    }

    /// Until nothing changes any more, other than by the passing of time.
    pub async fn settle(&self, namespace: &str) {
        match self {
            Self::Real(real) => real.still(namespace).await,
            Self::Ours(_) => tokio::time::sleep(Duration::from_secs(3)).await,
        }
    }

    pub async fn wait(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    pub fn now(&self) -> String {
        let now = match self {
            Self::Real(_) => jiff::Timestamp::now(),
            Self::Ours(stage) => stage.server.clock().now(),
        };
        now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}
