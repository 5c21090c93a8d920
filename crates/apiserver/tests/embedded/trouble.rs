// SPDX-License-Identifier: Apache-2.0
//! Clients that behave badly, and too much of everything.

use std::time::Duration;

use bivouac_apiserver::{
    ApiServer, BODY_LIMIT, Body, Settings,
    store::{Limits, Store},
};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn server(limits: Limits) -> ApiServer {
    let settings = Settings { store: Store::in_memory(limits), seed: Some(7), ..Settings::default() };
    ApiServer::start(settings).await.unwrap()
}

async fn send(server: &ApiServer, method: &str, path: &str, body: impl Into<Bytes>) -> Response<Body> {
    let request = Request::builder().method(method).uri(path).body(Full::new(body.into())).unwrap();
    server.answer(request).await
}

async fn json_of(response: Response<Body>) -> Value {
    serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
}

fn map(name: &str, text: &str) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": text}}).to_string()
}

async fn create(server: &ApiServer, name: &str, text: &str) {
    let answer = send(server, "POST", MAPS, map(name, text)).await;
    assert_eq!(answer.status(), StatusCode::CREATED);
}

/// The next line of a watch.
async fn event(body: &mut Body) -> Option<Value> {
    let frame = tokio::time::timeout(Duration::from_secs(5), body.frame()).await.expect("an event in time")?;
    let bytes = frame.unwrap().into_data().unwrap();
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap().to_vec();
    Some(serde_json::from_slice(&line).unwrap())
}

#[tokio::test]
async fn a_watch_that_stops_reading_costs_nothing_and_is_told_that_it_is_too_late() {
    let server = server(Limits { events: 100, ..Limits::default() }).await;
    let path = format!("{MAPS}?watch=true&resourceVersion={}", server.store().revision());
    let mut slow = send(&server, "GET", &path, "").await.into_body();
    for n in 0..1_000 {
        create(&server, &format!("map-{n}"), &"x".repeat(1_000)).await;
    }
    let told = event(&mut slow).await.expect("a last event");
    assert_eq!((told["type"].as_str(), told["object"]["code"].as_u64()), (Some("ERROR"), Some(410)), "{told}");
    assert_eq!(told["object"]["reason"], "Expired");
    assert!(event(&mut slow).await.is_none(), "the watch ends");
    let list = json_of(send(&server, "GET", MAPS, "").await).await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1_000, "nobody else notices");
}

#[tokio::test]
async fn a_thousand_watches_see_every_change() {
    let server = server(Limits::default()).await;
    let path = format!("{MAPS}?watch=true&resourceVersion={}", server.store().revision());
    let mut watches = Vec::new();
    for _ in 0..1_000 {
        watches.push(send(&server, "GET", &path, "").await.into_body());
    }
    create(&server, "one", "x").await;
    for watch in &mut watches {
        let seen = event(watch).await.unwrap();
        assert_eq!((seen["type"].as_str(), seen["object"]["metadata"]["name"].as_str()), (Some("ADDED"), Some("one")));
    }
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused_without_being_read() {
    let server = server(Limits::default()).await;
    let answer = send(&server, "POST", MAPS, vec![b' '; BODY_LIMIT + 1]).await;
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let status = json_of(answer).await;
    assert_eq!(status["message"], format!("Request entity too large: limit is {BODY_LIMIT}"));
    assert_eq!(status["reason"], "RequestEntityTooLarge");
}

#[tokio::test]
async fn nesting_without_end_is_refused_and_hurts_nobody() {
    let server = server(Limits::default()).await;
    for depth in [200, 5_000, 100_000] {
        let deep = format!("{{\"data\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        for kind in ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"] {
            let request =
                Request::post(MAPS).header("content-type", kind).body(Full::new(Bytes::from(deep.clone()))).unwrap();
            let answer = server.answer(request).await;
            assert!(answer.status().is_client_error(), "{kind} {depth}: {}", answer.status());
        }
        let patch = Request::patch(format!("{MAPS}/a")).header("content-type", "application/merge-patch+json");
        let answer = server.answer(patch.body(Full::new(Bytes::from(deep))).unwrap()).await;
        assert!(answer.status().is_client_error(), "{depth}: {}", answer.status());
    }
    create(&server, "after", "all").await;
}

#[tokio::test]
async fn a_client_that_vanishes_in_the_middle_leaves_a_whole_server() {
    let server = server(Limits::default()).await;
    for n in 0..200 {
        let name = format!("map-{n}");
        let mut request = Box::pin(send(&server, "POST", MAPS, map(&name, "x")));
        // Looked at once and then dropped, wherever it is.
        let _ = futures::poll!(&mut request);
        drop(request);
        let watch = format!("{MAPS}?watch=true");
        drop(send(&server, "GET", &watch, "").await);
    }
    let list = json_of(send(&server, "GET", MAPS, "").await).await;
    for item in list["items"].as_array().unwrap() {
        assert!(item["metadata"]["uid"].is_string(), "what is there is whole: {item}");
    }
    create(&server, "after", "all").await;
}

#[tokio::test]
async fn a_revision_that_history_has_dropped_is_gone() {
    let server = server(Limits::default()).await;
    create(&server, "one", "x").await;
    let old = server.store().revision();
    for n in 0..10 {
        create(&server, &format!("map-{n}"), "x").await;
    }
    server.store().compact(server.store().revision());
    let exact = format!("{MAPS}?resourceVersion={old}&resourceVersionMatch=Exact");
    let status = json_of(send(&server, "GET", &exact, "").await).await;
    assert_eq!((status["code"].as_u64(), status["reason"].as_str()), (Some(410), Some("Expired")));
    let mut watch = send(&server, "GET", &format!("{MAPS}?watch=true&resourceVersion={old}"), "").await.into_body();
    assert_eq!(event(&mut watch).await.unwrap()["object"]["code"], 410);
}

#[tokio::test]
async fn numbers_about_the_server_can_be_read() {
    let server = server(Limits::default()).await;
    create(&server, "one", "x").await;
    let answer = send(&server, "GET", "/metrics", "").await;
    let text = String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap();
    for line in [
        "apiserver_request_total{verb=\"POST\",code=\"201\"} 1",
        "apiserver_resource_objects{group=\"\",resource=\"configmaps\"} 1",
        &format!("bivouac_apiserver_revision {}", server.store().revision()),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in:\n{text}");
    }
    let index = json_of(send(&server, "GET", "/", "").await).await;
    let paths = index["paths"].as_array().unwrap();
    assert!(paths.contains(&json!("/apis/apps/v1")) && paths.contains(&json!("/metrics")), "{index}");
}
