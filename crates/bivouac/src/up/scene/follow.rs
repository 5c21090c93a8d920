// SPDX-License-Identifier: Apache-2.0
//! Following the server: watches in, picture out.

use futures::StreamExt;
use kube::{
    Api, Client, ResourceExt,
    api::ListParams,
    core::{ApiResource, DynamicObject, GroupVersionKind},
    runtime::{WatchStreamExt, watcher},
};
use tokio::{sync::watch, task::JoinSet};

use super::{Happening, Item, Key, Scene};

/// What people look at besides our own kinds.
const OTHERS: [(&str, &str, &str); 5] = [
    ("apps", "Deployment", "deployments"),
    ("apps", "StatefulSet", "statefulsets"),
    ("batch", "Job", "jobs"),
    ("", "Node", "nodes"),
    ("", "Pod", "pods"),
];

/// Our kinds, then the others.
fn kinds() -> Vec<ApiResource> {
    let ours = bivouac_api::crds().into_iter().filter_map(|crd| {
        let version = crd.spec.versions.iter().find(|version| version.storage)?;
        let gvk = GroupVersionKind::gvk(&crd.spec.group, &version.name, &crd.spec.names.kind);
        Some(ApiResource::from_gvk_with_plural(&gvk, &crd.spec.names.plural))
    });
    let others = OTHERS.map(|(group, kind, plural)| {
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", kind), plural)
    });
    ours.chain(others).collect()
}

/// Keeps the picture true for as long as the future runs.
pub async fn follow(client: Client, scene: watch::Sender<Scene>) {
    let mut following = JoinSet::new();
    for (rank, resource) in kinds().into_iter().enumerate() {
        following.spawn(objects(client.clone(), rank, resource, scene.clone()));
    }
    following.spawn(events(client, scene));
    while following.join_next().await.is_some() {}
}

async fn objects(client: Client, rank: usize, resource: ApiResource, scene: watch::Sender<Scene>) {
    let key = |object: &DynamicObject| Key {
        rank,
        kind: resource.kind.clone(),
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
    };
    let mut news = watching(client, &resource);
    while let Some(event) = news.next().await {
        match event {
            Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => {
                let (key, item) = (key(&object), Item::of(&resource.kind, &object));
                scene.send_if_modified(|scene| scene.items.insert(key, item.clone()) != Some(item));
            }
            Ok(watcher::Event::Delete(object)) => {
                let key = key(&object);
                scene.send_if_modified(|scene| scene.items.remove(&key).is_some());
            }
            // A new list follows: what is not in it is gone.
            Ok(watcher::Event::Init) => scene.send_modify(|scene| scene.items.retain(|key, _| key.rank != rank)),
            Ok(watcher::Event::InitDone) => {}
            Err(error) => tracing::debug!(kind = resource.kind, %error, "the view lost sight and looks again"),
        }
    }
}

async fn events(client: Client, scene: watch::Sender<Scene>) {
    let gvk = GroupVersionKind::gvk("events.k8s.io", "v1", "Event");
    let mut news = watching(client, &ApiResource::from_gvk_with_plural(&gvk, "events"));
    while let Some(event) = news.next().await {
        if let Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) = event
            && let Some(event) = Happening::of(&object)
        {
            scene.send_modify(|scene| scene.note(event));
        }
    }
}

fn watching(
    client: Client,
    resource: &ApiResource,
) -> futures::stream::BoxStream<'static, watcher::Result<watcher::Event<DynamicObject>>> {
    let api = Api::<DynamicObject>::all_with(client, resource);
    watcher(api, watcher::Config::default().streaming_lists()).default_backoff().boxed()
}

/// One look at everything, without staying.
pub async fn look(client: &Client, scene: &mut Scene) -> Result<(), kube::Error> {
    for (rank, resource) in kinds().into_iter().enumerate() {
        let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
        for object in api.list(&ListParams::default()).await?.items {
            let namespace = object.namespace().unwrap_or_default();
            let key = Key { rank, kind: resource.kind.clone(), namespace, name: object.name_any() };
            scene.items.insert(key, Item::of(&resource.kind, &object));
        }
    }
    Ok(())
}
