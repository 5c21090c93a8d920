// SPDX-License-Identifier: Apache-2.0
//! The shared cluster: one for all, whoever comes first.

use std::process::Command;
use std::time::Duration;

use bivouac_testenv::TestCluster;
use k8s_openapi::api::core::v1::{Namespace, Secret, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, ListParams, ObjectMeta, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use serde_json::json;

/// Makes this test binary print the server of the shared cluster and nothing else.
const CHILD_ENV: &str = "TESTENV_PRINT_SERVER";

#[tokio::test]
async fn processes_and_tasks_share_one() {
    let ours = TestCluster::shared().await.unwrap();
    if std::env::var_os(CHILD_ENV).is_some() {
        println!("server={}", ours.server());
        return;
    }
    let (a, b) = tokio::join!(TestCluster::shared(), TestCluster::shared());
    assert_eq!(a.unwrap().server(), ours.server());
    assert_eq!(b.unwrap().server(), ours.server());

    let child = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "shared::processes_and_tasks_share_one", "--nocapture"]).env(CHILD_ENV, "1");
        command.stdout(std::process::Stdio::piped()).spawn().unwrap()
    };
    for child in [child(), child()] {
        let output = child.wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(printed.contains(&format!("server={}\n", ours.server())), "{printed}");
    }
    let error = ours.restart("kube-apiserver").await.map(|()| "restarted");
    assert!(error.unwrap_err().to_string().contains("own clusters only"));
}

#[tokio::test]
async fn kubectl_and_helm_run() {
    let cluster = TestCluster::shared().await.unwrap();
    let version = cluster.kubectl(&["version", "-o", "json"]).await.unwrap();
    let version: serde_json::Value = serde_json::from_slice(&version.stdout).unwrap();
    assert_eq!(version["clientVersion"]["gitVersion"], version["serverVersion"]["gitVersion"]);
    let listed = cluster.helm(&["list", "-A", "-o", "json"]).await.unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    assert!(serde_json::from_slice::<Vec<serde_json::Value>>(&listed.stdout).is_ok());
    assert!(!cluster.kubectl(&["get", "nonsense"]).await.unwrap().status.success());
}

#[tokio::test]
async fn namespaces_are_unique_and_go_away() {
    let cluster = TestCluster::shared().await.unwrap();
    let (one, two) = (cluster.namespace("twin").await.unwrap(), cluster.namespace("twin").await.unwrap());
    assert_ne!(one.name(), two.name());
    let name = one.name().to_owned();
    drop(one);
    let gone =
        await_condition(Api::<Namespace>::all(cluster.client()), &name, |found: Option<&Namespace>| found.is_none());
    tokio::time::timeout(Duration::from_secs(20), gone).await.unwrap().unwrap();
}

async fn may_read_secrets(client: &Client, namespace: &str) -> bool {
    Api::<Secret>::namespaced(client.clone(), namespace).list(&ListParams::default()).await.is_ok()
}

async fn whoami(client: &Client) -> (String, Vec<String>) {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let request = http::Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
        .header("Content-Type", "application/json")
        .body(serde_json::to_vec(&review).unwrap())
        .unwrap();
    let answer: serde_json::Value = client.request(request).await.unwrap();
    let user = &answer["status"]["userInfo"];
    (user["username"].as_str().unwrap().into(), serde_json::from_value(user["groups"].clone()).unwrap())
}

#[tokio::test]
async fn identities_are_what_they_say() {
    let cluster = TestCluster::shared().await.unwrap();
    let namespace = cluster.namespace("who").await.unwrap();
    let accounts = Api::<ServiceAccount>::namespaced(cluster.client(), namespace.name());
    let metadata = ObjectMeta { name: Some("robot".into()), ..ObjectMeta::default() };
    accounts.create(&PostParams::default(), &ServiceAccount { metadata, ..ServiceAccount::default() }).await.unwrap();

    let robot = cluster.client_for_service_account(namespace.name(), "robot").await.unwrap();
    assert_eq!(whoami(&robot.client).await.0, format!("system:serviceaccount:{}:robot", namespace.name()));
    assert!(!may_read_secrets(&robot.client, namespace.name()).await, "RBAC is on");
    let kubeconfig = robot.kubeconfig().to_str().unwrap();
    let seen = cluster.kubectl(&["--kubeconfig", kubeconfig, "auth", "whoami", "-o", "name"]).await.unwrap();
    assert!(seen.status.success(), "{}", String::from_utf8_lossy(&seen.stderr));

    for groups in [&["devs"][..], &["devs", "ops"], &[]] {
        let ada = cluster.client_as("ada", groups).await.unwrap();
        let (user, seen) = whoami(&ada.client).await;
        assert_eq!(user, "ada");
        assert!(groups.iter().all(|group| seen.iter().any(|one| one == group)), "{seen:?}");
        assert_eq!(seen.len(), groups.len() + 1, "{seen:?}");
        assert!(!may_read_secrets(&ada.client, namespace.name()).await);
    }
    let root = cluster.client_as("root", &["system:masters"]).await.unwrap();
    assert!(may_read_secrets(&root.client, namespace.name()).await);
}

#[tokio::test]
async fn installed_kinds_are_served_at_once() {
    let crd = |plural: &str, kind: &str| -> CustomResourceDefinition {
        serde_json::from_value(json!({
            "metadata": {"name": format!("{plural}.testenv.example")},
            "spec": {
                "group": "testenv.example",
                "names": {"kind": kind, "plural": plural},
                "scope": "Namespaced",
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }],
            },
        }))
        .unwrap()
    };
    let cluster = TestCluster::shared().await.unwrap();
    let crds = [crd("tents", "Tent"), crd("ropes", "Rope")];
    let (a, b) = tokio::join!(cluster.install_crds(&crds), cluster.install_crds(&crds));
    a.unwrap();
    b.unwrap();
    let namespace = cluster.namespace("camp").await.unwrap();
    for kind in ["Tent", "Rope"] {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("testenv.example", "v1", kind));
        let api = Api::<DynamicObject>::namespaced_with(cluster.client(), namespace.name(), &resource);
        api.create(&PostParams::default(), &DynamicObject::new("one", &resource)).await.unwrap();
    }
}
