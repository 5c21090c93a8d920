// SPDX-License-Identifier: Apache-2.0
//! Two candidates, one lease, virtual time.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bivouac_core::clock::SystemClock;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, api::PostParams, client::Body};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Elector, Meanwhile, Settings};
use crate::fence::Fence;

/// An API server that knows one Lease and its resourceVersion, and can be switched off.
#[derive(Clone, Default)]
struct Server {
    lease: Arc<Mutex<Option<Value>>>,
    version: Arc<AtomicU64>,
    down: Arc<AtomicBool>,
}

impl Server {
    fn client(&self) -> Client {
        let server = self.clone();
        let answer = move |request: Request<Body>| {
            let server = server.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(1)).await;
                if server.down.load(Ordering::SeqCst) {
                    return Err(std::io::Error::other("connection refused"));
                }
                let method = request.method().clone();
                let bytes = request.into_body().collect().await.map_err(std::io::Error::other)?.to_bytes();
                let (code, body) = server.answer(&method, serde_json::from_slice(&bytes).ok());
                let response = Response::builder().status(code).body(Body::from(body.to_string().into_bytes()));
                response.map_err(std::io::Error::other)
            }
        };
        Client::new(tower::service_fn(answer), "default")
    }

    fn answer(&self, method: &Method, body: Option<Value>) -> (u16, Value) {
        let mut lease = self.lease.lock().unwrap();
        let refuse = |code: u16| {
            let reason = if code == 404 { "NotFound" } else { "Conflict" };
            (code, json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "no"}))
        };
        let stamp = |mut body: Value| {
            body["metadata"]["resourceVersion"] = json!(self.version.fetch_add(1, Ordering::SeqCst).to_string());
            body
        };
        match (method, body) {
            (&Method::GET, _) => lease.clone().map_or_else(|| refuse(404), |lease| (200, lease)),
            (&Method::POST, Some(body)) if lease.is_none() => (201, lease.insert(stamp(body)).clone()),
            (&Method::PUT, Some(body)) => match &mut *lease {
                Some(live) if live["metadata"]["resourceVersion"] == body["metadata"]["resourceVersion"] => {
                    *live = stamp(body);
                    (200, live.clone())
                }
                Some(_) => refuse(409),
                None => refuse(404),
            },
            _ => refuse(409),
        }
    }

    fn candidate(&self, name: &str) -> (Elector, Fence) {
        let fence = Fence::shut();
        let settings = Settings::new("default", "bivouac", name);
        (Elector::new(self.client(), settings, Arc::new(SystemClock), fence.clone()), fence)
    }

    fn holder(&self) -> Option<String> {
        self.lease.lock().unwrap().as_ref()?["spec"]["holderIdentity"].as_str().map(str::to_owned)
    }
}

/// Whether the fence lets a write pass right now.
async fn writes(fence: &Fence) -> bool {
    let ok = |_: Request<Body>| async {
        Ok::<_, std::convert::Infallible>(Response::new(Body::from(br#"{"metadata":{}}"#.to_vec())))
    };
    let client = fence.guard(Client::new(tower::service_fn(ok), "default"));
    Api::default_namespaced(client).create(&PostParams::default(), &ConfigMap::default()).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn a_free_lease_is_taken_at_once_and_kept() {
    let server = Server::default();
    let (mut elector, fence) = server.candidate("a");
    assert!(!writes(&fence).await);
    elector.acquire(|_| {}).await;
    assert!(writes(&fence).await);
    let held = tokio::time::timeout(Duration::from_secs(3600), elector.hold()).await;
    assert!(held.is_err(), "nobody took it");
    assert!(writes(&fence).await);
}

#[tokio::test(start_paused = true)]
async fn a_second_candidate_waits_until_the_lease_stood_still_for_its_duration() {
    let server = Server::default();
    let (mut first, _) = server.candidate("a");
    first.acquire(|_| {}).await;
    let (mut second, fence) = server.candidate("b");
    let started = Instant::now();
    let mut heard = Vec::new();
    second.acquire(|what| heard.push(what)).await;
    assert!(started.elapsed() >= Duration::from_secs(15), "{:?}", started.elapsed());
    assert!(started.elapsed() < Duration::from_secs(19), "{:?}", started.elapsed());
    assert_eq!(heard[0], Meanwhile::HeldBy("a".to_owned()));
    assert!(writes(&fence).await);
    assert_eq!(server.holder().unwrap(), "b");
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_over_quickly() {
    let server = Server::default();
    let (mut first, fence) = server.candidate("a");
    first.acquire(|_| {}).await;
    first.release().await;
    assert!(!writes(&fence).await);
    let (mut second, _) = server.candidate("b");
    let started = Instant::now();
    second.acquire(|_| {}).await;
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
}

/// The stop comes while a renewal is on its way: it is written, and its answer heard by nobody.
#[tokio::test(start_paused = true)]
async fn a_renewal_that_was_cut_off_does_not_keep_the_lease() {
    let server = Server::default();
    let (mut elector, fence) = server.candidate("a");
    elector.acquire(|_| {}).await;
    server.lease.lock().unwrap().as_mut().unwrap()["metadata"]["resourceVersion"] = json!("999");
    elector.release().await;
    assert_eq!(server.holder(), None);
    assert!(!writes(&fence).await);
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_somebody_else_is_not_given_back() {
    let server = Server::default();
    let (mut elector, _) = server.candidate("a");
    elector.acquire(|_| {}).await;
    {
        let mut lease = server.lease.lock().unwrap();
        let lease = lease.as_mut().unwrap();
        lease["spec"]["holderIdentity"] = json!("thief");
        lease["metadata"]["resourceVersion"] = json!("999");
    }
    elector.release().await;
    assert_eq!(server.holder().unwrap(), "thief");
}

#[tokio::test(start_paused = true)]
async fn without_the_server_writing_stops_before_anybody_else_may_start() {
    let server = Server::default();
    let (mut elector, fence) = server.candidate("a");
    elector.acquire(|_| {}).await;
    let cut = Instant::now();
    server.down.store(true, Ordering::SeqCst);
    elector.hold().await;
    assert!(!writes(&fence).await);
    assert!(cut.elapsed() <= Duration::from_secs(12), "{:?}", cut.elapsed());
    assert!(cut.elapsed() < Duration::from_secs(15), "others may start only then");
}

#[tokio::test(start_paused = true)]
async fn a_stolen_lease_is_noticed_at_the_next_renewal() {
    let server = Server::default();
    let (mut elector, fence) = server.candidate("a");
    elector.acquire(|_| {}).await;
    let stolen = Instant::now();
    {
        let mut lease = server.lease.lock().unwrap();
        let lease = lease.as_mut().unwrap();
        lease["spec"]["holderIdentity"] = json!("thief");
        lease["metadata"]["resourceVersion"] = json!("999");
    }
    elector.hold().await;
    assert!(stolen.elapsed() < Duration::from_secs(5), "{:?}", stolen.elapsed());
    assert!(!writes(&fence).await);
    assert_eq!(server.holder().unwrap(), "thief");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_made_again() {
    let server = Server::default();
    let (mut elector, _) = server.candidate("a");
    elector.acquire(|_| {}).await;
    *server.lease.lock().unwrap() = None;
    assert!(tokio::time::timeout(Duration::from_secs(60), elector.hold()).await.is_err());
    assert_eq!(server.holder().unwrap(), "a");
}
