// SPDX-License-Identifier: Apache-2.0
//! From a spec to a namespace with everything in it, and back.

use std::time::Duration;

use bivouac_api::resource_ref::ResourceRef;
use k8s_openapi::api::{
    core::v1::{LimitRange, Namespace, ResourceQuota},
    events::v1::Event,
    networking::v1::NetworkPolicy,
    rbac::v1::RoleBinding,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams},
};
use serde_json::json;

use super::stage::{Stage, condition, eventually, full};

pub async fn a_workspace_gets_everything_it_asks_for() {
    let stage = Stage::shared().await;
    let name = stage.name("full");
    let mut spec = full(&name);
    spec["podSecurity"] = json!({"enforce": "baseline"});
    stage.create(&name, spec).await;
    let workspace = stage.ready(&name).await;

    let namespace = Api::<Namespace>::all(stage.client.clone()).get(&name).await.unwrap();
    let owner = &namespace.owner_references()[0];
    assert_eq!((owner.uid.as_str(), owner.controller), (workspace.uid().unwrap().as_str(), Some(true)));
    let label = |key: &str| namespace.labels().get(key).map(String::as_str);
    assert_eq!(label("app.kubernetes.io/instance"), Some(name.as_str()));
    assert_eq!(label("app.kubernetes.io/component"), Some("workspace"));
    assert_eq!(label("app.kubernetes.io/part-of"), Some("otterscale"));
    assert_eq!(label("app.kubernetes.io/managed-by"), Some("otterscale-operator"));
    assert_eq!(label("pod-security.kubernetes.io/enforce"), Some("baseline"));

    let binding = stage.inside::<RoleBinding>(&name).get("workspace-role-binding-admin").await.unwrap();
    let subjects = binding.subjects.unwrap();
    assert_eq!((subjects.len(), subjects[0].kind.as_str(), subjects[0].name.as_str()), (1, "User", "ada"));
    let quota = stage.inside::<ResourceQuota>(&name).get("workspace-resource-quota").await.unwrap();
    assert_eq!(quota.spec.unwrap().hard.unwrap()["requests.cpu"].0, "4");
    let limits = stage.inside::<LimitRange>(&name).get("workspace-limit-range").await.unwrap();
    assert_eq!(limits.spec.unwrap().limits[0].type_, "Container");
    let policy = stage.inside::<NetworkPolicy>(&name).get("workspace-network-policy").await.unwrap();
    assert_eq!(policy.spec.unwrap().ingress.unwrap().len(), 2);

    let inside = |child: &str| ResourceRef { name: child.into(), namespace: Some(name.clone()) };
    let status = workspace.status.clone().unwrap();
    assert_eq!(status.namespace_ref, Some(ResourceRef { name: name.clone(), namespace: None }));
    let bindings = [inside("workspace-role-binding-admin"), inside("workspace-role-binding-view")];
    assert_eq!(status.role_binding_refs, bindings);
    assert_eq!(status.resource_quota_ref, Some(inside("workspace-resource-quota")));
    assert_eq!(status.limit_range_ref, Some(inside("workspace-limit-range")));
    assert_eq!(status.network_policy_ref, Some(inside("workspace-network-policy")));
    assert_eq!(status.observed_generation, workspace.metadata.generation);
    for part in ["Namespace", "Members", "Quota", "Limits", "Isolation", "Reconciler"] {
        assert_eq!(condition(&workspace, &format!("{part}Ready")).unwrap().status, "True", "{part}");
    }
    assert_eq!(workspace.labels()["user.otterscale.io/ada"], "true");
    assert_eq!(workspace.labels()["user.otterscale.io/eve"], "true");

    // The event follows the status.
    let events = eventually("its owner is told", async || {
        let of_it = ListParams::default().fields(&format!("regarding.name={name}"));
        let events = Api::<Event>::namespaced(stage.client.clone(), "default").list(&of_it).await;
        let events = events.map_err(|error| error.to_string())?.items;
        if events.is_empty() { Err("no event".into()) } else { Ok(events) }
    })
    .await;
    let told: Vec<_> = events.iter().map(|event| (event.type_.as_deref(), event.reason.as_deref())).collect();
    assert_eq!(told, [(Some("Normal"), Some("Reconciled"))], "once, and nothing else");
}

