// SPDX-License-Identifier: Apache-2.0
//! Taking over from the Go operator, and from a replica that is gone.

use std::time::{Duration, Instant};

use bivouac_api::tenant::Workspace;
use bivouac_core::clock::{Clock, SystemClock};
use bivouac_testenv::{Identity, TestCluster};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{LimitRange, Namespace, ResourceQuota};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::RoleBinding;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::install::{self, NAMESPACE};
use crate::operator::{Operator, eventually, ready_workspace};

const RIVAL: (&str, &str) = ("otterscale-system", "7fe59df2.otterscale.io");
const GO_VERSION: &str = "v0.4.2";

/// Writes one object as the Go operator's client does: created, not applied.
async fn create(client: &Client, mut object: Value) -> DynamicObject {
    let manager = PostParams { field_manager: Some("manager".to_owned()), ..PostParams::default() };
    let (version, kind) =
        (object["apiVersion"].as_str().unwrap().to_owned(), object["kind"].as_str().unwrap().to_owned());
    let (group, version) = version.rsplit_once('/').unwrap_or(("", &version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind));
    object["metadata"]["creationTimestamp"] = Value::Null;
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let api = match object.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    api.create(&manager, &object).await.unwrap()
}

fn spec() -> Value {
    json!({
        "namespace": "orbit",
        "members": [{"role": "admin", "subject": "ada", "name": "Ada"}, {"role": "edit", "subject": "eve"}],
        "resourceQuota": {"hard": {"pods": "20", "requests.cpu": "8"}},
        "limitRange": {"limits": [{"type": "Container", "default": {"cpu": "500m"}}]},
        "networkIsolation": {"enabled": true, "allowedNamespaces": ["kube-system"]},
    })
}

/// A child as the Go operator writes it: labels of its own version, and a controller reference.
fn child(api_version: &str, kind: &str, name: &str, owner: &Workspace, more: Value) -> Value {
    let mut object = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {
            "name": name,
            "labels": {
                "app.kubernetes.io/instance": owner.name_any(),
                "app.kubernetes.io/component": "workspace",
                "app.kubernetes.io/part-of": "otterscale",
                "app.kubernetes.io/managed-by": "otterscale-operator",
                "app.kubernetes.io/version": GO_VERSION,
            },
            "ownerReferences": [{
                "apiVersion": "tenant.otterscale.io/v1alpha1", "kind": "Workspace", "name": owner.name_any(),
                "uid": owner.uid().unwrap(), "controller": true, "blockOwnerDeletion": true,
            }],
        },
    });
    if kind != "Namespace" {
        object["metadata"]["namespace"] = json!("orbit");
    }
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object
}

fn binding(owner: &Workspace, role: &str, user: &str) -> Value {
    let group = "rbac.authorization.k8s.io";
    let more = json!({
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    });
    child("rbac.authorization.k8s.io/v1", "RoleBinding", &format!("workspace-role-binding-{role}"), owner, more)
}

/// A Workspace with everything the Go operator made of it, and one binding it no longer asks for.
async fn left_by_the_go_operator(client: &Client) {
    let metadata =
        json!({"name": "orbit", "labels": {"user.otterscale.io/ada": "true", "user.otterscale.io/eve": "true"}});
    let workspace = json!({
        "apiVersion": "tenant.otterscale.io/v1alpha1", "kind": "Workspace", "metadata": metadata, "spec": spec(),
    });
    let owner: Workspace = create(client, workspace).await.try_parse().unwrap();
    let policy = json!({"spec": {
        "podSelector": {}, "policyTypes": ["Ingress"],
        "ingress": [
            {"from": [{"podSelector": {}}]},
            {"from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}]},
        ],
    }});
    let children = [
        child("v1", "Namespace", "orbit", &owner, json!({})),
        binding(&owner, "admin", "ada"),
        binding(&owner, "edit", "eve"),
        binding(&owner, "view", "vic"),
        child("v1", "ResourceQuota", "workspace-resource-quota", &owner, json!({"spec": spec()["resourceQuota"]})),
        child("v1", "LimitRange", "workspace-limit-range", &owner, json!({"spec": spec()["limitRange"]})),
        child("networking.k8s.io/v1", "NetworkPolicy", "workspace-network-policy", &owner, policy),
    ];
    for child in children {
        create(client, child).await;
    }
    let inside = |name: &str| json!({"name": name, "namespace": "orbit"});
    let status = json!({"status": {
        "observedGeneration": 1,
        "namespaceRef": {"name": "orbit"},
        "roleBindingRefs": [inside("workspace-role-binding-admin"), inside("workspace-role-binding-edit")],
        "resourceQuotaRef": inside("workspace-resource-quota"),
        "limitRangeRef": inside("workspace-limit-range"),
        "networkPolicyRef": inside("workspace-network-policy"),
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "Reconciled", "message": "Workspace reconciled",
            "observedGeneration": 1, "lastTransitionTime": "2026-02-01T00:00:00Z",
        }],
    }});
    let manager = PatchParams { field_manager: Some("manager".to_owned()), ..PatchParams::default() };
    Api::<Workspace>::all(client.clone()).patch_status("orbit", &manager, &Patch::Merge(status)).await.unwrap();
}

