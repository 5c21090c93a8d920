// SPDX-License-Identifier: Apache-2.0
//! Flux objects in the namespace of a Workspace stay inside it: the policies, on a real API server.

use bivouac_testenv::{Options, TestCluster};
use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::install;
use crate::operator;

const ACCOUNT: &str = "workspace-reconciler";

#[tokio::test]
async fn flux_objects_stay_in_their_workspace() {
    let cluster = TestCluster::start(Options { without: vec!["kwok".into()], ..Options::default() }).await.unwrap();
    let client = cluster.client();
    let kinds =
        [("helm.toolkit.fluxcd.io", "v2", "HelmRelease"), ("kustomize.toolkit.fluxcd.io", "v1", "Kustomization")];
    cluster.install_crds(&kinds.map(|(group, version, kind)| crd(group, version, kind))).await.unwrap();
    install::policies(&client).await;
    for (name, component) in [("team", "workspace"), ("platform", "other")] {
        let body = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": {"app.kubernetes.io/component": component}},
        });
        let api = Api::<Namespace>::all(client.clone());
        api.patch(name, &PatchParams::apply("test"), &Patch::Apply(&body)).await.unwrap();
    }
    for (group, version, kind) in kinds {
        let gvk = GroupVersionKind::gvk(group, version, kind);
        operator::eventually("the policies are active", 60, async || {
            create(&client, &gvk, "team", json!({})).await.is_err().then_some(())
        })
        .await;
        for (spec, words) in refused(kind) {
            let error = create(&client, &gvk, "team", spec.clone()).await.unwrap_err();
            assert!(error.contains(words), "{kind} {spec}: {error}");
            create(&client, &gvk, "platform", spec).await.unwrap();
        }
        for spec in accepted(kind) {
            create(&client, &gvk, "team", spec.clone()).await.unwrap_or_else(|error| panic!("{kind} {spec}: {error}"));
        }
    }
}

fn refused(kind: &str) -> Vec<(Value, &'static str)> {
    let with = |mut more: Value| {
        more["serviceAccountName"] = json!(ACCOUNT);
        more
    };
    let mut cases = vec![
        (json!({}), "spec.serviceAccountName must be workspace-reconciler"),
        (json!({"serviceAccountName": "default"}), "spec.serviceAccountName must be workspace-reconciler"),
        (with(json!({"kubeConfig": {"secretRef": {"name": "x"}}})), "spec.kubeConfig must not be set"),
        (with(json!({"targetNamespace": "platform"})), "spec.targetNamespace must not name another namespace"),
        (with(json!({"dependsOn": [{"name": "x", "namespace": "platform"}]})), "spec.dependsOn must not name another"),
    ];
    if kind == "HelmRelease" {
        let source =
            json!({"chart": {"spec": {"sourceRef": {"kind": "HelmRepository", "name": "x", "namespace": "platform"}}}});
        cases.push((with(source), "spec.chart.spec.sourceRef.namespace must not name another"));
        cases.push((with(json!({"chartRef": {"name": "x", "namespace": "platform"}})), "spec.chartRef.namespace"));
        cases.push((with(json!({"storageNamespace": "platform"})), "spec.storageNamespace must not name another"));
    } else {
        cases.push((with(json!({"sourceRef": {"name": "x", "namespace": "platform"}})), "spec.sourceRef.namespace"));
    }
    cases
}

fn accepted(kind: &str) -> Vec<Value> {
    let source = if kind == "HelmRelease" { json!({"chart": {"spec": {"chart": "x"}}}) } else { json!({}) };
    let mut spec = source;
    spec["serviceAccountName"] = json!(ACCOUNT);
    let mut own = spec.clone();
    own["targetNamespace"] = json!("team");
    own["dependsOn"] = json!([{"name": "x"}, {"name": "y", "namespace": "team"}]);
    vec![spec, own]
}

async fn create(client: &Client, gvk: &GroupVersionKind, namespace: &str, spec: Value) -> Result<(), String> {
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(gvk));
    let object = DynamicObject::new("probe", &ApiResource::from_gvk(gvk)).data(json!({ "spec": spec }));
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    api.create(&dry, &object).await.map(drop).map_err(|error| error.to_string())
}

/// As much of a Flux CRD as a policy needs.
fn crd(group: &str, version: &str, kind: &str) -> CustomResourceDefinition {
    let plural = format!("{}s", kind.to_lowercase());
    let spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            "versions": [{
                "name": version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    }))
    .unwrap()
}
