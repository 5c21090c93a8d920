// SPDX-License-Identifier: Apache-2.0
//! Bivouac, installed into a cluster of one's own as a user does it: both charts, with helm.

use std::process::Output;

use bivouac_api::tenant::Workspace;
use bivouac_testenv::{Identity, Options, TestCluster};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use crate::operator::eventually;

pub const NAMESPACE: &str = "bivouac-system";
pub const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/chart/bivouac");
pub const CRD_CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/chart/bivouac-crds");
/// Nobody pulls it: there are no nodes.
const IMAGE: &str = "image.repository=registry.invalid/bivouac";

/// Pods need not run; owners' garbage and namespaces must be collected.
pub async fn cluster() -> TestCluster {
    let without = ["kwok", "scheduler"].map(str::to_owned).to_vec();
    TestCluster::start(Options { without, audit: true, ..Options::default() }).await.unwrap()
}

/// Installs both charts and gives the identity of the operator's pods.
pub async fn install(cluster: &TestCluster, set: &[&str]) -> Identity {
    install_crds(cluster, &[]).await;
    install_operator(cluster, set).await
}

pub async fn install_crds(cluster: &TestCluster, flags: &[&str]) {
    succeeds(helm(cluster, &[&["install", "bivouac-crds", CRD_CHART, "--create-namespace"], flags].concat()).await);
}

pub async fn install_operator(cluster: &TestCluster, set: &[&str]) -> Identity {
    let mut args = vec!["install", "bivouac", CHART, "--set", IMAGE];
    args.extend(set.iter().flat_map(|value| ["--set", *value]));
    succeeds(helm(cluster, &args).await);
    workspaces_are_served(cluster).await;
    cluster.client_for_service_account(NAMESPACE, "bivouac").await.unwrap()
}

/// A server with a mutating policy refuses objects of a new kind until it has read the kind's schema.
pub async fn workspaces_are_served(cluster: &TestCluster) {
    let json = json!({
        "apiVersion": "tenant.otterscale.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "probe"},
        "spec": {"members": [{"role": "admin", "subject": "probe"}]},
    });
    let probe: Workspace = serde_json::from_value(json).unwrap();
    let api = Api::<Workspace>::all(cluster.client());
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    eventually("Workspaces can be made", 60, async || api.create(&dry_run, &probe).await.ok()).await;
}

/// Runs helm in the operator's namespace.
pub async fn helm(cluster: &TestCluster, args: &[&str]) -> Output {
    cluster.helm(&[args, &["-n", NAMESPACE]].concat()).await.unwrap()
}

/// What it printed; it must have gone well.
pub fn succeeds(output: Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// What it complained about; it must have failed.
pub fn fails(output: Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The policies alone, without the chart.
pub async fn policies(client: &kube::Client) {
    use kube::{
        Api,
        api::{Patch, PatchParams},
        core::{ApiResource, DynamicObject, GroupVersionKind},
    };
    for policy in bivouac_tenancy::policies::validating().into_iter().chain(bivouac_tenancy::policies::mutating()) {
        let kind = policy["kind"].as_str().unwrap();
        let gvk = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
        let plural = kind.to_lowercase().replace("policy", "policies").replace("policiesbinding", "policybindings");
        let api = Api::<DynamicObject>::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&gvk, &plural));
        let name = policy["metadata"]["name"].as_str().unwrap();
        api.patch(name, &PatchParams::apply("test"), &Patch::Apply(&policy)).await.unwrap();
    }
    // Policies become active a moment after they are stored.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
}
