// SPDX-License-Identifier: Apache-2.0
//! Many writers at once never use more than a quota allows, and what is used is counted exactly.

use bivouac_apiserver::{
    ApiServer, Settings,
    store::{Limits, Store},
};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

const WRITERS: usize = 60;
const ROOM: usize = 25;

async fn send(server: &ApiServer, method: Method, path: &str, body: Value) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let response = server.answer(request.body(Full::new(Bytes::from(body.to_string()))).unwrap()).await;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// As many quotas as there are rooms. What fits has to be the same for all.
async fn race(store: Store, rooms: &[usize]) {
    let server = ApiServer::start(Settings { store, ..Settings::default() }).await.unwrap();
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    for (index, room) in rooms.iter().enumerate() {
        let hard = json!({ "configmaps": room.to_string() });
        let quota = json!({ "metadata": { "name": format!("q{index}") }, "spec": { "hard": hard } });
        send(&server, Method::POST, quotas, quota.clone()).await;
        let mut quota = quota;
        quota["status"] = json!({ "hard": hard, "used": { "configmaps": "0" } });
        let (code, answer) = send(&server, Method::PUT, &format!("{quotas}/q{index}/status"), quota).await;
        assert_eq!(code, 200, "{answer}");
    }
    let mut writers = tokio::task::JoinSet::new();
    for index in 0..WRITERS {
        let server = server.clone();
        writers.spawn(async move {
            let object = json!({ "metadata": { "name": format!("c{index}") } });
            send(&server, Method::POST, "/api/v1/namespaces/default/configmaps", object).await.0
        });
    }
    let codes = writers.join_all().await;
    let count = |code: u16| codes.iter().filter(|found| **found == code).count();
    let room = rooms[0];
    assert_eq!((count(201), count(403)), (room, WRITERS - room), "{codes:?}");
    for index in 0..rooms.len() {
        let (_, quota) = send(&server, Method::GET, &format!("{quotas}/q{index}"), Value::Null).await;
        assert_eq!(quota["status"]["used"]["configmaps"], room.to_string(), "q{index}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_is_never_exceeded() {
    race(Store::in_memory(Limits::default()), &[ROOM]).await;
    let folder = tempfile::tempdir().unwrap();
    race(Store::open(folder.path(), Limits::default()).unwrap(), &[ROOM]).await;
}

/// A writer that loses the second must not pay for the first twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_quota_is_charged_once() {
    race(Store::in_memory(Limits::default()), &[WRITERS, WRITERS]).await;
    let folder = tempfile::tempdir().unwrap();
    race(Store::open(folder.path(), Limits::default()).unwrap(), &[WRITERS, WRITERS]).await;
}
