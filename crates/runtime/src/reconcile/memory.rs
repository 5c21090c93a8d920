// SPDX-License-Identifier: Apache-2.0
//! What a controller remembers of its own writes.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use kube::{ResourceExt, core::DynamicObject};
use serde_json::Value;
use tokio::time::Instant;

use super::{Kind, plan::Truth};
use crate::mirror::Key;

/// Short-lived knowledge about our own writes. Losing it costs requests, never correctness.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The status we wrote, until the watch shows that version or a later one.
    statuses: Mutex<HashMap<Key, Written>>,
    /// Objects whose children we wrote before, with their uids.
    made: Mutex<HashMap<Key, Option<String>>>,
    /// Since when an object has something to tell that may wait.
    untold: Mutex<HashMap<Key, Instant>>,
    /// What each object last said about its readiness.
    readiness: Mutex<HashMap<Key, Truth>>,
}

#[derive(Debug)]
struct Written {
    uid: Option<String>,
    version: u64,
    status: Value,
}

impl Memory {
    /// The newest status we know: the object's own, or what we wrote since.
    pub fn status<K: Kind>(&self, object: &K) -> Option<Value> {
        let seen = version(object.meta().resource_version.as_deref());
        let mut statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        let key = Key::of(object);
        match statuses.get(&key) {
            Some(written) if written.version > seen && written.uid == object.uid() => Some(written.status.clone()),
            _ => {
                statuses.remove(&key);
                drop(statuses);
                serde_json::to_value(object).ok()?.get_mut("status").map(Value::take)
            }
        }
    }

    pub fn wrote_status(&self, written: &DynamicObject) {
        let entry = Written {
            uid: written.uid(),
            version: version(written.metadata.resource_version.as_deref()),
            status: written.data.get("status").cloned().unwrap_or_default(),
        };
        self.statuses.lock().unwrap_or_else(PoisonError::into_inner).insert(Key::of(written), entry);
    }

    /// Forgets the status of an object that is gone.
    pub fn forget_status(&self, key: &Key) {
        self.statuses.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    pub fn made<K: Kind>(&self, object: &K) {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).insert(Key::of(object), object.uid());
    }

    pub fn has_made<K: Kind>(&self, object: &K) -> bool {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.get(&Key::of(object)).is_some_and(|uid| *uid == object.uid())
    }

    pub fn forget_made(&self, key: &Key) {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// How long the news about an object may still wait, of `patience` in sum.
    pub fn patience_left(&self, key: &Key, patience: Duration) -> Duration {
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        patience.saturating_sub(untold.entry(key.clone()).or_insert_with(Instant::now).elapsed())
    }

    /// Nothing is left to tell about an object.
    pub fn told(&self, key: &Key) {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// Notes what an object says of its readiness and returns what it said before.
    pub fn said(&self, key: &Key, ready: Option<Truth>) -> Option<Truth> {
        let mut readiness = self.readiness.lock().unwrap_or_else(PoisonError::into_inner);
        match ready {
            Some(ready) => readiness.insert(key.clone(), ready),
            None => readiness.remove(key),
        }
    }
}

fn version(text: Option<&str>) -> u64 {
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}