pub async fn a_removed_member_loses_binding_and_label() {
    let stage = Stage::shared().await;
    let name = stage.name("member");
    stage.create(&name, full(&name)).await;
    stage.ready(&name).await;
    stage.patch(&name, json!({"spec": {"members": [{"role": "admin", "subject": "ada"}]}})).await;
    stage.gone(&stage.inside::<RoleBinding>(&name), "workspace-role-binding-view").await;
    let workspace = eventually("the label goes", async || {
        let workspace = stage.ready(&name).await;
        if workspace.labels().contains_key("user.otterscale.io/eve") { Err("it stays".into()) } else { Ok(workspace) }
    })
    .await;
    assert_eq!(workspace.status.unwrap().role_binding_refs.len(), 1);
    assert_eq!(workspace.metadata.labels.unwrap()["user.otterscale.io/ada"], "true");
}

pub async fn quota_and_limits_go_with_their_fields() {
    let stage = Stage::shared().await;
    let name = stage.name("quota");
    stage.create(&name, full(&name)).await;
    stage.ready(&name).await;
    stage.patch(&name, json!({"spec": {"resourceQuota": null, "limitRange": null}})).await;
    stage.gone(&stage.inside::<ResourceQuota>(&name), "workspace-resource-quota").await;
    stage.gone(&stage.inside::<LimitRange>(&name), "workspace-limit-range").await;
    let workspace = stage.ready(&name).await;
    assert_eq!(condition(&workspace, "QuotaReady").unwrap().reason, "NotRequested");
    assert_eq!(condition(&workspace, "LimitsReady").unwrap().reason, "NotRequested");
    let status = workspace.status.unwrap();
    assert_eq!((status.resource_quota_ref, status.limit_range_ref), (None, None));
}

pub async fn the_policy_goes_when_isolation_is_turned_off() {
    let stage = Stage::shared().await;
    let name = stage.name("isolation");
    stage.create(&name, full(&name)).await;
    stage.ready(&name).await;
    stage.patch(&name, json!({"spec": {"networkIsolation": {"enabled": false, "allowedNamespaces": null}}})).await;
    stage.gone(&stage.inside::<NetworkPolicy>(&name), "workspace-network-policy").await;
    assert_eq!(stage.ready(&name).await.status.unwrap().network_policy_ref, None);
}

pub async fn a_namespace_is_chosen_when_none_is_asked_for() {
    let stage = Stage::shared().await;
    let name = stage.name("derived");
    stage.create(&name, json!({})).await;
    let workspace = stage.ready(&name).await;
    assert_eq!(workspace.spec.namespace, None, "the spec is the person's");
    let namespace = workspace.status.unwrap().namespace_ref.unwrap().name;
    assert_eq!(namespace.len(), 6, "{namespace}");
    let bindings = stage.inside::<RoleBinding>(&namespace);
    assert!(bindings.get_opt("workspace-role-binding-admin").await.unwrap().is_some());
}

pub async fn a_settled_workspace_is_left_in_peace_even_by_a_new_operator() {
    let mut stage = Stage::shared().await;
    let name = stage.name("steady");
    stage.create(&name, full(&name)).await;
    stage.ready(&name).await;
    let before = stage.settled(&name, &name).await;
    stage.restart_operator(|client| client).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(stage.versions(&name, &name).await, before);
}

pub async fn the_namespace_goes_with_its_workspace() {
    let stage = Stage::shared().await;
    let name = stage.name("deleted");
    stage.create(&name, full(&name)).await;
    stage.ready(&name).await;
    stage.workspaces().delete(&name, &DeleteParams::default()).await.unwrap();
    stage.gone(&stage.workspaces(), &name).await;
    stage.gone(&Api::<Namespace>::all(stage.client.clone()), &name).await;
}
