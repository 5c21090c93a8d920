// SPDX-License-Identifier: Apache-2.0
//! helm installs our own charts.

use bivouac_testenv::components::Component;

use crate::plane::Plane;

#[tokio::test(flavor = "multi_thread")]
async fn helm_installs_upgrades_and_removes_our_charts() {
    let plane = Plane::start(true).await;
    let charts = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/chart");
    let helm = async |args: &[&str]| {
        let output = plane.command(Component::Helm, args).output().await.unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "helm {args:?}: {text}");
        text
    };
    helm(&["install", "bivouac-crds", &format!("{charts}/bivouac-crds")]).await;
    let chart = format!("{charts}/bivouac");
    let set = ["--namespace", "bivouac-system", "--set", "image.repository=registry.example/bivouac"];
    helm(&[&["install", "bivouac", &chart, "--create-namespace"], &set[..]].concat()).await;
    let kinds = plane.kubectl(&["get", "deployments,serviceaccounts", "-n", "bivouac-system", "-o", "name"]).await;
    assert!(kinds.contains("deployment.apps/bivouac") && kinds.contains("serviceaccount/bivouac"), "{kinds}");
    helm(&[&["upgrade", "bivouac", &chart, "--set", "replicas=1"], &set[..]].concat()).await;
    let listed = helm(&["list", "--namespace", "bivouac-system"]).await;
    assert!(listed.contains("deployed"), "{listed}");
    helm(&["uninstall", "bivouac", "--namespace", "bivouac-system"]).await;
    let left = plane.kubectl(&["get", "deployments", "-n", "bivouac-system", "-o", "name"]).await;
    assert!(!left.contains("deployment.apps/bivouac"), "{left}");
}
