// SPDX-License-Identifier: Apache-2.0
//! A fork begins as its original is, and from then on neither sees the other.

use std::{sync::Arc, time::Instant};

use bivouac_apiserver::{ApiServer, ForkSettings, Settings, store::Keyspace};
use bivouac_core::ManualClock;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const TENTS: &str = "/apis/camp.example/v1/namespaces/default/tents";
const SERVICES: &str = "/api/v1/namespaces/default/services";

async fn send(server: &ApiServer, method: Method, path: &str, body: Value) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let response = server.answer(request.body(Full::new(body)).unwrap()).await;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

async fn create(server: &ApiServer, path: &str, object: Value) -> Value {
    let (code, answer) = send(server, Method::POST, path, object).await;
    assert_eq!(code, 201, "{answer}");
    answer
}

async fn names(server: &ApiServer, path: &str) -> Vec<String> {
    let (code, list) = send(server, Method::GET, path, Value::Null).await;
    assert_eq!(code, 200, "{list}");
    list["items"].as_array().unwrap().iter().map(|one| one["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

fn definition(plural: &str, kind: &str) -> Value {
    let people = json!({ "type": "integer", "default": 2 });
    let rule = json!([{ "rule": "self.people < 5", "message": "too many" }]);
    let spec = json!({ "type": "object", "default": {}, "properties": { "people": people }, "x-kubernetes-validations": rule });
    let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } });
    json!({
        "metadata": { "name": format!("{plural}.camp.example") },
        "spec": {
            "group": "camp.example", "scope": "Namespaced",
            "names": { "plural": plural, "singular": plural, "kind": kind, "listKind": format!("{kind}List") },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
        },
    })
}

fn named(name: &str) -> Value {
    json!({ "apiVersion": "camp.example/v1", "kind": "Tent", "metadata": { "name": name } })
}

fn service(name: &str, address: Option<&Value>) -> Value {
    json!({ "metadata": { "name": name }, "spec": { "clusterIP": address, "ports": [{ "port": 1 }] } })
}

fn fork(server: &ApiServer, seed: u64) -> ApiServer {
    server.fork(ForkSettings { clock: Arc::new(ManualClock::default()), seed: Some(seed) })
}

async fn prepared() -> ApiServer {
    let server = ApiServer::start(Settings { seed: Some(1), ..Settings::default() }).await.unwrap();
    create(&server, DEFINITIONS, definition("tents", "Tent")).await;
    create(&server, TENTS, named("before")).await;
    server
}

#[tokio::test]
async fn neither_sees_what_the_other_writes() {
    let server = prepared().await;
    let copy = fork(&server, 2);
    assert_eq!(copy.store().revision(), server.store().revision());
    let tents = Keyspace::new("camp.example", "tents");
    let mut watcher = server.store().watch(&tents, server.store().revision()).unwrap();
    let made = create(&copy, TENTS, named("in-copy")).await;
    create(&server, TENTS, named("in-original")).await;
    assert_eq!(names(&copy, TENTS).await, ["before", "in-copy"]);
    assert_eq!(names(&server, TENTS).await, ["before", "in-original"]);
    assert_eq!(made["metadata"]["creationTimestamp"], "1970-01-01T00:00:00Z", "the fork has its own clock");
    let seen = watcher.next_batch(9).await.unwrap();
    assert_eq!(seen.iter().map(|event| event.now.key()).collect::<Vec<_>>(), ["default/in-original"]);
    let again = create(&fork(&server, 2), TENTS, named("in-copy")).await;
    assert_eq!(again["metadata"]["uid"], made["metadata"]["uid"], "uids follow from the seed");
}

#[tokio::test]
async fn a_fork_keeps_its_history_and_its_kinds() {
    let server = prepared().await;
    let copy = fork(&server, 2);
    let tents = Keyspace::new("camp.example", "tents");
    let events = copy.store().watch(&tents, 1).unwrap().ready(9).unwrap();
    assert_eq!(events.len(), 1, "the history came along");
    assert_eq!(create(&copy, TENTS, named("a")).await["spec"]["people"], 2, "defaults still hold");
    let mut crowd = named("b");
    crowd["spec"] = json!({ "people": 9 });
    assert_eq!(send(&copy, Method::POST, TENTS, crowd).await.0, 422, "rules still hold");
    // Each goes on to define kinds of its own.
    create(&copy, DEFINITIONS, definition("stoves", "Stove")).await;
    let stoves = TENTS.replace("tents", "stoves");
    assert!(names(&copy, &stoves).await.is_empty());
    assert_eq!(send(&server, Method::GET, &stoves, Value::Null).await.0, 404);
    assert_eq!(send(&server, Method::DELETE, &format!("{DEFINITIONS}/tents.camp.example"), Value::Null).await.0, 200);
    assert_eq!(names(&copy, TENTS).await, ["a", "before"]);
}

#[tokio::test]
async fn addresses_and_rights_are_those_of_the_original() {
    let server = prepared().await;
    let taken = create(&server, SERVICES, service("one", None)).await["spec"]["clusterIP"].clone();
    let copy = fork(&server, 2);
    let (code, answer) = send(&copy, Method::POST, SERVICES, service("two", Some(&taken))).await;
    assert_eq!(code, 422, "{answer}");
    assert_eq!(send(&copy, Method::DELETE, &format!("{SERVICES}/one"), Value::Null).await.0, 200);
    create(&copy, SERVICES, service("two", Some(&taken))).await;
    let (code, _) = send(&server, Method::POST, SERVICES, service("two", Some(&taken))).await;
    assert_eq!(code, 422, "the original still has it");
    // A role that only the fork has counts there alone.
    let review = json!({ "spec": { "user": "jo", "resourceAttributes": { "verb": "get", "resource": "pods" } } });
    let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    assert_eq!(create(&copy, reviews, review.clone()).await["status"]["allowed"], false);
    let binding = json!({
        "metadata": { "name": "jo" }, "subjects": [{ "kind": "User", "name": "jo", "apiGroup": "rbac.authorization.k8s.io" }],
        "roleRef": { "kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io" },
    });
    create(&copy, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).await;
    assert_eq!(create(&copy, reviews, review.clone()).await["status"]["allowed"], true);
    assert_eq!(create(&server, reviews, review).await["status"]["allowed"], false);
}

#[tokio::test]
async fn a_fork_is_quick() {
    let server = prepared().await;
    for n in 0..14 {
        create(&server, DEFINITIONS, definition(&format!("kind{n}s"), &format!("Kind{n}"))).await;
    }
    for n in 0..100 {
        create(&server, TENTS, named(&format!("tent-{n}"))).await;
    }
    fork(&server, 0);
    let start = Instant::now();
    for seed in 0..100 {
        drop(fork(&server, seed));
    }
    // Starting a server takes a hundred times as long. The bound leaves room for a busy machine.
    let each = start.elapsed() / 100;
    assert!(each.as_micros() < 5_000, "a fork took {each:?}");
    println!("a fork took {each:?}");
}
