// SPDX-License-Identifier: Apache-2.0
//! A simulated cluster for one test, on a paused clock.
#![allow(dead_code, reason = "each test binary uses its own part of the stage")]
#![allow(clippy::unwrap_used, reason = "a stage that cannot be built is a failed test")]

use std::{future::Future, sync::Arc, time::Duration};

use bivouac_apiserver::{ApiServer, Settings, TokioClock};
use bivouac_simulator::{Cluster, Part};
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};

pub struct Stage {
    pub server: ApiServer,
    _stop: DropGuard,
}

/// Runs a test in virtual time.
pub fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(test);
}

impl Stage {
    pub async fn new() -> Self {
        Self::with(Part::ALL).await
    }

    pub async fn with(parts: &[Part]) -> Self {
        let settings = Settings { clock: Arc::new(TokioClock::default()), seed: Some(7), ..Settings::default() };
        let server = ApiServer::start(settings).await.unwrap();
        let cluster = Cluster::start(&server, &bivouac_simulator::Settings { parts: parts.to_vec() });
        let stop = CancellationToken::new();
        tokio::spawn(cluster.run(stop.clone()));
        let collecting = server.clone();
        tokio::spawn(stop.clone().run_until_cancelled_owned(async move { collecting.collect().await }));
        Self { server, _stop: stop.drop_guard() }
    }

    /// Lets a minute pass, which is enough for everything that does not wait longer by intent.
    pub async fn settle(&self) {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }

    pub async fn apply(&self, object: Value) -> Value {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api, kind) = (text("/apiVersion"), text("/kind"));
        let namespace = text("/metadata/namespace");
        let root = if api.contains('/') { "apis" } else { "api" };
        let plural = plural(&kind);
        let within = if namespace.is_empty() { String::new() } else { format!("namespaces/{namespace}/") };
        let path = format!("/{root}/{api}/{within}{plural}/{}?fieldManager=test&force=true", text("/metadata/name"));
        let (code, answer) = self.ask(Method::PATCH, &path, "application/apply-patch+yaml", object.to_string()).await;
        assert!(code.is_success(), "{path}: {answer:#}");
        answer
    }

    pub async fn patch(&self, path: &str, patch: Value) -> Value {
        let (code, answer) = self.ask(Method::PATCH, path, "application/merge-patch+json", patch.to_string()).await;
        assert!(code.is_success(), "{path}: {answer:#}");
        answer
    }

    pub async fn get(&self, path: &str) -> Option<Value> {
        let (code, answer) = self.ask(Method::GET, path, "application/json", String::new()).await;
        assert!(code.is_success() || code == StatusCode::NOT_FOUND, "{path}: {answer:#}");
        code.is_success().then_some(answer)
    }

    pub async fn list(&self, path: &str) -> Vec<Value> {
        let list = self.get(path).await.unwrap_or_default();
        list.get("items").and_then(Value::as_array).cloned().unwrap_or_default()
    }

    pub async fn delete(&self, path: &str) {
        let (code, answer) = self.ask(Method::DELETE, path, "application/json", String::new()).await;
        assert!(code.is_success(), "{path}: {answer:#}");
    }

    pub async fn ask(&self, method: Method, path: &str, content: &str, body: String) -> (StatusCode, Value) {
        let request = Request::builder().method(method).uri(path).header("content-type", content);
        let response = self.server.answer(request.body(Full::new(Bytes::from(body))).unwrap()).await;
        let code = response.status();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap_or_default())
    }
}

fn plural(kind: &str) -> String {
    let lower = kind.to_lowercase();
    match lower.as_bytes() {
        [.., b's'] => format!("{lower}es"),
        [.., b'y'] => format!("{}ies", lower.trim_end_matches('y')),
        _ => format!("{lower}s"),
    }
}
