// SPDX-License-Identifier: Apache-2.0
//! What the rules of kinds do over time: budgets are charged, addresses are given once, logs come from outside.

use std::{collections::BTreeSet, net::Ipv4Addr, sync::Arc};

use bivouac_apiserver::{
    ApiServer, Logs, ServiceRange, Settings,
    store::{Limits, Store},
};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/api/v1/namespaces/default/services";

async fn send(server: &ApiServer, method: Method, path: &str, body: Value) -> (u16, Value) {
    let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder().method(method).uri(path).header("content-type", kind);
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let response = server.answer(request.body(Full::new(body)).unwrap()).await;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let text = || Value::from(String::from_utf8_lossy(&bytes).into_owned());
    (code, serde_json::from_slice(&bytes).unwrap_or_else(|_| text()))
}

async fn running_pod(server: &ApiServer, name: &str) {
    // Pods need the account that a controller makes.
    let account = json!({ "metadata": { "name": "default" } });
    send(server, Method::POST, "/api/v1/namespaces/default/serviceaccounts", account).await;
    let spec = json!({ "nodeName": "n1", "containers": [{ "name": "c", "image": "i" }] });
    let pod = json!({ "metadata": { "name": name, "labels": { "app": "a" } }, "spec": spec });
    let (code, answer) = send(server, Method::POST, PODS, pod).await;
    assert_eq!(code, 201, "{answer}");
    let status = json!({ "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] } });
    assert_eq!(send(server, Method::PATCH, &format!("{PODS}/{name}/status"), status).await.0, 200);
}

#[tokio::test]
async fn an_eviction_takes_one_disruption_out_of_the_budget() {
    const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let server = ApiServer::start(Settings::default()).await.unwrap();
    running_pod(&server, "p").await;
    running_pod(&server, "q").await;
    let selector = json!({ "matchLabels": { "app": "a" } });
    let budget = json!({ "metadata": { "name": "b" }, "spec": { "minAvailable": 1, "selector": selector } });
    assert_eq!(send(&server, Method::POST, BUDGETS, budget).await.0, 201);
    let evict = |name: &str| json!({ "metadata": { "name": name } });
    // Nobody has looked at the budget yet.
    let (code, answer) = send(&server, Method::POST, &format!("{PODS}/p/eviction"), evict("p")).await;
    assert_eq!((code, &answer["details"]["retryAfterSeconds"]), (429, &json!(10)), "{answer}");
    let status = json!({ "status": { "observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2 } });
    assert_eq!(send(&server, Method::PATCH, &format!("{BUDGETS}/b/status"), status).await.0, 200);
    assert_eq!(send(&server, Method::POST, &format!("{PODS}/p/eviction"), evict("p")).await.0, 201);
    let (_, budget) = send(&server, Method::GET, &format!("{BUDGETS}/b"), Value::Null).await;
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
    assert!(budget["status"]["disruptedPods"]["p"].is_string(), "{budget}");
    assert_eq!(budget["status"]["conditions"][0]["reason"], "InsufficientPods");
    let (_, pod) = send(&server, Method::GET, &format!("{PODS}/p"), Value::Null).await;
    assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 30);
    let (code, answer) = send(&server, Method::POST, &format!("{PODS}/q/eviction"), evict("q")).await;
    let why = "The disruption budget b needs 1 healthy pods and has 2 currently";
    assert_eq!((code, &answer["details"]["causes"][0]["message"]), (429, &json!(why)), "{answer}");
    // A pod that does not work may always go if the budget says so.
    send(
        &server,
        Method::PATCH,
        &format!("{BUDGETS}/b"),
        json!({ "spec": { "unhealthyPodEvictionPolicy": "AlwaysAllow" } }),
    )
    .await;
    let unready = json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } });
    send(&server, Method::PATCH, &format!("{PODS}/q/status"), unready).await;
    assert_eq!(send(&server, Method::POST, &format!("{PODS}/q/eviction"), evict("q")).await.0, 201);
}

/// Fourteen addresses, of which the server itself has one.
fn narrow(store: Store) -> Settings {
    Settings { store, service_range: ServiceRange(Ipv4Addr::new(10, 0, 0, 0), 28), ..Settings::default() }
}

async fn create_services(server: &ApiServer, count: usize) -> Vec<(u16, Value)> {
    let mut writers = tokio::task::JoinSet::new();
    for index in 0..count {
        let server = server.clone();
        writers.spawn(async move {
            let spec = json!({ "type": "NodePort", "ports": [{ "port": 80 }] });
            let service = json!({ "metadata": { "name": format!("s{index}") }, "spec": spec });
            send(&server, Method::POST, SERVICES, service).await
        });
    }
    writers.join_all().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_are_given_once_and_known_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let server = ApiServer::start(narrow(Store::open(folder.path(), Limits::default()).unwrap())).await.unwrap();
    let answers = create_services(&server, 30).await;
    let made: Vec<&Value> = answers.iter().filter(|(code, _)| *code == 201).map(|(_, service)| service).collect();
    let addresses: BTreeSet<&str> = made.iter().filter_map(|one| one["spec"]["clusterIP"].as_str()).collect();
    let ports: BTreeSet<i64> = made.iter().filter_map(|one| one["spec"]["ports"][0]["nodePort"].as_i64()).collect();
    assert_eq!((made.len(), addresses.len(), ports.len()), (13, 13, 13));
    let refused: BTreeSet<u16> = answers.iter().map(|(code, _)| *code).filter(|code| *code != 201).collect();
    assert_eq!(refused, [500].into());
    let (name, address) = (made[0]["metadata"]["name"].clone(), made[0]["spec"]["clusterIP"].clone());
    drop(server);
    let server = ApiServer::start(narrow(Store::open(folder.path(), Limits::default()).unwrap())).await.unwrap();
    let again = json!({ "metadata": { "name": "again" }, "spec": { "clusterIP": address, "ports": [{ "port": 80 }] } });
    let (code, answer) = send(&server, Method::POST, SERVICES, again.clone()).await;
    assert_eq!(code, 422, "{answer}");
    assert!(answer["message"].as_str().unwrap().ends_with("provided IP is already allocated"), "{answer}");
    send(&server, Method::DELETE, &format!("{SERVICES}/{}", name.as_str().unwrap()), Value::Null).await;
    assert_eq!(send(&server, Method::POST, SERVICES, again).await.0, 201);
}

#[derive(Debug)]
struct Echo;

impl Logs for Echo {
    fn read(&self, pod: &Value, container: &str) -> Option<String> {
        Some(format!("one\ntwo\n{} {container}\n", pod["metadata"]["name"].as_str()?))
    }
}

#[tokio::test]
async fn logs_come_from_whoever_stands_in_for_nodes() {
    let server = ApiServer::start(Settings { logs: Some(Arc::new(Echo)), ..Settings::default() }).await.unwrap();
    running_pod(&server, "p").await;
    let whole = send(&server, Method::GET, &format!("{PODS}/p/log"), Value::Null).await;
    assert_eq!(whole, (200, json!("one\ntwo\np c\n")));
    let last = send(&server, Method::GET, &format!("{PODS}/p/log?container=c&tailLines=1"), Value::Null).await;
    assert_eq!(last, (200, json!("p c\n")));
}
