// SPDX-License-Identifier: Apache-2.0
//! A server that does not trust everybody: tokens, anonymous users, and who may speak for whom.

use std::{collections::BTreeMap, sync::Arc};

use bivouac_apiserver::{
    ApiServer, Settings, User,
    store::{Limits, Store},
};
use bivouac_core::ManualClock;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use jiff::SignedDuration;
use serde_json::{Value, json};

const ROOT: &str = "root-token";

struct Server(ApiServer);

async fn start(store: Store, clock: &Arc<ManualClock>) -> Server {
    let root = User { name: "root".into(), groups: vec!["system:masters".into()], ..User::default() };
    let settings = Settings {
        store,
        clock: clock.clone(),
        seed: Some(7),
        trusts_all: false,
        tokens: BTreeMap::from([(ROOT.to_owned(), root)]),
        ..Settings::default()
    };
    Server(ApiServer::start(settings).await.unwrap())
}

impl Server {
    async fn send(
        &self,
        method: Method,
        path: &str,
        token: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> (u16, Value) {
        let mut request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let response = self.0.answer(request.body(Full::new(Bytes::from(body))).unwrap()).await;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    async fn create(&self, path: &str, object: Value) -> Value {
        let (code, answer) = self.send(Method::POST, path, ROOT, &[], &object).await;
        assert_eq!(code, 201, "{answer}");
        answer
    }

    async fn get(&self, path: &str, token: &str) -> (u16, Value) {
        self.send(Method::GET, path, token, &[], &Value::Null).await
    }

    /// A token of a service account that may list pods in its namespace.
    async fn account(&self) -> String {
        self.create("/api/v1/namespaces/default/serviceaccounts", json!({ "metadata": { "name": "robot" } })).await;
        let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
        let rules = json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["list"] }]);
        self.create(&format!("{rbac}/roles"), json!({ "metadata": { "name": "r" }, "rules": rules })).await;
        let binding = json!({
            "metadata": { "name": "r" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r" },
            "subjects": [{ "kind": "ServiceAccount", "name": "robot", "namespace": "default" }],
        });
        self.create(&format!("{rbac}/rolebindings"), binding).await;
        let path = "/api/v1/namespaces/default/serviceaccounts/robot/token";
        let request = self.create(path, json!({ "spec": { "expirationSeconds": 600 } })).await;
        request["status"]["token"].as_str().unwrap().to_owned()
    }
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap()))
}

const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test]
async fn a_token_decides_who_asks() {
    let server = start(Store::in_memory(Limits::default()), &clock()).await;
    let (code, answer) = server.get(PODS, "").await;
    assert_eq!(code, 403, "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("User \"system:anonymous\""), "{answer}");
    assert_eq!(server.get("/version", "").await.0, 200);
    assert_eq!(server.get(PODS, "nonsense").await.0, 401);
    assert_eq!(server.get(PODS, ROOT).await.0, 200);

    let token = server.account().await;
    assert_eq!(server.get(PODS, &token).await.0, 200);
    assert_eq!(server.get("/api/v1/namespaces/default/secrets", &token).await.0, 403);
    // The signature covers every letter.
    let forged = token.replacen("eyJ", "eyK", 1);
    assert_eq!(server.get(PODS, &forged).await.0, 401);
}

#[tokio::test]
async fn a_token_ends_with_its_time_and_its_account() {
    let clock = clock();
    let server = start(Store::in_memory(Limits::default()), &clock).await;
    let token = server.account().await;
    clock.advance(SignedDuration::from_secs(599));
    assert_eq!(server.get(PODS, &token).await.0, 200);
    clock.advance(SignedDuration::from_secs(1));
    assert_eq!(server.get(PODS, &token).await.0, 401);

    let path = "/api/v1/namespaces/default/serviceaccounts/robot";
    let fresh =
        server.create(&format!("{path}/token"), json!({})).await["status"]["token"].as_str().unwrap().to_owned();
    assert_eq!(server.get(PODS, &fresh).await.0, 200);
    server.send(Method::DELETE, path, ROOT, &[], &Value::Null).await;
    assert_eq!(server.get(PODS, &fresh).await.0, 401);
}

#[tokio::test]
async fn a_token_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let clock = clock();
    let token = {
        let server = start(Store::open(folder.path(), Limits::default()).unwrap(), &clock).await;
        server.account().await
    };
    let server = start(Store::open(folder.path(), Limits::default()).unwrap(), &clock).await;
    assert_eq!(server.get(PODS, &token).await.0, 200);
}

#[tokio::test]
async fn the_same_seed_gives_the_same_token() {
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let server = start(Store::in_memory(Limits::default()), &clock()).await;
        tokens.push(server.account().await);
    }
    assert_eq!(tokens[0], tokens[1]);
}

#[tokio::test]
async fn nobody_speaks_for_others_without_a_right_to() {
    let server = start(Store::in_memory(Limits::default()), &clock()).await;
    let token = server.account().await;
    let who = [("impersonate-user", "root")];
    let (code, answer) = server.send(Method::GET, PODS, &token, &who, &Value::Null).await;
    assert_eq!(code, 403, "{answer}");
    let expected =
        "cannot impersonate-on:user-info:list resource \"pods\" in API group \"\" in the namespace \"default\"";
    assert!(answer["message"].as_str().unwrap().ends_with(expected), "{answer}");

    let rules = json!([
        { "apiGroups": [""], "resources": ["users"], "resourceNames": ["alice"], "verbs": ["impersonate"] },
    ]);
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    server.create(&format!("{rbac}/clusterroles"), json!({ "metadata": { "name": "speaks" }, "rules": rules })).await;
    let binding = json!({
        "metadata": { "name": "speaks" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "speaks" },
        "subjects": [{ "kind": "ServiceAccount", "name": "robot", "namespace": "default" }],
    });
    server.create(&format!("{rbac}/clusterrolebindings"), binding).await;
    let (_, answer) = server.send(Method::GET, PODS, &token, &[("impersonate-user", "alice")], &Value::Null).await;
    assert!(answer["message"].as_str().unwrap().contains("User \"alice\" cannot list"), "{answer}");
    let groups = [("impersonate-user", "alice"), ("impersonate-group", "system:masters")];
    assert_eq!(server.send(Method::GET, PODS, &token, &groups, &Value::Null).await.0, 403);
}