/// Name, UID and version label of every child but the leftover.
async fn children(client: &Client) -> Vec<(String, String, String)> {
    let namespace = Api::<Namespace>::all(client.clone()).get("orbit").await.unwrap();
    let bindings = Api::<RoleBinding>::namespaced(client.clone(), "orbit");
    let admin = bindings.get("workspace-role-binding-admin").await.unwrap();
    let edit = bindings.get("workspace-role-binding-edit").await.unwrap();
    let quota =
        Api::<ResourceQuota>::namespaced(client.clone(), "orbit").get("workspace-resource-quota").await.unwrap();
    let limits = Api::<LimitRange>::namespaced(client.clone(), "orbit").get("workspace-limit-range").await.unwrap();
    let policy =
        Api::<NetworkPolicy>::namespaced(client.clone(), "orbit").get("workspace-network-policy").await.unwrap();
    fn one(object: &impl ResourceExt) -> (String, String, String) {
        (object.name_any(), object.uid().unwrap(), object.labels()["app.kubernetes.io/version"].clone())
    }
    vec![one(&namespace), one(&admin), one(&edit), one(&quota), one(&limits), one(&policy)]
}

/// The Go operator's Lease, renewed just now.
async fn hold_the_rivals_lease(cluster: &TestCluster) -> Api<Lease> {
    install::succeeds(cluster.kubectl(&["create", "namespace", RIVAL.0]).await.unwrap());
    let leases = Api::<Lease>::namespaced(cluster.client(), RIVAL.0);
    let spec = LeaseSpec {
        holder_identity: Some("go-operator-0_1234".to_owned()),
        lease_duration_seconds: Some(15),
        renew_time: Some(MicroTime(SystemClock.now())),
        ..LeaseSpec::default()
    };
    let metadata = ObjectMeta { name: Some(RIVAL.1.to_owned()), ..ObjectMeta::default() };
    leases.create(&PostParams::default(), &Lease { metadata, spec: Some(spec) }).await.unwrap();
    leases
}

#[tokio::test]
async fn the_go_operators_children_are_taken_over_as_they_are() {
    let cluster = install::cluster().await;
    let client = cluster.client();
    // The CRDs are there already, and not by Helm; our chart takes them over under the objects.
    cluster.install_crds(&bivouac_api::crds()).await.unwrap();
    install::workspaces_are_served(&cluster).await;
    left_by_the_go_operator(&client).await;
    let before = children(&client).await;
    install::install_crds(&cluster, &["--take-ownership", "--force-conflicts"]).await;
    let account = install::install_operator(&cluster, &[]).await;
    assert_eq!(children(&client).await, before, "the charts touched a child");
    assert!(before.iter().all(|(_, _, version)| version == GO_VERSION));

    let leases = hold_the_rivals_lease(&cluster).await;
    let mut early = Operator::start(account.kubeconfig(), NAMESPACE, "early");
    let status = early.ended(20).await;
    assert!(!status.success());
    let said = early.log();
    assert!(said.contains("otterscale-system/7fe59df2.otterscale.io is held by go-operator-0_1234"), "{said}");
    assert_eq!(children(&client).await, before, "it wrote beside its rival");
    // As the Go operator leaves it when it stops in order.
    let released = json!({"spec": {"holderIdentity": ""}});
    leases.patch(RIVAL.1, &PatchParams::default(), &Patch::Merge(released)).await.unwrap();

    let mut operator = Operator::start(account.kubeconfig(), NAMESPACE, "bivouac-0");
    operator.ready().await;
    let bindings = Api::<RoleBinding>::namespaced(client.clone(), "orbit");
    eventually("the leftover binding goes", 30, async || {
        bindings.get_opt("workspace-role-binding-view").await.unwrap().is_none().then_some(())
    })
    .await;
    let parts = eventually("the Workspace tells of its parts", 30, async || {
        let status = ready_workspace(&client, "orbit").await.status.unwrap();
        (status.conditions.len() > 1).then_some(status.conditions)
    })
    .await;
    assert!(parts.iter().all(|condition| condition.status == "True"), "{parts:?}");

    let after = children(&client).await;
    let identities =
        |all: &[(String, String, String)]| all.iter().map(|one| (one.0.clone(), one.1.clone())).collect::<Vec<_>>();
    assert_eq!(identities(&after), identities(&before), "a child was made anew");
    assert!(after.iter().all(|(_, _, version)| version == env!("CARGO_PKG_VERSION")), "{after:?}");
    what_the_go_operator_wrote_can_be_taken_away(&client).await;
}

