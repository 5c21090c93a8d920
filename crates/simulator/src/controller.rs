// SPDX-License-Identifier: Apache-2.0
//! What a controller of the simulated cluster is.

use std::fmt::Debug;

use jiff::Timestamp;
use k8s_openapi::{Metadata, api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use serde::Serialize;

use crate::{
    kinds::{Object, View},
    request::{self, Propagation, Target, Told, Write},
    shelf::Key,
};

/// One controller: it looks after the objects of one kind, one key at a time.
pub trait Controller: Debug + Send {
    fn name(&self) -> &'static str;

    /// The keys to look at again when this object came, changed or went. It is asked about the object before and after
    /// the change.
    fn concerns(&self, object: &Object, view: &View) -> Vec<Key>;

    /// What to write for one key. Pure: the same view and moment give the same plan. A controller may remember things,
    /// but nothing that a restart must not lose.
    fn plan(&mut self, key: &Key, view: &View, moment: &Moment<'_>) -> Plan;
}

/// When a plan is made.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    pub now: Timestamp,
    /// Why the last plan for this key failed, if it did.
    pub refusal: Option<&'a Refusal>,
}

/// Why the server did not accept a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    pub code: u16,
    pub reason: String,
    pub message: String,
}

/// What to write now, and when to look again.
#[derive(Debug, Default)]
pub struct Plan {
    /// In this order. The first one that fails ends the plan; the key is looked at again a little later.
    pub writes: Vec<Write>,
    /// Look at the key again at this time, even if nothing changes.
    pub again: Option<Timestamp>,
}

/// What can be written about.
pub trait Subject: Metadata<Ty = ObjectMeta> + Serialize {}

impl<K: Metadata<Ty = ObjectMeta> + Serialize> Subject for K {}

impl Plan {
    pub fn create<K: Subject>(&mut self, object: &K) {
        self.writes.push(Write::Create { target: Target::of(object), body: request::body(object), told: None });
    }

    /// Creates a pod and tells it as an event about whoever wanted it.
    pub fn create_pod<K: Subject>(&mut self, pod: &Pod, wanted_by: &K) {
        let told = Told { about: Target::of(wanted_by), reason: "SuccessfulCreate", words: "Created pod: " };
        self.writes.push(Write::Create { target: Target::of(pod), body: request::body(pod), told: Some(told) });
    }

    /// Deletes a pod and tells it as an event about whoever does not want it any more.
    pub fn delete_pod<K: Subject>(&mut self, pod: &Pod, wanted_by: &K) {
        self.delete(pod, Propagation::Background);
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        self.event(wanted_by, "SuccessfulDelete", format!("Deleted pod: {name}"));
    }

    /// Replaces an object. Its resourceVersion says which one was meant.
    pub fn update<K: Subject>(&mut self, object: &K) {
        self.writes.push(Write::Update { target: Target::of(object), body: request::body(object), part: None });
    }

    /// Replaces the status of an object.
    pub fn status<K: Subject>(&mut self, object: &K) {
        self.writes.push(Write::Update {
            target: Target::of(object),
            body: request::body(object),
            part: Some("status"),
        });
    }

    /// Changes metadata of exactly this object, whatever else has happened to it.
    pub fn patch_metadata<K: Subject>(&mut self, object: &K, metadata: serde_json::Value) {
        self.patch(object, serde_json::json!({ "metadata": metadata }));
    }

    /// Merges fields, which must include metadata, into exactly this object.
    pub fn patch<K: Subject>(&mut self, object: &K, body: serde_json::Value) {
        self.writes.push(Write::Patch { target: Target::of(object), body });
    }

    /// Deletes exactly this object, not a later one of the same name.
    pub fn delete<K: Subject>(&mut self, object: &K, propagation: Propagation) {
        self.writes.push(Write::Delete { target: Target::of(object), propagation, grace_seconds: None });
    }

    /// Deletes a pod that nobody waits for: it has stopped, or its node is gone.
    pub fn remove<K: Subject>(&mut self, object: &K) {
        let propagation = Propagation::Background;
        self.writes.push(Write::Delete { target: Target::of(object), propagation, grace_seconds: Some(0) });
    }

    /// Gives a pod to a node.
    pub fn bind(&mut self, pod: &Pod, node: &str) {
        self.writes.push(Write::Bind { target: Target::of(pod), node: node.to_owned() });
    }

    /// Tells people what happened to an object.
    pub fn event<K: Subject>(&mut self, about: &K, reason: &'static str, note: impl Into<String>) {
        self.writes.push(Write::Event { about: Target::of(about), normal: true, reason, note: note.into() });
    }

    /// Tells people about trouble with an object.
    pub fn warning<K: Subject>(&mut self, about: &K, reason: &'static str, note: impl Into<String>) {
        self.writes.push(Write::Event { about: Target::of(about), normal: false, reason, note: note.into() });
    }

    /// Look again at the earliest of the times that were asked for.
    pub fn again_at(&mut self, at: Timestamp) {
        self.again = Some(self.again.map_or(at, |earlier| earlier.min(at)));
    }
}
