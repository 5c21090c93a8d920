// SPDX-License-Identifier: Apache-2.0
//! Whose an object is. A controller adopts orphans that its selector selects, and releases what it selects no more.

use std::sync::Arc;

use k8s_openapi::{
    Metadata,
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference},
};
use serde_json::json;

use crate::{
    controller::{Plan, Subject},
    labels,
    shelf::{Kept, Key, Shelf},
};

/// The objects of one owner, as they will be once the plan is carried out.
#[derive(Debug)]
pub struct Claimed<K> {
    pub objects: Vec<Arc<K>>,
    /// Orphans became ours, or some of ours became orphans: look again when that is written.
    pub changed: bool,
}

/// The reference to the owner that is the controller.
pub fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.as_deref().unwrap_or_default().iter().find(|owner| owner.controller == Some(true))
}

/// A reference to an owner that is the controller.
pub fn owned<K: Metadata<Ty = ObjectMeta>>(owner: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::API_VERSION.to_owned(),
        kind: K::KIND.to_owned(),
        name: owner.metadata().name.clone().unwrap_or_default(),
        uid: owner.metadata().uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The keys of the owners whom an object concerns: its controller, or everybody who would adopt it.
pub fn concerned<O: Kept>(
    meta: &ObjectMeta,
    owners: &Shelf<O>,
    selector: impl Fn(&O) -> Option<&LabelSelector>,
) -> Vec<Key> {
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    match controller_of(meta) {
        Some(owner) if owner.kind == O::KIND && owner.api_version == O::API_VERSION => {
            vec![Key::new(namespace, &owner.name)]
        }
        Some(_) => Vec::new(),
        None => owners
            .in_namespace(namespace)
            .filter(|owner| labels::selects(selector(owner), meta.labels.as_ref()))
            .map(|owner| Key::of(owner.metadata()))
            .collect(),
    }
}

/// What belongs to an owner. Adoptions and releases are planned; `finalizer` comes and goes with them.
pub fn claim<O, K>(
    plan: &mut Plan,
    owner: &O,
    selects: impl Fn(&K) -> bool,
    shelf: &Shelf<K>,
    finalizer: Option<&str>,
) -> Claimed<K>
where
    O: Metadata<Ty = ObjectMeta>,
    K: Kept + Subject,
{
    let meta = owner.metadata();
    let uid = meta.uid.as_deref().unwrap_or_default();
    let stays = meta.deletion_timestamp.is_none();
    let (ours, lost): (Vec<_>, Vec<_>) = shelf.owned_by(uid).cloned().partition(|object| selects(object));
    let orphans = shelf.in_namespace(meta.namespace.as_deref().unwrap_or_default()).filter(|object| {
        let found = object.metadata();
        stays && controller_of(found).is_none() && found.deletion_timestamp.is_none() && selects(object)
    });
    let mut claimed = Claimed { objects: ours, changed: false };
    for orphan in orphans {
        adopt(plan, &**orphan, owned(owner), finalizer);
        claimed.changed = true;
    }
    for object in lost.iter().filter(|_| stays) {
        release(plan, &**object, uid, finalizer);
        claimed.changed = true;
    }
    claimed
}

fn adopt<K: Subject>(plan: &mut Plan, object: &K, owner: OwnerReference, finalizer: Option<&str>) {
    let meta = object.metadata();
    let mut owners = meta.owner_references.clone().unwrap_or_default();
    owners.push(owner);
    let mut patch = json!({ "ownerReferences": owners });
    if let (Some(finalizer), Some(fields)) = (finalizer, patch.as_object_mut()) {
        let mut finalizers = meta.finalizers.clone().unwrap_or_default();
        finalizers.retain(|one| one != finalizer);
        finalizers.push(finalizer.to_owned());
        fields.insert("finalizers".to_owned(), json!(finalizers));
    }
    plan.patch_metadata(object, patch);
}

fn release<K: Subject>(plan: &mut Plan, object: &K, uid: &str, finalizer: Option<&str>) {
    let meta = object.metadata();
    let owners = meta.owner_references.iter().flatten().filter(|owner| owner.uid != uid).collect::<Vec<_>>();
    let kept = meta.finalizers.iter().flatten().filter(|one| Some(one.as_str()) != finalizer).collect::<Vec<_>>();
    plan.patch_metadata(object, json!({ "ownerReferences": owners, "finalizers": kept }));
}
