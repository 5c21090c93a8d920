// SPDX-License-Identifier: Apache-2.0
//! What people do to the children by hand.

use kube::{
    ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::stage::{Stage, eventually, full};

const THEIRS: &str = "example.com/theirs";

pub async fn edits_are_undone_but_what_others_add_stays() {
    let stage = Stage::shared().await;
    let name = stage.name("edited");
    stage.create(&name, full(&name)).await;
    stage.ready(&name).await;
    let instance = json!({"metadata": {"labels": {"app.kubernetes.io/instance": "mallory"}}});
    // Each edit also takes a field of ours; without the component label the child leaves our watch.
    let edits = [
        (instance, "/metadata/labels/app.kubernetes.io~1instance"),
        (
            json!({"subjects": [{"kind": "User", "name": "mallory", "apiGroup": "rbac.authorization.k8s.io"}]}),
            "/subjects",
        ),
        (json!({"metadata": {"labels": {"app.kubernetes.io/component": null}}}), "/metadata/labels"),
        (json!({"spec": {"hard": {"requests.cpu": "999"}}}), "/spec/hard/requests.cpu"),
        (json!({"spec": {"limits": [{"type": "Pod", "max": {"cpu": "9"}}]}}), "/spec/limits"),
        (json!({"spec": {"ingress": [{}]}}), "/spec/ingress"),
    ];
    for ((api, child), (edit, path)) in stage.children(&name).into_iter().zip(edits) {
        let theirs = json!({"metadata": {"labels": {THEIRS: "yes"}, "annotations": {THEIRS: "yes"}}});
        let hand = PatchParams { field_manager: Some("hand".into()), ..PatchParams::default() };
        let before = api.patch(&child, &hand, &Patch::Merge(theirs)).await.unwrap();
        let edited = api.patch(&child, &hand, &Patch::Merge(&edit)).await.unwrap();
        assert_ne!(at(&edited, path), at(&before, path), "{child}: the edit edits nothing");
        let after = eventually(&format!("{child} is restored"), async || {
            let now = api.get(&child).await.map_err(|error| error.to_string())?;
            if at(&now, path) == at(&before, path) { Ok(now) } else { Err(at(&now, path).to_string()) }
        })
        .await;
        assert_eq!((after.labels()[THEIRS].as_str(), after.annotations()[THEIRS].as_str()), ("yes", "yes"), "{child}");
        assert_eq!(after.uid(), before.uid(), "{child} is repaired, not made again");
    }
}

pub async fn fields_of_another_manager_stay() {
    let stage = Stage::shared().await;
    let name = stage.name("shared");
    stage.create(&name, full(&name)).await;
    stage.ready(&name).await;
    let (quotas, quota) = stage.children(&name).remove(3);
    let theirs = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": quota}, "spec": {"hard": {"pods": "7"}},
    });
    quotas.patch(&quota, &PatchParams::apply("another"), &Patch::Apply(&theirs)).await.unwrap();
    // A change of ours writes the object once more.
    stage.patch(&name, json!({"spec": {"resourceQuota": {"hard": {"requests.cpu": "5"}}}})).await;
    stage.ready(&name).await;
    let now = quotas.get(&quota).await.unwrap();
    assert_eq!(at(&now, "/spec/hard"), json!({"requests.cpu": "5", "requests.memory": "8Gi", "pods": "7"}));
    // And what we no longer want goes without it.
    stage.patch(&name, json!({"spec": {"resourceQuota": {"hard": {"requests.memory": null}}}})).await;
    stage.ready(&name).await;
    assert_eq!(at(&quotas.get(&quota).await.unwrap(), "/spec/hard"), json!({"requests.cpu": "5", "pods": "7"}));
}

pub async fn deleted_children_come_back() {
    let stage = Stage::shared().await;
    let name = stage.name("erased");
    stage.create(&name, full(&name)).await;
    stage.ready(&name).await;
    // The namespace itself has a test of its own.
    for (api, child) in stage.children(&name).into_iter().skip(1) {
        let before = api.get(&child).await.unwrap();
        api.delete(&child, &DeleteParams::default()).await.unwrap();
        let after = eventually(&format!("{child} comes back"), async || match api.get_opt(&child).await {
            Ok(Some(now)) if now.uid() != before.uid() => Ok(now),
            other => Err(format!("{other:?}")),
        })
        .await;
        let wanted = |object: &DynamicObject| (at(object, "/spec"), at(object, "/subjects"), object.labels().clone());
        assert_eq!(wanted(&after), wanted(&before), "{child}");
    }
    stage.ready(&name).await;
}

fn at(object: &DynamicObject, path: &str) -> Value {
    serde_json::to_value(object).unwrap().pointer(path).cloned().unwrap_or_default()
}
