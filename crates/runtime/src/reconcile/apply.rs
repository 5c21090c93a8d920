// SPDX-License-Identifier: Apache-2.0
//! The writing half of a pass: server-side apply, deletion of surplus, finalizers. No choices are made here.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions, ValidationDirective},
    core::{ApiResource, DynamicObject, PartialObjectMeta},
};
use serde_json::{Value, json};

use super::{
    Kind,
    children::{Children, Failure, unpacked},
    containment::{contains, fingerprint},
    error::Error,
    inherit::taken_over,
    plan::{Child, Only},
};
use crate::mirror::{Key, OWNER_LABEL};

/// The hash of the body we applied last. It finds fields that a newer version no longer wants.
pub const APPLIED_ANNOTATION: &str = "bivouac.dev/applied";

/// The hands of one controller.
#[derive(Clone)]
pub(super) struct Writer {
    pub client: Client,
    /// `bivouac-NAME`
    pub manager: String,
    pub predecessors: &'static [&'static str],
}

/// A dressed child beside what exists of it.
#[derive(Debug)]
pub(super) struct Dressed {
    pub child: Child,
    pub live: Option<Arc<DynamicObject>>,
    /// The hash of the child before it was dressed.
    pub wish: u64,
}

/// Server-side apply by force. The server refuses a field that it does not know in any case; what it would check beyond
/// that is whether a field is said twice, for which it reads the whole body a second time. A serializer says none twice.
pub fn by_force(manager: &str) -> PatchParams {
    PatchParams { field_validation: Some(ValidationDirective::Ignore), ..PatchParams::apply(manager).force() }
}

/// Adds what every child of ours carries: its owner, the owner's label, and the hash of all of it.
pub fn dress<K: Kind>(mut child: Child, owner: &K) -> Child {
    let uid = owner.meta().uid.clone().unwrap_or_default();
    let meta = entry(&mut child.body, "metadata");
    if let Some(reference) = owner.controller_owner_ref(&()) {
        meta["ownerReferences"] = json!([OwnerReference { block_owner_deletion: Some(true), ..reference }]);
    }
    entry(meta, "labels")[OWNER_LABEL] = json!(uid);
    let hash = fingerprint(&child.body);
    entry(entry(&mut child.body, "metadata"), "annotations")[APPLIED_ANNOTATION] = json!(hash);
    child
}

impl Dressed {
    /// True when the object exists and was never applied by us.
    fn is_inherited(&self) -> bool {
        self.live.as_ref().is_some_and(|live| !live.annotations().contains_key(APPLIED_ANNOTATION))
    }

    /// True when the live object already holds all of it.
    pub fn stands(&self) -> bool {
        // A terminating object cannot be repaired; the plan decides what that means.
        self.live.as_ref().is_some_and(|live| {
            live.metadata.deletion_timestamp.is_none() && contains(&unpacked(live), &self.child.body)
        })
    }
}

/// The object under `key`, made when absent.
fn entry<'a>(value: &'a mut Value, key: &str) -> &'a mut Value {
    if !value.is_object() {
        *value = json!({});
    }
    let slot = &mut value[key];
    if !slot.is_object() {
        *slot = json!({});
    }
    slot
}

impl Writer {
    /// Applies by force: fields we want are ours, fields of others stay theirs. What the server makes of it counts as what
    /// was wanted, also where it keeps some of it in another form: asked again, it would answer the same.
    pub async fn apply(&self, mut dressed: Dressed, children: &Children) -> Result<(), Failure> {
        let applied = self.write(&mut dressed, children).await;
        let Dressed { child, wish, .. } = dressed;
        match applied {
            Ok(version) => {
                children.holds(&child, version.as_deref(), wish);
                Ok(())
            }
            Err(error) => Err(Failure { kind: child.resource.kind, key: child.key, error }),
        }
    }

    /// Returns the version that the server made.
    async fn write(&self, dressed: &mut Dressed, children: &Children) -> Result<Option<String>, Error> {
        if dressed.is_inherited() && !self.predecessors.is_empty() {
            self.take_over(&dressed.child).await?;
        }
        let Dressed { child, live, .. } = dressed;
        let seen = live.as_ref().and_then(|live| live.uid());
        let meta = entry(&mut child.body, "metadata");
        match (&child.only, &seen) {
            (Only::Always, _) => {}
            // No object ever has this version: the server answers with a conflict if one exists.
            (Only::IfAbsent, _) | (Only::IfOurs, None) => meta["resourceVersion"] = json!("1"),
            (Only::IfUid(uid), _) | (Only::IfOurs, Some(uid)) => meta["uid"] = json!(uid),
        }
        let (params, patch) = (by_force(&self.manager), Patch::Apply(&child.body));
        let applied = self.api(&child.resource, &child.key).patch(&child.key.name, &params, &patch).await;
        let applied = applied.map_err(|error| Error::api(doing("apply", &child.resource, &child.key), error))?;
        let version = applied.resource_version();
        kept(children, &child.resource, applied);
        Ok(version)
    }

    /// Whether the server still has this very object, not on its way out. Who may list may ask this.
    pub async fn lives<K: Kind>(&self, object: &K) -> Result<bool, Error> {
        let (resource, key) = (ApiResource::erase::<K>(&()), Key::of(object));
        let only = ListParams::default().fields(&format!("metadata.name={}", key.name));
        let found = self.api(&resource, &key).list_metadata(&only).await;
        let found = found.map_err(|error| Error::api(doing("look for", &resource, &key), error))?;
        let same = |one: &PartialObjectMeta<DynamicObject>| one.metadata.uid == object.meta().uid;
        Ok(found.items.iter().any(|one| same(one) && one.metadata.deletion_timestamp.is_none()))
    }

