// SPDX-License-Identifier: Apache-2.0
//! What members may really do, asked of the API server with their own credentials.

use k8s_openapi::api::{
    core::v1::{ConfigMap, ServiceAccount},
    rbac::v1::RoleBinding,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, ObjectMeta, PostParams},
};
use serde_json::{Value, json};

use super::stage::{Stage, eventually};

pub async fn users_groups_and_service_accounts_get_exactly_their_role() {
    let stage = Stage::shared().await;
    let name = stage.name("people");
    let home = stage.world.namespace("robots").await;
    let robot = format!("system:serviceaccount:{}:default", home.name());
    let spec = json!({"namespace": name, "members": [
        {"role": "admin", "subject": "ada"},
        {"role": "edit", "subject": "bob@example.com", "name": "Bob"},
        {"role": "edit", "subject": "research", "kind": "Group"},
        {"role": "view", "subject": "王小明"},
        {"role": "view", "subject": robot, "kind": "ServiceAccount"},
    ]});
    stage.create(&name, spec).await;
    let workspace = stage.ready(&name).await;

    let hashed = workspace.labels().keys().filter(|key| key.starts_with("user.otterscale.io/hash-")).count();
    assert_eq!(hashed, 3, "what is no label key is hashed: {:?}", workspace.labels());
    assert_eq!(workspace.labels()["user.otterscale.io/research"], "true");
    let bindings = stage.inside::<RoleBinding>(&name);
    let subjects = |binding: RoleBinding| serde_json::to_value(binding.subjects).unwrap();
    let rbac = |kind: &str, name: &str| json!({"kind": kind, "name": name, "apiGroup": "rbac.authorization.k8s.io"});
    let edit = subjects(bindings.get("workspace-role-binding-edit").await.unwrap());
    assert_eq!(edit, Value::from(vec![rbac("User", "bob@example.com"), rbac("Group", "research")]));
    let view = subjects(bindings.get("workspace-role-binding-view").await.unwrap());
    let account = json!({"kind": "ServiceAccount", "namespace": home.name(), "name": "default"});
    assert_eq!(view, Value::from(vec![rbac("User", "王小明"), account]));

    let bob = stage.world.client_as("bob@example.com", &[]).await;
    let carol = stage.world.client_as("carol", &["research"]).await;
    let viewer = stage.world.client_as("王小明", &[]).await;
    let stranger = stage.world.client_as("mallory", &[]).await;
    for (who, config) in [(&bob, "bobs"), (&carol, "carols")] {
        eventually(&format!("{config} is made"), async || write(who, &name, config).await).await;
    }
    for reader in [&viewer, &robot_client(&stage, home.name()).await] {
        eventually("a viewer reads", async || read(reader, &name).await).await;
        assert!(write(reader, &name, "views").await.unwrap_err().contains("forbidden"));
    }
    assert!(read(&stranger, &name).await.unwrap_err().contains("forbidden"));
    assert!(write(&bob, "default", "outside").await.unwrap_err().contains("forbidden"));
}

async fn robot_client(stage: &Stage, namespace: &str) -> Client {
    let accounts = stage.inside::<ServiceAccount>(namespace);
    eventually("the default account is made", async || match accounts.get_opt("default").await {
        Ok(Some(_)) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    stage.world.client_for_service_account(namespace, "default").await
}

async fn write(client: &Client, namespace: &str, name: &str) -> Result<(), String> {
    let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
    let config = ConfigMap { metadata, ..ConfigMap::default() };
    let made = Api::namespaced(client.clone(), namespace).create(&PostParams::default(), &config).await;
    made.map(|_| ()).map_err(|error| error.to_string())
}

async fn read(client: &Client, namespace: &str) -> Result<(), String> {
    let listed = Api::<ConfigMap>::namespaced(client.clone(), namespace).list(&ListParams::default()).await;
    listed.map(|_| ()).map_err(|error| error.to_string())
}
