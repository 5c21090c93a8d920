// SPDX-License-Identifier: Apache-2.0
//! The child kinds of one controller: one mirror each, some of them only while their API is served.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::{Stream, StreamExt, stream::BoxStream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Api, Client, ResourceExt,
    core::{ApiResource, DynamicObject, GroupVersionKind},
    runtime::{reflector::ObjectRef, watcher},
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{Kind, error::Error, gather::Heard, plan::Child};
use crate::{
    capabilities::{Capabilities, Presence},
    mirror::{Change, Key, Mirror},
};

/// How long a start waits for the first lists of optional kinds.
const OPTIONAL_PATIENCE: Duration = Duration::from_secs(10);

/// The live children of a controller, for all its objects.
#[derive(Clone, Debug, Default)]
pub struct Children(BTreeMap<GroupKind, Arc<Shelf>>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct GroupKind(String, String);

/// One child kind.
#[derive(Debug)]
struct Shelf {
    resource: ApiResource,
    mirror: Arc<Mirror<DynamicObject>>,
    selector: Option<String>,
    /// Present for kinds that a cluster may lack.
    optional: Option<Capabilities>,
    /// False for kinds whose deletion would take other people's data along.
    prune: bool,
}

/// A write that the server refused, told to the next plan so that it can say why.
#[derive(Debug)]
pub struct Failure {
    pub kind: String,
    pub key: Key,
    pub error: Error,
}

/// What `observe` may read about the children of one object.
#[derive(Debug)]
pub struct Live<'a> {
    children: &'a Children,
    failures: &'a [Failure],
}

// === impl Children ===

impl Children {
    /// Watches a child kind that every cluster has, narrowed by a label selector.
    pub fn kind<K: Kind>(self, selector: Option<&str>) -> Self {
        self.shelf::<K>(|shelf| Shelf { selector: selector.map(str::to_owned), ..shelf })
    }

    /// As [`Children::kind`], for plans that read what the child reports in its status. `trim` drops the rest of it, and
    /// ends with [`pack_whole`].
    pub fn reporting<K: Kind>(self, selector: Option<&str>, trim: fn(&mut DynamicObject)) -> Self {
        self.shelf::<K>(|shelf| {
            let mirror = Mirror::new(shelf.mirror.name(), trim);
            Shelf { mirror, selector: selector.map(str::to_owned), ..shelf }
        })
    }

    /// Watches all objects of a child kind and never deletes one, not even a surplus one.
    pub fn precious<K: Kind>(self) -> Self {
        self.shelf::<K>(|shelf| Shelf { prune: false, ..shelf })
    }

    /// Watches a child kind while its API is served.
    pub fn optional<K: Kind>(self, selector: Option<&str>, capabilities: &Capabilities) -> Self {
        let (selector, optional) = (selector.map(str::to_owned), Some(capabilities.clone()));
        self.shelf::<K>(|shelf| Shelf { selector, optional, ..shelf })
    }

    /// Reads all objects of a kind that is nobody's child, while its API is served.
    pub fn reads<K: Kind>(self, capabilities: &Capabilities) -> Self {
        let optional = Some(capabilities.clone());
        self.shelf::<K>(|shelf| {
            let mirror = Mirror::new(shelf.mirror.name(), |_| {});
            Shelf { mirror, optional, prune: false, ..shelf }
        })
    }

    fn shelf<K: Kind>(mut self, shape: impl FnOnce(Shelf) -> Shelf) -> Self {
        let resource = ApiResource::erase::<K>(&());
        let key = GroupKind(resource.group.clone(), resource.kind.clone());
        let mirror = Mirror::new(resource.plural.clone(), pack);
        let usual = Shelf { resource, mirror, selector: None, optional: None, prune: true };
        self.0.insert(key, Arc::new(shape(usual)));
        self
    }

    /// Starts every watch; they end with the token.
    pub fn follow(&self, client: &Client, base: &watcher::Config, stop: &CancellationToken) {
        for shelf in self.0.values() {
            let work = shelf.clone().follow(client.clone(), base.clone());
            tokio::spawn(stop.clone().run_until_cancelled_owned(work));
        }
    }