    /// Makes the predecessors' fields of an object ours, unless it changed meanwhile.
    async fn take_over(&self, child: &Child) -> Result<(), Error> {
        let wrong = |error| Error::api(doing("take over", &child.resource, &child.key), error);
        let api = self.api(&child.resource, &child.key);
        let Some(live) = api.get_opt(&child.key.name).await.map_err(wrong)? else { return Ok(()) };
        if let Some(fields) = taken_over(live.managed_fields(), self.predecessors, &self.manager) {
            let patch = json!({"metadata": {"resourceVersion": live.resource_version(), "managedFields": fields}});
            api.patch(&child.key.name, &PatchParams::default(), &Patch::Merge(&patch)).await.map_err(wrong)?;
        }
        Ok(())
    }

    /// Deletes this very object; one that took its name since is left alone.
    pub async fn delete(
        &self,
        resource: &ApiResource,
        object: &DynamicObject,
        children: &Children,
    ) -> Result<(), Error> {
        let key = Key::of(object);
        let preconditions = Preconditions { uid: object.uid(), resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match self.api(resource, &key).delete(&key.name, &params).await {
            Ok(answer) => {
                // Some kinds answer with the deleted object, held by finalizers or gone; others with a Status.
                match answer.left().filter(|rest| rest.metadata.deletion_timestamp.is_some()) {
                    Some(held) => kept(children, resource, held),
                    None => gone(children, resource, &key),
                }
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.is_not_found() => {
                gone(children, resource, &key);
                Ok(())
            }
            Err(error) => Err(Error::api(doing("delete", resource, &key), error)),
        }
    }

    /// Sets the status by server-side apply, and removes what an earlier writer left in it.
    pub async fn status<K: Kind>(
        &self,
        object: &K,
        body: &Value,
        leftovers: &[String],
    ) -> Result<DynamicObject, Error> {
        let resource = ApiResource::erase::<K>(&());
        let written = self.raw_status(&resource, object, body).await?;
        let stays: serde_json::Map<String, Value> = leftovers
            .iter()
            .filter(|field| written.data.pointer(&format!("/status/{field}")).is_some())
            .map(|field| (field.clone(), Value::Null))
            .collect();
        if stays.is_empty() {
            return Ok(written);
        }
        let params = PatchParams { field_manager: Some(self.manager.clone()), ..PatchParams::default() };
        let patch = json!({"metadata": {"uid": object.meta().uid}, "status": stays});
        let key = Key::of(object);
        let cleaned = self.api(&resource, &key).patch_status(&key.name, &params, &Patch::Merge(&patch)).await;
        cleaned.map_err(|error| Error::api(doing("clean the status of", &resource, &key), error))
    }

    /// Sets the status of an object whose type may be unknown.
    pub async fn raw_status<O: Resource>(
        &self,
        resource: &ApiResource,
        object: &O,
        body: &Value,
    ) -> Result<DynamicObject, Error> {
        let key = Key::of(object);
        let patch = json!({
            "apiVersion": resource.api_version, "kind": resource.kind,
            "metadata": {"name": key.name, "uid": object.meta().uid}, "status": body,
        });
        let params = by_force(&self.manager);
        let written = self.api(resource, &key).patch_status(&key.name, &params, &Patch::Apply(&patch)).await;
        written.map_err(|error| Error::api(doing("write the status of", resource, &key), error))
    }

    /// Sets or removes single labels of the object itself.
    pub async fn labels<K: Kind>(
        &self,
        object: &K,
        labels: &std::collections::BTreeMap<String, Option<String>>,
    ) -> Result<(), Error> {
        let patch = json!({"metadata": {"uid": object.meta().uid, "labels": labels}});
        self.merge(object, &patch, "label").await
    }

    /// Writes the list of finalizers, refused when the object changed since it was read.
    pub async fn finalizers<K: Kind>(&self, object: &K, finalizers: &[String]) -> Result<(), Error> {
        let version = object.meta().resource_version.clone();
        let patch = json!({"metadata": {"resourceVersion": version, "finalizers": finalizers}});
        self.merge(object, &patch, "set the finalizers of").await
    }

    async fn merge<K: Kind>(&self, object: &K, patch: &Value, verb: &str) -> Result<(), Error> {
        let resource = ApiResource::erase::<K>(&());
        let key = Key::of(object);
        let params = PatchParams { field_manager: Some(self.manager.clone()), ..PatchParams::default() };
        match self.api(&resource, &key).patch(&key.name, &params, &Patch::Merge(patch)).await {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::api(doing(verb, &resource, &key), error)),
        }
    }

    fn api(&self, resource: &ApiResource, key: &Key) -> Api<DynamicObject> {
        if key.namespace.is_empty() {
            Api::all_with(self.client.clone(), resource)
        } else {
            Api::namespaced_with(self.client.clone(), &key.namespace, resource)
        }
    }
}

fn kept(children: &Children, resource: &ApiResource, object: DynamicObject) {
    if let Some(mirror) = children.mirror_of(resource) {
        mirror.wrote(object);
    }
}

fn gone(children: &Children, resource: &ApiResource, key: &Key) {
    if let Some(mirror) = children.mirror_of(resource) {
        mirror.erased(key);
    }
}

fn doing(verb: &str, resource: &ApiResource, key: &Key) -> String {
    format!("{verb} {} {key}", resource.kind)
}
