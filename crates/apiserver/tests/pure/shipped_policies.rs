// SPDX-License-Identifier: Apache-2.0
//! What we ship works on this server: every definition and every policy is accepted, and the policies are enforced.

use std::{fs, path::Path};

use bivouac_apiserver::{ApiServer, Settings};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

struct Server(ApiServer);

impl Server {
    async fn start() -> Self {
        Self(ApiServer::start(Settings { seed: Some(1), ..Settings::default() }).await.unwrap())
    }

    /// Sends a request as somebody; the administrator is nobody in particular.
    async fn send(&self, method: Method, path: &str, who: &str, body: &Value) -> (u16, Value) {
        let kind = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let mut request = Request::builder().method(method).uri(path).header("content-type", kind);
        if !who.is_empty() {
            request = request.header("impersonate-user", who);
        }
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let response = self.0.answer(request.body(Full::new(Bytes::from(body))).unwrap()).await;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    async fn create(&self, path: &str, object: &Value) {
        let (code, answer) = self.send(Method::POST, path, "", object).await;
        assert_eq!(code, 201, "{} {}: {answer}", object["kind"], object["metadata"]["name"]);
    }

    async fn install(&self) -> usize {
        let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
        let mut files: Vec<_> = fs::read_dir(deploy.join("crds")).unwrap().map(|file| file.unwrap().path()).collect();
        files.sort();
        for file in &files {
            for definition in documents(file) {
                self.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
            }
        }
        let policies = documents(&deploy.join("policies.yaml"));
        for policy in &policies {
            let kind = policy["kind"].as_str().unwrap().to_lowercase();
            let plural = match kind.strip_suffix("policy") {
                Some(stem) => format!("{stem}policies"),
                None => format!("{kind}s"),
            };
            self.create(&format!("/apis/admissionregistration.k8s.io/v1/{plural}"), policy).await;
        }
        policies.len()
    }
}

fn documents(file: &Path) -> Vec<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(&fs::read_to_string(file).unwrap()).unwrap();
    documents.into_iter().filter(|document| !document.is_null()).collect()
}

const WORKSPACES: &str = "/apis/tenant.otterscale.io/v1alpha1/workspaces";

async fn grant(server: &Server, who: &str, groups: &[&str], resources: &[&str]) {
    let name = who.replace(':', "-");
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let rules = json!([{ "apiGroups": groups, "resources": resources, "verbs": ["*"] }]);
    server.create(&format!("{rbac}/clusterroles"), &json!({ "metadata": { "name": name }, "rules": rules })).await;
    let binding = json!({
        "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
        "subjects": [{ "kind": "User", "name": who, "apiGroup": "rbac.authorization.k8s.io" }],
    });
    server.create(&format!("{rbac}/clusterrolebindings"), &binding).await;
}

fn workspace(name: &str, admin: &str) -> Value {
    json!({
        "apiVersion": "tenant.otterscale.io/v1alpha1",
        "kind": "Workspace",
        "metadata": { "name": name },
        "spec": { "namespace": name, "members": [{ "role": "admin", "subject": admin }] },
    })
}

#[tokio::test]
async fn everything_we_ship_is_accepted() {
    let server = Server::start().await;
    assert!(server.install().await >= 10);
}

#[tokio::test]
async fn only_members_change_a_workspace() {
    let server = Server::start().await;
    server.install().await;
    for who in ["alice", "bob"] {
        grant(&server, who, &["tenant.otterscale.io"], &["workspaces"]).await;
    }
    let (code, answer) = server.send(Method::POST, WORKSPACES, "alice", &workspace("camp", "alice")).await;
    assert_eq!(code, 201, "{answer}");
    assert_eq!(answer["metadata"]["labels"]["user.otterscale.io/alice"], "true", "{answer}");

    let change = json!({ "metadata": { "annotations": { "by": "somebody" } } });
    let path = format!("{WORKSPACES}/camp");
    // The wildcard verb of the grant covers "administer", so bob needs a grant without it to be refused.
    let rules = json!([{ "apiGroups": ["tenant.otterscale.io"], "resources": ["workspaces"], "verbs": ["get", "patch", "delete"] }]);
    let role = json!({ "rules": rules });
    let (code, answer) =
        server.send(Method::PATCH, "/apis/rbac.authorization.k8s.io/v1/clusterroles/bob", "", &role).await;
    assert_eq!(code, 200, "{answer}");
    let (code, answer) = server.send(Method::PATCH, &path, "bob", &change).await;
    assert_eq!(code, 403, "{answer}");
    assert!(answer["message"].as_str().unwrap().ends_with("; bob is not one of them"), "{answer}");
    let (code, answer) = server.send(Method::PATCH, &path, "alice", &change).await;
    assert_eq!(code, 200, "{answer}");
}

#[tokio::test]
async fn a_protected_workspace_stays() {
    let server = Server::start().await;
    server.install().await;
    let mut protected = workspace("camp", "alice");
    protected["metadata"]["annotations"] = json!({ "bivouac.dev/deletion-protection": "true" });
    server.create(WORKSPACES, &protected).await;
    let path = format!("{WORKSPACES}/camp");
    let (code, answer) = server.send(Method::DELETE, &path, "", &Value::Null).await;
    assert_eq!(code, 403, "{answer}");
    let free = json!({ "metadata": { "annotations": { "bivouac.dev/deletion-protection": null } } });
    let (code, answer) = server.send(Method::PATCH, &path, "", &free).await;
    assert_eq!(code, 200, "{answer}");
    let (code, answer) = server.send(Method::DELETE, &path, "", &Value::Null).await;
    assert_eq!(code, 200, "{answer}");
}

#[tokio::test]
async fn a_lead_broker_is_made_with_its_index() {
    let server = Server::start().await;
    server.install().await;
    let account = json!({ "metadata": { "name": "default" } });
    server.create("/api/v1/namespaces/default/serviceaccounts", &account).await;
    for (app, rank, label) in
        [("flux-operator", "0", json!("0")), ("flux-operator", "1", json!(null)), ("web", "0", json!(null))]
    {
        let labels = json!({ "app": app, "batch.kubernetes.io/job-completion-index": rank });
        let pod = json!({
            "metadata": { "generateName": "flux-", "labels": labels },
            "spec": { "containers": [{ "name": "flux", "image": "flux" }] },
        });
        let (code, made) = server.send(Method::POST, "/api/v1/namespaces/default/pods", "", &pod).await;
        assert_eq!((code, &made["metadata"]["labels"]["job-index"]), (201, &label), "{app} {rank}: {made}");
    }
}
