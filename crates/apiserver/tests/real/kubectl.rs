// SPDX-License-Identifier: Apache-2.0
//! What people do with kubectl.

use bivouac_testenv::components::Component;
use std::{process::Stdio, time::Duration};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::plane::Plane;

const DEPLOYMENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: web, image: 'web:1' }] }
";

const TENTS: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: tents.camp.example }
spec:
  group: camp.example
  scope: Namespaced
  names: { plural: tents, kind: Tent, shortNames: [tt], categories: [all] }
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          description: A place to sleep
          type: object
          properties: { spec: { type: object, properties: { beds: { type: integer, description: How many can sleep } } } }
      additionalPrinterColumns: [{ name: Beds, type: integer, jsonPath: .spec.beds }]
";

#[tokio::test(flavor = "multi_thread")]
async fn apply_diff_edit_explain_scale_wait_and_delete() {
    let plane = Plane::start(true).await;
    assert!(plane.apply(DEPLOYMENT).await.contains("deployment.apps/web created"));
    assert!(plane.apply(DEPLOYMENT).await.contains("deployment.apps/web unchanged"));
    assert!(plane.apply(&DEPLOYMENT.replace("web:1", "web:2")).await.contains("deployment.apps/web configured"));

    let changed = plane.file("changed.yaml", &DEPLOYMENT.replace("replicas: 2", "replicas: 5"));
    let changed = changed.display().to_string();
    let diff = plane.try_kubectl(&["diff", "-f", &changed]).await;
    assert_eq!(diff.status.code(), Some(1), "there are differences");
    let diff = String::from_utf8_lossy(&diff.stdout).into_owned();
    assert!(diff.contains("-  replicas: 2") && diff.contains("+  replicas: 5"), "{diff}");

    let applied = plane.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", &changed]).await;
    assert!(applied.contains("serverside-applied"), "{applied}");
    let scaled = plane.kubectl(&["scale", "deployment/web", "--replicas=3"]).await;
    assert!(scaled.contains("deployment.apps/web scaled"), "{scaled}");
    let replicas = plane.kubectl(&["get", "deployment", "web", "-o", "jsonpath={.spec.replicas}"]).await;
    assert_eq!(replicas, "3");

    let edit = plane
        .command(Component::Kubectl, &["edit", "deployment/web"])
        .env("KUBE_EDITOR", "sed -i s/replicas:.3/replicas:\\ 4/")
        .output()
        .await
        .unwrap();
    assert!(String::from_utf8_lossy(&edit.stdout).contains("deployment.apps/web edited"), "{edit:?}");

    let explained = plane.kubectl(&["explain", "deployment.spec.strategy.rollingUpdate"]).await;
    assert!(explained.contains("FIELDS:") && explained.contains("maxSurge"), "{explained}");
    let table = plane.kubectl(&["get", "deployment", "web", "-o", "wide"]).await;
    assert!(table.contains("0/4") && table.contains("web:1") && table.contains("app=web"), "{table}");

    let refused = plane
        .try_kubectl(&[
            "apply",
            "-f",
            &plane.file("bad.yaml", &DEPLOYMENT.replace("replicas", "replcas")).display().to_string(),
        ])
        .await;
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && words.contains("unknown field \"spec.replcas\""), "{words}");

    plane.kubectl(&["delete", "deployment/web"]).await;
    plane.kubectl(&["wait", "--for=delete", "deployment/web", "--timeout=10s"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn custom_resources_are_listed_explained_and_watched() {
    let plane = Plane::start(true).await;
    plane.apply(TENTS).await;
    plane.kubectl(&["wait", "--for=condition=Established", "crd/tents.camp.example", "--timeout=10s"]).await;
    let mut watch = plane
        .command(Component::Kubectl, &["get", "tents", "-w", "--no-headers"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    plane.apply("{apiVersion: camp.example/v1, kind: Tent, metadata: {name: small}, spec: {beds: 2}}").await;
    let line = tokio::time::timeout(Duration::from_secs(20), lines.next_line()).await.unwrap().unwrap().unwrap();
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["small", "2"]);
    watch.kill().await.unwrap();

    assert!(plane.kubectl(&["get", "tt"]).await.contains("small"), "short names are known");
    assert!(plane.kubectl(&["get", "all"]).await.contains("tent.camp.example/small"), "categories are known");
    let explained = plane.kubectl(&["explain", "tent.spec.beds"]).await;
    assert!(explained.contains("How many can sleep"), "{explained}");
    plane.kubectl(&["patch", "tent", "small", "--type=merge", "-p", "{\"spec\":{\"beds\":3}}"]).await;
    assert_eq!(plane.kubectl(&["get", "tent", "small", "-o", "jsonpath={.spec.beds}"]).await, "3");
    plane.kubectl(&["delete", "crd", "tents.camp.example", "--timeout=20s"]).await;
    assert!(!plane.try_kubectl(&["get", "tents"]).await.status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_goes_with_everything_in_it() {
    let plane = Plane::start(true).await;
    plane.apply("{apiVersion: v1, kind: Namespace, metadata: {name: camp}}").await;
    plane.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: map, namespace: camp}, data: {way: out}}").await;
    let deleted = plane.kubectl(&["delete", "namespace", "camp", "--timeout=20s"]).await;
    assert!(deleted.contains("namespace \"camp\" deleted"), "{deleted}");
    assert!(plane.kubectl(&["get", "configmaps", "-A"]).await.matches(" map ").count() == 0);
}
