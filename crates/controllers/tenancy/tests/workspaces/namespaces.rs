// SPDX-License-Identifier: Apache-2.0
//! Namespaces that are somebody else's, wanted twice, or deleted.

use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ObjectMeta, PostParams},
};
use serde_json::json;

use super::stage::{Stage, condition, eventually, full};

pub async fn a_foreign_namespace_is_left_alone_and_taken_when_it_is_gone() {
    let stage = Stage::shared().await;
    let name = stage.name("foreign");
    let namespaces = Api::<Namespace>::all(stage.client.clone());
    let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
    let foreign = Namespace { metadata, ..Namespace::default() };
    let foreign = namespaces.create(&PostParams::default(), &foreign).await.unwrap();

    stage.create(&name, full(&name)).await;
    let workspace = stage.says(&name, "Ready", "False/NamespaceConflict").await;
    assert!(condition(&workspace, "Ready").unwrap().message.contains("is not ours"));
    assert_eq!(workspace.status.unwrap().namespace_ref, None);
    let now = namespaces.get(&name).await.unwrap();
    assert!(now.owner_references().is_empty() && !now.labels().contains_key("app.kubernetes.io/managed-by"));
    assert_eq!(now.uid(), foreign.uid());

    namespaces.delete(&name, &DeleteParams::default()).await.unwrap();
    stage.ready(&name).await;
    assert_ne!(namespaces.get(&name).await.unwrap().uid(), foreign.uid());
}

pub async fn of_two_workspaces_for_one_namespace_the_later_waits() {
    let stage = Stage::shared().await;
    let (first, second, namespace) = (stage.name("first"), stage.name("second"), stage.name("wanted"));
    stage.create(&first, json!({"namespace": namespace})).await;
    stage.ready(&first).await;
    stage.create(&second, json!({"namespace": namespace})).await;
    let waiting = stage.says(&second, "Ready", "False/NamespaceConflict").await;
    assert!(condition(&waiting, "Ready").unwrap().message.contains(&format!("belongs to Workspace {first}")));
    stage.ready(&first).await;

    stage.workspaces().delete(&first, &DeleteParams::default()).await.unwrap();
    let workspace = stage.ready(&second).await;
    let owned = Api::<Namespace>::all(stage.client.clone()).get(&namespace).await.unwrap();
    assert_eq!(owned.owner_references()[0].uid, workspace.uid().unwrap());
}

pub async fn of_two_workspaces_made_at_once_exactly_one_gets_the_namespace() {
    let stage = Stage::shared().await;
    let names = [stage.name("twin-a"), stage.name("twin-b")];
    let spec = json!({"namespace": stage.name("contested")});
    tokio::join!(stage.create(&names[0], spec.clone()), stage.create(&names[1], spec));
    eventually("one is ready, the other says why not", async || {
        let mut words = Vec::new();
        for name in &names {
            let workspace = stage.workspaces().get(name).await.map_err(|error| error.to_string())?;
            words.push(condition(&workspace, "Ready").map(|ready| ready.reason.clone()).unwrap_or_default());
        }
        words.sort();
        if words == ["NamespaceConflict", "Reconciled"] { Ok(()) } else { Err(format!("{words:?}")) }
    })
    .await;
}

pub async fn a_deleted_namespace_is_made_again_with_everything_in_it() {
    let stage = Stage::shared().await;
    let name = stage.name("lost");
    stage.create(&name, full(&name)).await;
    stage.ready(&name).await;
    let namespaces = Api::<Namespace>::all(stage.client.clone());
    let before = namespaces.get(&name).await.unwrap();
    namespaces.delete(&name, &DeleteParams::default()).await.unwrap();
    eventually("the namespace comes back", async || match namespaces.get_opt(&name).await {
        Ok(Some(now)) if now.uid() != before.uid() => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    stage.ready(&name).await;
    for (api, child) in stage.children(&name) {
        assert!(api.get_opt(&child).await.unwrap().is_some(), "{child}");
    }
}

pub async fn a_workspace_made_again_under_its_old_name_gets_a_fresh_namespace() {
    let stage = Stage::shared().await;
    let name = stage.name("again");
    stage.create(&name, full(&name)).await;
    stage.ready(&name).await;
    let namespaces = Api::<Namespace>::all(stage.client.clone());
    let before = namespaces.get(&name).await.unwrap();
    stage.workspaces().delete(&name, &DeleteParams::default()).await.unwrap();
    stage.gone(&stage.workspaces(), &name).await;
    // The old namespace may still be on its way out.
    stage.create(&name, full(&name)).await;
    let workspace = stage.ready(&name).await;
    let now = namespaces.get(&name).await.unwrap();
    assert_ne!(now.uid(), before.uid());
    assert_eq!(now.owner_references()[0].uid, workspace.uid().unwrap());
}
