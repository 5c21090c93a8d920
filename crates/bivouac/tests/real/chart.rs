// SPDX-License-Identifier: Apache-2.0
//! The charts on a real cluster: what they install is enough, and not too much, and taking it away harms nobody.

use bivouac_api::tenant::Workspace;
use bivouac_testenv::TestCluster;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{LimitRange, Namespace, Pod, ResourceQuota};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::RoleBinding;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::install::{self, CHART, CRD_CHART, NAMESPACE, fails, helm, succeeds};
use crate::operator::{Operator, eventually, ready_workspace};

const USER: &str = "system:serviceaccount:bivouac-system:bivouac";

fn workspace(name: &str) -> Workspace {
    let json = json!({
        "apiVersion": "tenant.otterscale.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name},
        "spec": {
            "namespace": name,
            "members": [
                {"role": "admin", "subject": "ada"},
                {"role": "edit", "subject": "bots", "kind": "Group"},
                {"role": "view", "subject": "carol@example.com"},
            ],
            "resourceQuota": {"hard": {"requests.nvidia.com/gpu": "8", "pods": "40"}},
            "limitRange": {"limits": [{"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "100m"}}]},
            "networkIsolation": {
                "enabled": true, "allowedNamespaces": ["monitoring"],
                "egress": {"enabled": true, "allowedCIDRs": ["10.0.0.0/8"]},
            },
        },
    });
    serde_json::from_value(json).unwrap()
}

/// The environment that the chart gives to its pods, as the kubelet would fill it in.
async fn pod_environment(cluster: &TestCluster) -> Vec<(String, String)> {
    let api = Api::<Deployment>::namespaced(cluster.client(), NAMESPACE);
    let spec = serde_json::to_value(api.get("bivouac").await.unwrap().spec).unwrap();
    let env = spec["template"]["spec"]["containers"][0]["env"].as_array().unwrap().clone();
    let value = |one: &Value| match one.pointer("/valueFrom/fieldRef/fieldPath").and_then(Value::as_str) {
        Some("metadata.name") => "bivouac-0".to_owned(),
        Some("metadata.namespace") => NAMESPACE.to_owned(),
        _ => one["value"].as_str().unwrap().to_owned(),
    };
    env.iter().map(|one| (one["name"].as_str().unwrap().to_owned(), value(one))).collect()
}

/// Requests of the operator that the server refused for want of rights.
fn refusals(cluster: &TestCluster) -> Vec<String> {
    let log = std::fs::read_to_string(cluster.audit_log().unwrap()).unwrap();
    let events: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let ours: Vec<&Value> = events.iter().filter(|event| event["user"]["username"] == USER).collect();
    assert!(!ours.is_empty(), "the audit log does not know the operator");
    let refused = ours.into_iter().filter(|event| matches!(event["responseStatus"]["code"].as_i64(), Some(401 | 403)));
    refused.map(|event| format!("{} {}", event["verb"], event["requestURI"])).collect()
}

#[tokio::test]
async fn the_charts_rights_are_enough_and_uninstalling_keeps_everything() {
    let cluster = install::cluster().await;
    let account = install::install(&cluster, &[]).await;
    let client = cluster.client();
    let mut operator = Operator::start_with(account.kubeconfig(), pod_environment(&cluster).await);
    operator.ready().await;

    let workspaces = Api::<Workspace>::all(client.clone());
    workspaces.create(&PostParams::default(), &workspace("rocket")).await.unwrap();
    let ready = ready_workspace(&client, "rocket").await;
    let status = ready.status.unwrap();
    assert_eq!(status.role_binding_refs.len(), 3);
    assert!(
        status.resource_quota_ref.is_some() && status.limit_range_ref.is_some() && status.network_policy_ref.is_some()
    );

    children_come_back(&cluster, "rocket").await;

    workspaces.create(&PostParams::default(), &workspace("shuttle")).await.unwrap();
    ready_workspace(&client, "shuttle").await;
    workspaces.delete("shuttle", &DeleteParams::default()).await.unwrap();
    let namespaces = Api::<Namespace>::all(client.clone());
    eventually("the namespace goes with its Workspace", 60, async || {
        namespaces.get_opt("shuttle").await.unwrap().is_none().then_some(())
    })
    .await;

    assert_eq!(refusals(&cluster), Vec::<String>::new());
    // Not too much either; and refusals do show.
    let sets = Api::<StatefulSet>::all(account.client.clone()).list(&ListParams::default()).await;
    assert!(sets.is_err_and(|error| error.to_string().contains("cannot list resource \"statefulsets\"")));
    eventually("the refusal is in the audit log", 10, async || (refusals(&cluster).len() == 1).then_some(())).await;
    let log = operator.log().to_lowercase();
    assert!(!log.contains("403") && !log.contains("forbidden"), "{log}");
    assert!(!log.contains("panic"), "{log}");
    assert!(operator.get("/metrics").unwrap().contains("bivouac_"));
    operator.terminate();
    assert!(operator.ended(20).await.success());

    uninstalling_keeps(&cluster, "rocket").await;
}

/// Deletes and spoils every child: all of it is restored.
async fn children_come_back(cluster: &TestCluster, namespace: &str) {
    let client = cluster.client();
    let bindings = Api::<RoleBinding>::namespaced(client.clone(), namespace);
    let quotas = Api::<ResourceQuota>::namespaced(client.clone(), namespace);
    let limits = Api::<LimitRange>::namespaced(client.clone(), namespace);
    let policies = Api::<NetworkPolicy>::namespaced(client.clone(), namespace);

    let gone = bindings.get("workspace-role-binding-edit").await.unwrap().uid();
    bindings.delete("workspace-role-binding-edit", &DeleteParams::default()).await.unwrap();
    limits.delete("workspace-limit-range", &DeleteParams::default()).await.unwrap();
    let robbed = json!({"subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}]});
    let edit = PatchParams { field_manager: Some("mallory".to_owned()), ..PatchParams::default() };
    bindings.patch("workspace-role-binding-admin", &edit, &Patch::Merge(robbed)).await.unwrap();
    let richer = json!({"spec": {"hard": {"pods": "4000"}}});
    quotas.patch("workspace-resource-quota", &edit, &Patch::Merge(richer)).await.unwrap();
    let open = json!({"spec": {"ingress": [{}]}});
    policies.patch("workspace-network-policy", &edit, &Patch::Merge(open)).await.unwrap();

    eventually("a deleted binding comes back", 30, async || {
        bindings.get_opt("workspace-role-binding-edit").await.unwrap().filter(|binding| binding.uid() != gone)
    })
    .await;
    eventually("deleted limits come back", 30, async || limits.get_opt("workspace-limit-range").await.unwrap()).await;
    eventually("a robbed binding is given back", 30, async || {
        let binding = bindings.get("workspace-role-binding-admin").await.unwrap();
        let names: Vec<_> = binding.subjects.unwrap_or_default().into_iter().map(|subject| subject.name).collect();
        (names == ["ada"]).then_some(())
    })
    .await;
    eventually("a raised quota is lowered again", 30, async || {
        let hard = quotas.get("workspace-resource-quota").await.unwrap().spec.unwrap().hard.unwrap();
        (hard["pods"].0 == "40").then_some(())
    })
    .await;
    eventually("an opened policy is closed again", 30, async || {
        let policy = policies.get("workspace-network-policy").await.unwrap();
        (policy.spec.unwrap().ingress.unwrap().len() == 2).then_some(())
    })
    .await;
}

async fn uninstalling_keeps(cluster: &TestCluster, name: &str) {
    let client = cluster.client();
    let crds = Api::<CustomResourceDefinition>::all(client.clone());
    let before = crds.list(&ListParams::default()).await.unwrap().items.len();
    assert!(before >= bivouac_api::crds().len());
    let namespaces = Api::<Namespace>::all(client.clone());
    let uid = namespaces.get(name).await.unwrap().uid();
    for release in ["bivouac", "bivouac-crds"] {
        succeeds(helm(cluster, &["uninstall", release, "--wait"]).await);
    }
    let deployments = Api::<Deployment>::namespaced(client.clone(), NAMESPACE);
    assert!(deployments.get_opt("bivouac").await.unwrap().is_none(), "uninstalling did nothing");
    let after = crds.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(after.len(), before);
    assert!(after.iter().all(|crd| crd.metadata.deletion_timestamp.is_none()));
    let workspace = Api::<Workspace>::all(client.clone()).get(name).await.unwrap();
    assert_eq!(workspace.metadata.deletion_timestamp, None);
    let namespace = namespaces.get(name).await.unwrap();
    assert_eq!((namespace.uid(), namespace.metadata.deletion_timestamp), (uid, None));

    // And back again: what was kept is taken over.
    install::install(cluster, &[]).await;
}

#[tokio::test]
async fn values_are_checked_and_releases_go_forth_and_back() {
    let cluster = install::cluster().await;
    let said = fails(helm(&cluster, &["install", "bivouac", CHART, "--create-namespace"]).await);
    assert!(
        said.contains("image.repository is empty: set it to where your registry keeps the bivouac image"),
        "{said}"
    );
    let image = "image.repository=registry.invalid/bivouac";
    let refused = [
        ("imagee.repository=x", "additional properties 'imagee' not allowed"),
        ("tenancy.openToAll=true", "additional properties 'openToAll' not allowed"),
        ("image.digest=sha256:123", "does not match pattern"),
        ("replicas=two", "want integer"),
        ("leaderElection.enabled=false", "two operators would write the same objects"),
    ];
    for (value, why) in refused {
        let said = fails(helm(&cluster, &["template", "bivouac", CHART, "--set", image, "--set", value]).await);
        assert!(said.contains(why), "{value}: {said}");
    }
    succeeds(helm(&cluster, &["lint", "--strict", CHART, CRD_CHART]).await);
    optional_parts_are_optional(&cluster).await;

    install::install(&cluster, &[]).await;
    pods_are_fit_for_the_restricted_level(&cluster).await;
    let digest = format!("image.digest=sha256:{}", "0".repeat(64));
    let upgrade = ["upgrade", "bivouac", CHART, "--set", image, "--set", &digest, "--set", "replicas=1"];
    succeeds(helm(&cluster, &upgrade).await);
    let deployments = Api::<Deployment>::namespaced(cluster.client(), NAMESPACE);
    let now = async || {
        let spec = deployments.get("bivouac").await.unwrap().spec.unwrap();
        let image = spec.template.spec.unwrap().containers.remove(0).image.unwrap();
        (spec.replicas.unwrap(), image)
    };
    let tagged = format!("registry.invalid/bivouac:{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(now().await, (1, format!("registry.invalid/bivouac@sha256:{}", "0".repeat(64))));
    succeeds(helm(&cluster, &["rollback", "bivouac", "1"]).await);
    assert_eq!(now().await, (2, tagged));
    succeeds(helm(&cluster, &["upgrade", "bivouac-crds", CRD_CHART]).await);
}

/// What is rendered only when it is asked for, or only where it can work.
async fn optional_parts_are_optional(cluster: &TestCluster) {
    const MUTATING: &str = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy";
    const MONITOR: &str = "monitoring.coreos.com/v1/ServiceMonitor";
    let rendered = async |args: &[&str]| {
        let image = ["template", "bivouac", CHART, "--set", "image.repository=registry.invalid/bivouac"];
        succeeds(helm(cluster, &[&image, args].concat()).await)
    };
    let usual = rendered(&[]).await;
    for (part, switch_off) in [
        ("kind: PodDisruptionBudget", "replicas=1"),
        ("kind: NetworkPolicy", "networkPolicy.enabled=false"),
        ("kind: ValidatingAdmissionPolicy", "policies.enabled=false"),
        ("kind: ServiceAccount\nmetadata", "serviceAccount.create=false"),
        ("kind: ClusterRole", "rbac.create=false"),
    ] {
        assert!(usual.contains(part), "{part}");
        assert!(!rendered(&["--set", switch_off]).await.contains(part), "{switch_off}");
    }
    assert!(!usual.contains("OPERATOR_USER") && usual.contains(USER));
    for (part, ask) in [
        ("name: system:authenticated", &["--set", "tenancy.openToAuthenticated=true"][..]),
        ("kind: MutatingAdmissionPolicy", &["--api-versions", MUTATING]),
        ("kind: ServiceMonitor", &["--set", "serviceMonitor.enabled=true", "--api-versions", MONITOR]),
        ("type: Recreate", &["--set", "leaderElection.enabled=false", "--set", "replicas=1"]),
    ] {
        assert!(!usual.contains(part), "{part}");
        assert!(rendered(ask).await.contains(part), "{part}");
    }
    assert!(!rendered(&["--set", "serviceMonitor.enabled=true"]).await.contains("kind: ServiceMonitor"));
}

/// The strictest pod security level finds no fault with the chart's pods.
async fn pods_are_fit_for_the_restricted_level(cluster: &TestCluster) {
    let pods = Api::<Pod>::namespaced(cluster.client(), NAMESPACE);
    eventually("the Deployment makes its pods", 30, async || {
        (pods.list(&ListParams::default()).await.unwrap().items.len() == 2).then_some(())
    })
    .await;
    // The server names the pods that would not be allowed.
    let label = ["label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted", "--dry-run=server"];
    let output = cluster.kubectl(&label).await.unwrap();
    let warnings = String::from_utf8_lossy(&output.stderr).into_owned();
    succeeds(output);
    assert_eq!(warnings, "");
}