    /// Resolves when every kind that is served has been listed completely. Optional kinds get some time and no more: a
    /// start must neither tell half a story nor hang on somebody else's broken API.
    pub async fn wait_ready(&self) {
        let listed = async |shelves: Vec<&Arc<Shelf>>| {
            for shelf in shelves {
                shelf.mirror.wait_ready().await;
            }
        };
        let served = self.0.values().filter(|shelf| shelf.is_served());
        let (optional, needed) = served.partition(|shelf| shelf.optional.is_some());
        listed(needed).await;
        // Those that took too long are unknown to the plans, and come in later.
        let _ = tokio::time::timeout(OPTIONAL_PATIENCE, listed(optional)).await;
    }

    /// The kinds that are still being listed, and what is in their way.
    pub fn unready(&self) -> Vec<String> {
        let waiting = self.0.values().filter(|shelf| shelf.is_served() && !shelf.mirror.is_ready());
        let words = |shelf: &Arc<Shelf>| match shelf.mirror.trouble() {
            Some(trouble) => format!("{} ({trouble})", shelf.resource.plural),
            None => shelf.resource.plural.clone(),
        };
        waiting.map(words).collect()
    }

    /// The owners whose children changed, from all kinds together. A child that is gone is no echo of our own write, and
    /// nobody should see the gap.
    pub fn owners_touched<K: Kind>(&self) -> impl Stream<Item = Heard<ObjectRef<K>>> + Send + 'static {
        let streams = self.0.values().map(|shelf| shelf.mirror.changes().flat_map(owners_of::<K>).boxed());
        futures::stream::select_all(streams.collect::<Vec<BoxStream<'static, _>>>())
    }

    /// What happens to one child kind, for triggers that ownership does not explain.
    pub fn changes<K: Kind>(&self) -> BoxStream<'static, Change<DynamicObject>> {
        match self.mirror_of(&ApiResource::erase::<K>(&())) {
            Some(mirror) => mirror.changes().boxed(),
            None => futures::stream::empty().boxed(),
        }
    }

    /// Ticks when an optional kind came or went and its mirror is in order.
    pub(super) fn comings_and_goings(&self) -> impl Stream<Item = ()> + Send + 'static {
        let optional = self.0.values().filter(|shelf| shelf.optional.is_some());
        futures::stream::select_all(optional.map(|shelf| shelf.mirror.readiness().boxed()).collect::<Vec<_>>())
    }

    pub(super) fn mirror_of(&self, child: &ApiResource) -> Option<&Arc<Mirror<DynamicObject>>> {
        self.0.get(&GroupKind(child.group.clone(), child.kind.clone())).map(|shelf| &shelf.mirror)
    }

    /// What exists of a child, and the hash of the wish that it holds as far as anybody compared.
    pub(super) fn live(&self, child: &Child) -> (Option<Arc<DynamicObject>>, Option<u64>) {
        self.mirror_of(&child.resource).map_or((None, None), |mirror| mirror.compared(&child.key))
    }

    /// Takes note that this version holds what is wanted of a child, or as much of it as the server keeps.
    pub(super) fn holds(&self, child: &Child, version: Option<&str>, wish: u64) {
        if let Some(mirror) = self.mirror_of(&child.resource) {
            mirror.holds(&child.key, version, wish);
        }
    }

    /// Everything that names this owner and may be deleted when no longer planned.
    pub(super) fn prunable(&self, uid: &str) -> Vec<(ApiResource, Arc<DynamicObject>)> {
        let of_shelf = |shelf: &Arc<Shelf>| {
            let resource = shelf.resource.clone();
            shelf.mirror.owned_by(uid).into_iter().map(move |object| (resource.clone(), object)).collect::<Vec<_>>()
        };
        self.0.values().filter(|shelf| shelf.prune).flat_map(of_shelf).collect()
    }

    pub(super) fn look<'a>(&'a self, failures: &'a [Failure]) -> Live<'a> {
        Live { children: self, failures }
    }
}

/// Children are kept as text: a tree of small maps takes ten times the room. What a child reports in its status is its
/// own affair; we compare only what we ask for.
fn pack(child: &mut DynamicObject) {
    if let Some(fields) = child.data.as_object_mut() {
        fields.remove("status");
        pack_whole(child);
    }
}

