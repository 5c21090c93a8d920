// SPDX-License-Identifier: Apache-2.0
//! A plan is data: everything one pass wants to be true, decided before anything is written.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use kube::core::ApiResource;
use serde_json::Value;

use super::Kind;
use crate::mirror::Key;

/// What a controller wants for one object. `apply` runs it without further choices.
#[derive(Debug)]
pub struct Plan<Status, Effect = NoEffect> {
    /// Children in stages: a stage starts when the one before it stands. Owned children that no stage names are
    /// deleted after all stages stand.
    pub stages: Vec<Vec<Child>>,
    /// False keeps surplus children, for example while the world is only half seen.
    pub prune: bool,
    /// Metadata this controller sets on the object itself. Only for what admission could not do.
    pub labels: Option<OwnLabels>,
    /// Things to do outside Kubernetes, after the children stand.
    pub effects: Vec<Effect>,
    /// Told when the effects are done, whatever the conditions say.
    pub deeds: Vec<Note>,
    /// The status without its conditions. `None` leaves the status alone.
    pub status: Option<Status>,
    pub conditions: Vec<Verdict>,
    /// How long a changed status may wait for one that makes it out of date. Zero tells it at once.
    pub patience: Duration,
    /// Told once, when this pass changes a condition.
    pub events: Vec<Note>,
    /// Look again after this time even if nothing changes. `None` waits for a change.
    pub requeue: Option<Duration>,
}

/// The effect type of controllers that do nothing outside Kubernetes.
#[derive(Debug)]
pub enum NoEffect {}

impl<Status, Effect> Default for Plan<Status, Effect> {
    fn default() -> Self {
        Self {
            stages: Vec::new(),
            prune: true,
            labels: None,
            effects: Vec::new(),
            deeds: Vec::new(),
            status: None,
            conditions: Vec::new(),
            patience: Duration::ZERO,
            events: Vec::new(),
            requeue: None,
        }
    }
}

impl<Status, Effect> Plan<Status, Effect> {
    /// True when a release has nothing left to do or to wait for: the finalizer may go.
    pub fn is_done(&self) -> bool {
        self.stages.iter().all(Vec::is_empty) && self.effects.is_empty() && self.requeue.is_none()
    }

    pub fn children(&self) -> impl Iterator<Item = &Child> {
        self.stages.iter().flatten()
    }
}

/// One object we want to exist, typed until here.
#[derive(Clone, Debug)]
pub struct Child {
    pub resource: ApiResource,
    pub key: Key,
    pub body: Value,
    pub only: Only,
}

/// When a child may be written. The API server checks it, so a race cannot slip through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Only {
    /// Create it or take over the fields we want.
    #[default]
    Always,
    /// Create it, or change the very object that was seen. One that nobody saw is somebody else's until it is looked at.
    IfOurs,
    /// Never touch an object that exists already.
    IfAbsent,
    /// Only this very object, not one that took its name since.
    IfUid(String),
}

impl Child {
    pub fn of<K: Kind>(object: &K) -> Self {
        // Kubernetes types have string keys only: they always serialise.
        let body = serde_json::to_value(object).unwrap_or_default();
        Self { resource: ApiResource::erase::<K>(&()), key: Key::of(object), body, only: Only::Always }
    }

    pub fn only(mut self, only: Only) -> Self {
        self.only = only;
        self
    }
}

/// Labels under one prefix that mirror something in the object; others' labels are not touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnLabels {
    pub prefix: &'static str,
    pub labels: std::collections::BTreeMap<String, String>,
}

impl OwnLabels {
    /// The labels to set and to remove (as `None`) so that exactly ours remain under the prefix.
    pub fn missing_from(&self, meta: &ObjectMeta) -> std::collections::BTreeMap<String, Option<String>> {
        let empty = std::collections::BTreeMap::new();
        let live = meta.labels.as_ref().unwrap_or(&empty);
        let set = self.labels.iter().filter(|(key, value)| live.get(*key) != Some(value));
        let stale = live.keys().filter(|key| key.starts_with(self.prefix) && !self.labels.contains_key(*key));
        set.map(|(key, value)| (key.clone(), Some(value.clone()))).chain(stale.map(|key| (key.clone(), None))).collect()
    }
}

/// A condition without its times: those are bookkeeping, added when the status is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub type_: &'static str,
    pub status: Truth,
    pub reason: &'static str,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    True,
    False,
    Unknown,
}

impl Truth {
    pub fn as_str(self) -> &'static str {
        match self {
            Truth::True => "True",
            Truth::False => "False",
            Truth::Unknown => "Unknown",
        }
    }
}

impl Verdict {
    /// Whether a live condition says the same.
    pub fn agrees_with(&self, live: &Condition) -> bool {
        live.type_ == self.type_
            && live.status == self.status.as_str()
            && live.reason == self.reason
            && live.message == self.message
    }
}

/// Something worth telling the owner of the object, as a Kubernetes event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub warning: bool,
    pub reason: &'static str,
    pub action: &'static str,
    pub text: String,
}
