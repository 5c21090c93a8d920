// SPDX-License-Identifier: Apache-2.0
//! A start that cannot succeed says in plain words what is missing and what to do.

use std::path::Path;

use bivouac_runtime::registry;
use bivouac_testenv::{Options, TestCluster};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::operator::{Operator, eventually};

#[tokio::test]
async fn without_a_cluster_it_ends_with_a_sentence() {
    let mut lost = Operator::start(Path::new("/nowhere/kubeconfig"), "default", "lost");
    assert!(!lost.ended(10).await.success());
    assert!(lost.log().contains("no cluster is configured: set KUBECONFIG or pass --kubeconfig"), "{}", lost.log());

    let dir = tempfile::tempdir().unwrap();
    let kubeconfig = dir.path().join("kubeconfig");
    let nobody = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{"name": "x", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}], "users": [{"name": "x", "user": {}}],
    });
    std::fs::write(&kubeconfig, nobody.to_string()).unwrap();
    let mut alone = Operator::start(&kubeconfig, "default", "alone");
    assert!(!alone.ended(90).await.success());
    assert!(alone.log().contains("the API server does not answer yet, trying again"), "{}", alone.log());
    assert!(alone.log().contains("bivouac: the cluster cannot be reached"), "{}", alone.log());
}

#[tokio::test]
async fn missing_crds_and_missing_rights_are_named() {
    let cluster = TestCluster::start(Options { without: vec!["kwok".into()], ..Options::default() }).await.unwrap();
    let client = cluster.client();

    let early = Operator::start(cluster.kubeconfig(), "default", "early");
    waits_for(&early, "the CRD workspaces.tenant.otterscale.io: install it with `bivouac crds").await;
    drop(early);

    apply(&client, "v1", "ServiceAccount", json!({})).await;
    let account = cluster.client_for_service_account("default", "startup").await.unwrap();
    let mut refused = Operator::start(account.kubeconfig(), "default", "refused");
    assert!(!refused.ended(60).await.success());
    let said = refused.log();
    assert!(said.contains("the cluster refuses us") && said.contains("bivouac rbac"), "{said}");

    cluster.install_crds(&bivouac_api::crds()).await.unwrap();
    let every = bivouac::operator::controllers(&bivouac::cli::ControllerOptions::default());
    let rights = every.into_iter().flat_map(|one| (one.rbac)());
    let mut rules = [registry::base_rules(), registry::lease_rules(), rights.collect()].concat();
    rules.retain(|rule: &PolicyRule| rule.resources.iter().flatten().all(|resource| resource != "rolebindings"));
    apply(&client, "rbac.authorization.k8s.io/v1", "ClusterRole", json!({ "rules": rules })).await;
    let subject = json!({"kind": "ServiceAccount", "name": "startup", "namespace": "default"});
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "startup"});
    let binding = json!({"roleRef": role, "subjects": [subject]});
    apply(&client, "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", binding).await;
    // A new right counts a moment after it is given.
    eventually("the operator may at least start", 30, async || {
        let operator = Operator::start(account.kubeconfig(), "default", "halfway");
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
        operator.get("/healthz").ok().map(|_| operator)
    })
    .await;
    let halfway = Operator::start(account.kubeconfig(), "default", "halfway");
    waits_for(&halfway, "rolebindings (rolebindings.rbac.authorization.k8s.io is forbidden").await;
    assert!(halfway.log().contains("a right is missing"), "{}", halfway.log());
}

async fn waits_for(operator: &Operator, words: &str) {
    eventually(words, 60, async || {
        let answer = operator.get("/readyz").unwrap_or_default();
        (answer.starts_with("HTTP/1.1 503") && answer.contains(words)).then_some(())
    })
    .await;
}

/// Applies an object called `startup`, in the namespace `default` where it has one.
async fn apply(client: &Client, api_version: &str, kind: &str, mut body: Value) {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api: Api<DynamicObject> = if kind.starts_with("Cluster") {
        Api::all_with(client.clone(), &resource)
    } else {
        Api::namespaced_with(client.clone(), "default", &resource)
    };
    let head = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "startup"}});
    if let (Some(body), Value::Object(head)) = (body.as_object_mut(), head) {
        body.extend(head);
    }
    api.patch("startup", &PatchParams::apply("test"), &Patch::Apply(&body)).await.unwrap();
}