/// Keeps a child with its status.
pub fn pack_whole(child: &mut DynamicObject) {
    if child.data.is_object() {
        child.data = Value::String(child.data.to_string());
    }
}

/// The whole object, whether packed or as the server sent it.
pub(super) fn unpacked(child: &DynamicObject) -> Value {
    let mut whole = match &child.data {
        Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
        data => data.clone(),
    };
    if let (Some(fields), Ok(metadata)) = (whole.as_object_mut(), serde_json::to_value(&child.metadata)) {
        fields.insert("metadata".to_owned(), metadata);
        if let Some(types) = &child.types {
            fields.insert("apiVersion".to_owned(), types.api_version.clone().into());
            fields.insert("kind".to_owned(), types.kind.clone().into());
        }
    }
    whole
}

/// A new version of a child in which nothing has changed that a plan can see.
fn is_same(change: &Change<DynamicObject>) -> bool {
    let plain = |child: &DynamicObject| ObjectMeta { resource_version: None, ..child.metadata.clone() };
    match (&change.before, &change.after) {
        (Some(before), Some(after)) => before.data == after.data && plain(before) == plain(after),
        _ => false,
    }
}

fn owners_of<K: Kind>(change: Change<DynamicObject>) -> impl Stream<Item = Heard<ObjectRef<K>>> {
    let heard = if change.after.is_none() { Heard::Now } else { Heard::Soon };
    let owners = if is_same(&change) { Vec::new() } else { owners_in(&change) };
    futures::stream::iter(owners.into_iter().map(heard))
}

fn owners_in<K: Kind>(change: &Change<DynamicObject>) -> Vec<ObjectRef<K>> {
    let references = [&change.before, &change.after].into_iter().flatten().flat_map(|object| {
        // A cluster-scoped owner has no namespace, whatever its child has.
        let namespace = object.namespace().filter(|_| !K::is_cluster_scoped());
        object
            .owner_references()
            .iter()
            .filter_map(move |owner| ObjectRef::from_owner_ref(namespace.as_deref(), owner, ()))
    });
    let mut owners: Vec<ObjectRef<K>> = references.collect();
    owners.dedup();
    owners
}

// === impl Shelf ===

impl Shelf {
    fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::gvk(&self.resource.group, &self.resource.version, &self.resource.kind)
    }

    fn is_served(&self) -> bool {
        self.optional.as_ref().is_none_or(|capabilities| capabilities.presence(&self.gvk()) == Presence::Served)
    }

    fn presence(&self) -> Presence {
        match &self.optional {
            Some(capabilities) => match capabilities.presence(&self.gvk()) {
                // Served, but not yet listed: acting on the empty mirror would be acting on a half-seen world.
                Presence::Served if !self.mirror.is_ready() => Presence::Unknown,
                known => known,
            },
            None => Presence::Served,
        }
    }

    async fn follow(self: Arc<Self>, client: Client, base: watcher::Config) {
        let config = match &self.selector {
            Some(selector) => base.labels(selector),
            None => base,
        };
        let api = || Api::all_with(client.clone(), &self.resource);
        let Some(capabilities) = &self.optional else { return self.mirror.clone().follow(api(), config).await };
        let gvk = self.gvk();
        loop {
            capabilities.wait(&gvk, Presence::Served).await;
            tokio::select! {
                () = self.mirror.clone().follow(api(), config.clone()) => {}
                () = capabilities.wait(&gvk, Presence::Absent) => self.mirror.clear(),
            }
        }
    }
}

// === impl Live ===

