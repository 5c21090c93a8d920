// SPDX-License-Identifier: Apache-2.0
//! Ring 4: the real API server with the real controllers. Tests that share a cluster share a lease too: whoever leads
//! works for all.

use std::{path::PathBuf, sync::Arc, thread::JoinHandle, time::Duration};

use bivouac_api::tenant::Workspace;
use bivouac_core::clock::{Clock, SystemClock};
use bivouac_runtime::{client, process};
use bivouac_testenv::{Options, TestCluster, TestNamespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams},
};
use tokio_util::sync::CancellationToken;

use crate::workspaces::stage::{AGENT, Wrap, operator_options};

/// Plays a test.
pub fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(test);
}

pub struct World(pub TestCluster);

impl World {
    /// The cluster that all tests share. Names must be unique.
    pub async fn shared() -> Self {
        Self(TestCluster::shared().await.unwrap())
    }

    /// A cluster of its own, for tests that others would notice.
    pub async fn own() -> Self {
        let without = ["kwok", "scheduler"].map(str::to_owned).to_vec();
        Self(TestCluster::start(Options { without, ..Options::default() }).await.unwrap())
    }

    /// Something that no other test has, as a part of names.
    pub fn unique(&self) -> String {
        let seconds = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        format!("{seconds:x}-{:x}", std::process::id())
    }

    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    pub fn client(&self) -> Client {
        self.0.client()
    }

    pub async fn install_crds(&self, crds: &[CustomResourceDefinition]) {
        self.0.install_crds(crds).await.unwrap();
    }

    pub async fn namespace(&self, prefix: &str) -> TestNamespace {
        self.0.namespace(prefix).await.unwrap()
    }

    pub async fn client_as(&self, user: &str, groups: &[&str]) -> Client {
        self.0.client_as(user, groups).await.unwrap().client
    }

    pub async fn client_for_service_account(&self, namespace: &str, name: &str) -> Client {
        self.0.client_for_service_account(namespace, name).await.unwrap().client
    }

    /// From now on nobody collects garbage.
    pub async fn stop_collecting(&mut self) {
        self.0.stop("kube-controller-manager").await.unwrap();
    }

    pub fn operator(&self, wrap: Wrap) -> Operator {
        Operator::start(self.0.kubeconfig().to_owned(), wrap)
    }

    /// Deletes the Workspaces with a label. Nobody waits until they are gone.
    pub fn clean(&self, label: String) {
        let kubeconfig = self.0.kubeconfig().to_owned();
        let clean = move || {
            run(async {
                let config = client::config(Some(&kubeconfig)).await.unwrap();
                let workspaces = Api::<Workspace>::all(client::connect(config, "test").unwrap());
                let (background, ours) = (DeleteParams::background(), ListParams::default().labels(&label));
                let deleting = workspaces.delete_collection(&background, &ours);
                let _ = tokio::time::timeout(Duration::from_secs(5), deleting).await;
            });
        };
        let _ = std::thread::spawn(clean).join();
    }
}

/// The operator as it runs in production, inside the test process: on a thread of its own, so that dropping it can wait.
pub struct Operator {
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Operator {
    fn start(kubeconfig: PathBuf, wrap: Wrap) -> Self {
        let stop = CancellationToken::new();
        let token = stop.clone();
        let thread = std::thread::spawn(move || {
            run(async {
                // Shown for failed tests only; the second start in one process changes nothing.
                let _ = tracing_subscriber::fmt().with_max_level(tracing::Level::INFO).with_test_writer().try_init();
                let config = client::config(Some(&kubeconfig)).await.unwrap();
                let client = wrap(client::connect(config, AGENT).unwrap());
                let identity = format!("{}-{:?}", std::process::id(), std::thread::current().id());
                process::operate(client, Arc::new(SystemClock), operator_options(&identity), token).await.unwrap();
            });
        });
        Self { stop, thread: Some(thread) }
    }

    pub async fn stop(self) {
        drop(self);
    }
}

/// Stops in order; the lease is free afterwards.
impl Drop for Operator {
    fn drop(&mut self) {
        self.stop.cancel();
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || matches!(ended, Some(Ok(()))), "the operator panicked");
    }
}
