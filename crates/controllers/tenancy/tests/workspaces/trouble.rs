// SPDX-License-Identifier: Apache-2.0
//! Things that concern the whole cluster, each on a cluster of its own.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bivouac_engines::istio::{AuthorizationPolicy, PeerAuthentication};
use bivouac_tenancy::reasons::Part;
use futures::StreamExt;
use k8s_openapi::{
    api::{
        coordination::v1::Lease, core::v1::Namespace, events::v1::Event, networking::v1::NetworkPolicy,
        rbac::v1::RoleBinding,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
    client::Body,
    runtime::watcher,
};
use serde_json::json;

use super::stage::{AGENT, Stage, condition, eventually, full, workspace_crds};

const QUIET: Duration = Duration::from_secs(5);

pub async fn a_mesh_comes_and_goes_without_a_moment_of_no_isolation() {
    let mut stage = Stage::own(&workspace_crds()).await;
    let mut spec = full("team");
    spec["networkIsolation"]["egress"] = json!({"enabled": true});
    stage.create("team", spec).await;
    stage.ready("team").await;
    let deletions = count_deletions(&stage, "team");

    stage.world.install_crds(&istio_crds()).await;
    injection(&stage, Some("enabled")).await;
    let (peers, rules) = (stage.inside::<PeerAuthentication>("team"), stage.inside::<AuthorizationPolicy>("team"));
    eventually("the status names the mesh's policies", async || {
        let status = stage.ready("team").await.status.unwrap();
        let known = status.peer_authentication_ref.is_some() && status.authorization_policy_ref.is_some();
        if known && status.network_policy_ref.is_some() { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
    assert_eq!(peers.get("workspace-peer-authentication").await.unwrap().spec.mtls.mode, "STRICT");
    let rule = rules.get("workspace-authorization-policy").await.unwrap().spec;
    assert_eq!(rule.rules[0].from[0].source.namespaces, ["team", "ingress"]);
    let policy = stage.inside::<NetworkPolicy>("team").get("workspace-network-policy").await.unwrap();
    assert!(
        serde_json::to_string(&policy.spec).unwrap().contains("istio-system"),
        "sidecars reach their control plane"
    );

    // The new kinds are watched like the others.
    let before = peers.get("workspace-peer-authentication").await.unwrap();
    peers.delete("workspace-peer-authentication", &DeleteParams::default()).await.unwrap();
    eventually("the peer authentication comes back", async || {
        match peers.get_opt("workspace-peer-authentication").await {
            Ok(Some(now)) if now.uid() != before.uid() => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    let settled = stage.settled("team", "team").await;
    stage.restart_operator(slow_mesh).await;
    tokio::time::sleep(QUIET).await;
    assert_eq!(stage.versions("team", "team").await, settled, "a start over a settled mesh writes nothing");

    let crds = Api::<CustomResourceDefinition>::all(stage.client.clone());
    for crd in istio_crds() {
        crds.delete(&crd.name_any(), &DeleteParams::default()).await.unwrap();
    }
    injection(&stage, None).await;
    eventually("the status forgets the mesh's policies", async || {
        let status = stage.ready("team").await.status.unwrap();
        let gone = status.peer_authentication_ref.is_none() && status.authorization_policy_ref.is_none();
        if gone && status.network_policy_ref.is_some() { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
    assert_eq!(deletions.load(Ordering::SeqCst), 0, "the NetworkPolicy was away for a moment");
}

pub async fn an_object_that_cannot_be_read_says_so_and_stops_nobody() {
    let stage = Stage::own(&loose_crds()).await;
    stage.create("broken", json!({"namespace": "broken", "members": "nobody"})).await;
    stage.create("sound", json!({"namespace": "sound"})).await;
    stage.ready("sound").await;
    let api = Api::<kube::core::DynamicObject>::all_with(
        stage.client.clone(),
        &kube::core::ApiResource::erase::<bivouac_api::tenant::Workspace>(&()),
    );
    eventually("the broken one says so", async || {
        let broken = api.get("broken").await.map_err(|error| error.to_string())?;
        let ready = &broken.data["status"]["conditions"][0];
        let fits = ready["type"] == "Ready" && ready["status"] == "False" && ready["reason"] == "InvalidObject";
        if fits && ready["message"].to_string().contains("nobody") { Ok(()) } else { Err(broken.data.to_string()) }
    })
    .await;
    eventually("its owner is told by an event", async || {
        let events = Api::<Event>::namespaced(stage.client.clone(), "default").list(&ListParams::default()).await;
        let events = events.map_err(|error| error.to_string())?.items;
        let about =
            |event: &&Event| event.regarding.as_ref().is_some_and(|about| about.name.as_deref() == Some("broken"));
        match events.iter().find(about) {
            Some(event) if event.reason.as_deref() == Some("InvalidObject") => Ok(()),
            _ => Err(format!("{} events", events.len())),
        }
    })
    .await;
    stage.patch("broken", json!({"spec": {"members": [{"role": "admin", "subject": "ada"}]}})).await;
    let repaired = stage.ready("broken").await;
    assert_eq!(repaired.status.unwrap().conditions.len(), Part::ALL.len() + 1, "every part speaks again, and Ready");
}

pub async fn the_operator_waits_for_its_kind_and_stops_at_once_meanwhile() {
    let mut stage = Stage::own(&[]).await;
    let lease = Api::<Lease>::namespaced(stage.client.clone(), "default");
    eventually("it leads", async || {
        let lease = lease.get(AGENT).await.map_err(|error| error.to_string())?;
        lease.spec.and_then(|spec| spec.holder_identity).map(|_| ()).ok_or_else(|| "nobody leads".to_owned())
    })
    .await;
    let stopping = tokio::time::Instant::now();
    stage.restart_operator(|client| client).await;
    assert!(stopping.elapsed() < QUIET, "{:?}", stopping.elapsed());
    stage.world.install_crds(&workspace_crds()).await;
    stage.create("team", full("team")).await;
    stage.ready("team").await;
}

pub async fn a_child_of_somebody_else_is_told_and_not_fought_over() {
    let mut stage = Stage::own(&workspace_crds()).await;
    stage.create("team", full("team")).await;
    stage.ready("team").await;
    let bindings = stage.inside::<RoleBinding>("team");
    let admin = "workspace-role-binding-admin";
    stage.world.stop_collecting().await;
    let theirs = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x", "controller": true}]);
    // The garbage collector would remove it, for that owner does not exist; so it is stopped.
    let mut binding = bindings.get(admin).await.unwrap();
    binding.metadata = serde_json::from_value(json!({"name": admin, "ownerReferences": theirs})).unwrap();
    eventually("a stranger's binding takes the name", async || {
        // At once, for the operator is quick.
        let (nothing, new) = (DeleteParams::default(), PostParams::default());
        let (_, made) = tokio::join!(biased; bindings.delete(admin, &nothing), bindings.create(&new, &binding));
        made.map_err(|error| error.to_string())
    })
    .await;
    let workspace = stage.says("team", "MembersReady", "False/Invalid").await;
    let ready = condition(&workspace, "Ready").unwrap();
    assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", "ReconcileError"));
    assert!(ready.message.contains(admin), "{}", ready.message);
    for part in ["NamespaceReady", "QuotaReady", "LimitsReady", "IsolationReady"] {
        assert_eq!(condition(&workspace, part).unwrap().status, "True", "{part}");
    }

    let (before, written) = (workspace.resource_version(), stage.operator_writes());
    tokio::time::sleep(QUIET).await;
    assert_eq!(stage.workspaces().get("team").await.unwrap().resource_version(), before, "the status stands still");
    let attempts = stage.operator_writes() - written;
    assert!(attempts <= 6, "{attempts} writes in {QUIET:?} are a hot loop");

    bindings.delete(admin, &DeleteParams::default()).await.unwrap();
    stage.ready("team").await;
}

/// The kinds of the mesh take their time to be listed, as they do on a busy server.
fn slow_mesh(client: Client) -> Client {
    let send = move |request: http::Request<Body>| {
        let client = client.clone();
        async move {
            if request.uri().path().contains("security.istio.io") {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            client.send(request).await
        }
    };
    Client::new(tower::service_fn(send), "default")
}

/// Counts how often the NetworkPolicy of a namespace is deleted from now on.
fn count_deletions(stage: &Stage, namespace: &str) -> Arc<AtomicUsize> {
    let count = Arc::new(AtomicUsize::new(0));
    let (counter, api) = (count.clone(), stage.inside::<NetworkPolicy>(namespace));
    tokio::spawn(async move {
        let mut events = watcher(api, watcher::Config::default()).boxed();
        while let Some(event) = events.next().await {
            if matches!(event, Ok(watcher::Event::Delete(_))) {
                counter.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    count
}

async fn injection(stage: &Stage, expected: Option<&str>) {
    eventually(&format!("the injection label is {expected:?}"), async || {
        let namespace =
            Api::<Namespace>::all(stage.client.clone()).get("team").await.map_err(|error| error.to_string())?;
        let label = namespace.labels().get("istio-injection").map(String::as_str);
        if label == expected { Ok(()) } else { Err(format!("{label:?}")) }
    })
    .await;
}

fn istio_crds() -> Vec<CustomResourceDefinition> {
    let crd = |kind: &str, plural: &str| {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
        serde_json::from_value(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.security.istio.io")},
            "spec": {
                "group": "security.istio.io", "scope": "Namespaced", "versions": [version],
                "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            },
        }))
        .unwrap()
    };
    vec![crd("PeerAuthentication", "peerauthentications"), crd("AuthorizationPolicy", "authorizationpolicies")]
}

/// The Workspace kind as a careless earlier version may have defined it: any spec goes.
fn loose_crds() -> Vec<CustomResourceDefinition> {
    let mut crds = serde_json::to_value(workspace_crds()).unwrap();
    for version in crds[0]["spec"]["versions"].as_array_mut().unwrap() {
        version["schema"]["openAPIV3Schema"]["properties"]["spec"] =
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    }
    serde_json::from_value(crds).unwrap()
}