impl Live<'_> {
    pub fn get<K: Kind>(&self, namespace: &str, name: &str) -> Option<Arc<DynamicObject>> {
        let resource = ApiResource::erase::<K>(&());
        self.children.mirror_of(&resource)?.get(&Key::new(namespace, name))
    }

    /// The same, as its type. `None` also when it cannot be read as that.
    pub fn read<K: Kind>(&self, namespace: &str, name: &str) -> Option<K> {
        serde_json::from_value(unpacked(&*self.get::<K>(namespace, name)?)).ok()
    }

    /// Takes note of a child that the watch does not show, because it does not carry our labels yet.
    pub fn found(&self, resource: &ApiResource, object: DynamicObject) {
        if let Some(mirror) = self.children.mirror_of(resource) {
            mirror.found(object);
        }
    }

    /// Takes note that such a child is gone.
    pub fn lost(&self, resource: &ApiResource, key: &Key) {
        if let Some(mirror) = self.children.mirror_of(resource) {
            mirror.erased(key);
        }
    }

    /// Whether the kind can be used now. `Unknown` must change nothing.
    pub fn presence<K: Kind>(&self) -> Presence {
        let resource = ApiResource::erase::<K>(&());
        let shelf = self.children.0.get(&GroupKind(resource.group, resource.kind));
        shelf.map_or(Presence::Absent, |shelf| shelf.presence())
    }

    /// The writes of this pass that were refused.
    pub fn failures(&self) -> &[Failure] {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::{Heard, owners_of, pack, unpacked};
    use crate::{mirror::Change, reconcile::Kind};
    use futures::{FutureExt, StreamExt};
    use k8s_openapi::{
        api::{apps::v1::ReplicaSet, core::v1::Node},
        apimachinery::pkg::apis::meta::v1::OwnerReference,
    };
    use kube::{
        core::{ApiResource, DynamicObject},
        runtime::reflector::ObjectRef,
    };
    use std::sync::Arc;

    fn owner(kind: &str, api_version: &str) -> OwnerReference {
        let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
        OwnerReference { api_version, kind, name: "owner".into(), uid: "1".into(), ..OwnerReference::default() }
    }

    fn heard<K: Kind>(kind: &str, api_version: &str, gone: bool) -> Vec<Heard<ObjectRef<K>>> {
        let mut child = DynamicObject::new("pod", &ApiResource::erase::<Node>(&())).within("team");
        child.metadata.owner_references = Some(vec![owner(kind, api_version)]);
        let (before, after) = if gone { (Some(Arc::new(child)), None) } else { (None, Some(Arc::new(child))) };
        owners_of::<K>(Change { before, after }).collect::<Vec<_>>().now_or_never().unwrap()
    }

    #[test]
    fn packing_loses_nothing_but_the_status() {
        let text =
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"b":"c"}},"data":{"x":"y"}}"#;
        let whole: serde_json::Value = serde_json::from_str(text).unwrap();
        let mut child: DynamicObject = serde_json::from_value(whole.clone()).unwrap();
        assert_eq!(unpacked(&child), whole);
        child.data["status"] = serde_json::json!({"used": 1});
        pack(&mut child);
        pack(&mut child);
        assert_eq!(unpacked(&child), whole);
    }

    #[test]
    fn a_cluster_scoped_owner_is_found_without_the_namespace_of_its_child() {
        let set = ObjectRef::new("owner").within("team");
        assert_eq!(heard::<Node>("Node", "v1", false), [Heard::Soon(ObjectRef::new("owner"))]);
        assert_eq!(heard::<ReplicaSet>("ReplicaSet", "apps/v1", false), [Heard::Soon(set)]);
        assert!(heard::<ReplicaSet>("Deployment", "apps/v1", false).is_empty());
    }

    #[test]
    fn what_nobody_can_see_is_not_heard() {
        let set = |version: &str, text: &str| {
            let mut child = DynamicObject::new("pod", &ApiResource::erase::<Node>(&())).within("team");
            child.metadata.resource_version = Some(version.into());
            child.metadata.owner_references = Some(vec![owner("ReplicaSet", "apps/v1")]);
            child.data = text.into();
            Some(Arc::new(child))
        };
        let count = |before, after| {
            let heard = owners_of::<ReplicaSet>(Change { before, after });
            heard.collect::<Vec<_>>().now_or_never().unwrap().len()
        };
        assert_eq!(count(set("1", "{}"), set("2", "{}")), 0);
        assert_eq!(count(set("1", "{}"), set("2", "{\"a\":1}")), 1);
        assert_eq!(count(None, set("2", "{}")), 1);
    }

    #[test]
    fn a_child_that_is_gone_cannot_wait() {
        assert_eq!(heard::<Node>("Node", "v1", true), [Heard::Now(ObjectRef::new("owner"))]);
    }
}