/// Fields of the Go operator's own field manager go when the Workspace drops them.
async fn what_the_go_operator_wrote_can_be_taken_away(client: &Client) {
    let less = json!({"spec": {"resourceQuota": {"hard": {"requests.cpu": null}}, "networkIsolation": null}});
    Api::<Workspace>::all(client.clone()).patch("orbit", &PatchParams::default(), &Patch::Merge(less)).await.unwrap();
    ready_workspace(client, "orbit").await;
    let quotas = Api::<ResourceQuota>::namespaced(client.clone(), "orbit");
    eventually("a dropped limit is lifted", 30, async || {
        let hard = quotas.get("workspace-resource-quota").await.unwrap().spec.unwrap().hard.unwrap();
        (hard.keys().collect::<Vec<_>>() == ["pods"]).then_some(())
    })
    .await;
    let policies = Api::<NetworkPolicy>::namespaced(client.clone(), "orbit");
    eventually("dropped isolation ends", 30, async || {
        policies.get_opt("workspace-network-policy").await.unwrap().is_none().then_some(())
    })
    .await;
}

/// Which replica leads now.
async fn leader(client: &Client) -> Option<String> {
    let lease = Api::<Lease>::namespaced(client.clone(), NAMESPACE).get_opt("bivouac").await.unwrap()?;
    lease.spec?.holder_identity.filter(|holder| !holder.is_empty())
}

/// Makes a Workspace now, and says how long it took to be Ready.
async fn time_to_ready(client: &Client, name: &str) -> Duration {
    let started = Instant::now();
    let workspace = json!({
        "apiVersion": "tenant.otterscale.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name},
        "spec": {"namespace": name, "members": [{"role": "admin", "subject": "ada"}]},
    });
    create(client, workspace).await;
    ready_workspace(client, name).await;
    started.elapsed()
}

async fn replica(account: &Identity, pod: &str) -> Operator {
    let mut operator = Operator::start(account.kubeconfig(), NAMESPACE, pod);
    operator.ready().await;
    operator
}

#[tokio::test]
async fn a_standby_takes_over() {
    let cluster = install::cluster().await;
    let account = install::install(&cluster, &[]).await;
    let client = cluster.client();
    let first = replica(&account, "first").await;
    eventually("the first leads", 10, async || leader(&client).await.filter(|holder| holder == "first")).await;
    let mut second = replica(&account, "second").await;
    time_to_ready(&client, "before").await;
    assert_eq!(leader(&client).await.as_deref(), Some("first"), "a standby is no leader");

    first.kill();
    let crash = time_to_ready(&client, "crashed").await;
    println!("failover after kill -9: {:.1} s", crash.as_secs_f64());
    assert!(crash < Duration::from_secs(30), "{crash:?}");
    assert_eq!(leader(&client).await.as_deref(), Some("second"));

    let _third = replica(&account, "third").await;
    second.terminate();
    let graceful = time_to_ready(&client, "drained").await;
    println!("failover after SIGTERM: {:.1} s", graceful.as_secs_f64());
    assert!(graceful < Duration::from_secs(10), "{graceful:?}");
    assert!(second.ended(20).await.success());
    eventually("the third leads", 10, async || leader(&client).await.filter(|holder| holder == "third")).await;
}
