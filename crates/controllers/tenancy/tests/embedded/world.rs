// SPDX-License-Identifier: Apache-2.0
//! Ring 2: the embedded API server in this process, on a paused clock: time passes when nothing else can happen.

use std::sync::Arc;

use bivouac_apiserver::{ApiServer, Settings, TokioClock, User};
use bivouac_core::clock::Clock;
use bivouac_runtime::process;
use k8s_openapi::{
    api::{
        authentication::v1::{TokenRequest, TokenRequestSpec},
        core::v1::{Namespace, ServiceAccount},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
    client::Body,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::workspaces::stage::{Wrap, operator_options};

/// The token of somebody who may do everything.
const ADMIN: &str = "admin";

/// Plays a test.
pub fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(test);
}

pub struct World {
    server: ApiServer,
    collecting: JoinHandle<()>,
}

pub struct Home(String);

impl Home {
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl World {
    pub async fn shared() -> Self {
        Self::own().await
    }

    pub async fn own() -> Self {
        let clock = Arc::new(TokioClock::default());
        let tokens = [(ADMIN.to_owned(), User::admin())].into();
        let settings = Settings { clock, seed: Some(1), trusts_all: false, tokens, ..Settings::default() };
        let server = ApiServer::start(settings).await.unwrap();
        let collector = server.clone();
        Self { server, collecting: tokio::spawn(async move { collector.collect().await }) }
    }

    pub fn unique(&self) -> String {
        "0".to_owned()
    }

    pub fn clock(&self) -> Arc<dyn Clock> {
        self.server.clock()
    }

    pub fn client(&self) -> Client {
        self.with_headers(&[("authorization", format!("Bearer {ADMIN}"))])
    }

    pub async fn install_crds(&self, crds: &[CustomResourceDefinition]) {
        let api = Api::<CustomResourceDefinition>::all(self.client());
        for crd in crds {
            api.patch(&crd.name_any(), &PatchParams::apply("test").force(), &Patch::Apply(crd)).await.unwrap();
        }
    }

    pub async fn namespace(&self, prefix: &str) -> Home {
        let metadata = ObjectMeta { name: Some(prefix.to_owned()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        Api::all(self.client()).create(&PostParams::default(), &namespace).await.unwrap();
        // What the controller of service accounts would do.
        let metadata = ObjectMeta { name: Some("default".into()), ..ObjectMeta::default() };
        let account = ServiceAccount { metadata, ..ServiceAccount::default() };
        Api::namespaced(self.client(), prefix).create(&PostParams::default(), &account).await.unwrap();
        Home(prefix.to_owned())
    }

    pub async fn client_as(&self, user: &str, groups: &[&str]) -> Client {
        let mut headers = vec![("authorization", format!("Bearer {ADMIN}")), ("impersonate-user", user.to_owned())];
        headers.extend(groups.iter().map(|group| ("impersonate-group", (*group).to_owned())));
        self.with_headers(&headers)
    }

    pub async fn client_for_service_account(&self, namespace: &str, name: &str) -> Client {
        let spec = Some(TokenRequestSpec::default());
        let request = TokenRequest { spec, ..TokenRequest::default() };
        let accounts = Api::<ServiceAccount>::namespaced(self.client(), namespace);
        let made = accounts.create_token_request(name, &PostParams::default(), &request).await.unwrap();
        self.with_headers(&[("authorization", format!("Bearer {}", made.status.unwrap().token.unwrap()))])
    }

    /// From now on nobody collects garbage.
    pub async fn stop_collecting(&mut self) {
        self.collecting.abort();
    }

    pub fn operator(&self, wrap: Wrap) -> Operator {
        let stop = CancellationToken::new();
        let (token, clock, client) = (stop.clone(), self.clock(), wrap(self.client()));
        let task = tokio::spawn(async move {
            process::operate(client, clock, operator_options("embedded"), token).await.unwrap();
        });
        Operator { stop, task: Some(task) }
    }

    pub fn clean(&self, _label: String) {}

    fn with_headers(&self, headers: &[(&'static str, String)]) -> Client {
        let (server, headers) = (self.server.clone(), headers.to_vec());
        let send = move |mut request: http::Request<Body>| {
            for (name, value) in &headers {
                // Names may be written in any script; a header carries bytes.
                request.headers_mut().append(*name, http::HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
            let server = server.clone();
            async move { Ok::<_, std::convert::Infallible>(server.answer(request).await) }
        };
        Client::new(tower::service_fn(send), "default")
    }
}

pub struct Operator {
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl Operator {
    pub async fn stop(mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            task.await.unwrap();
        }
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
