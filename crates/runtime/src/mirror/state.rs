// SPDX-License-Identifier: Apache-2.0
//! What a mirror holds, and how news change it.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt};
use tokio::time::Instant;

use super::{Change, Key, OWNER_LABEL};

#[derive(Debug)]
pub(super) struct State<K> {
    pub objects: HashMap<Key, Entry<K>>,
    pub by_owner: HashMap<String, BTreeSet<Key>>,
    /// A relist in progress: when it began, and what it brought so far.
    pub incoming: Option<(Instant, HashMap<Key, Arc<K>>)>,
    /// The newest revision the watch has told. What we wrote up to it needs no answer of ours any more: it was told, and
    /// perhaps its end as well.
    pub told: u64,
    /// UIDs we deleted ourselves and whose last events may still be on their way.
    pub erased: BTreeSet<String>,
}

#[derive(Debug)]
pub(super) struct Entry<K> {
    pub object: Arc<K>,
    /// When our own write put it here, if it did.
    pub written: Option<Instant>,
    /// The hash of the wish that it holds already, as far as anybody compared.
    pub holds: Option<u64>,
}

impl<K: Resource + Clone> State<K> {
    pub(super) fn is_news(&self, key: &Key, object: &K) -> bool {
        if object.uid().is_some_and(|uid| self.erased.contains(&uid)) {
            return false;
        }
        self.objects.get(key).is_none_or(|entry| {
            let other_life = entry.object.uid() != object.uid();
            other_life || revision(object).zip(revision(&*entry.object)).is_none_or(|(new, old)| new > old)
        })
    }

    pub(super) fn note_told(&mut self, object: &K) {
        self.told = self.told.max(revision(object).unwrap_or_default());
    }

    pub(super) fn put(&mut self, key: Key, object: Arc<K>, written: Option<Instant>) -> Option<Arc<K>> {
        let old = self.objects.get(&key);
        let holds = old.and_then(|old| old.holds.filter(|_| asks_for_the_same(old.object.meta(), object.meta())));
        let before = self.take(&key);
        for owner in owners(&*object) {
            self.by_owner.entry(owner).or_default().insert(key.clone());
        }
        self.objects.insert(key, Entry { object, written, holds });
        before
    }

    pub(super) fn take(&mut self, key: &Key) -> Option<Arc<K>> {
        let entry = self.objects.remove(key)?;
        for owner in owners(&*entry.object) {
            if let Some(keys) = self.by_owner.get_mut(&owner) {
                keys.remove(key);
                if keys.is_empty() {
                    self.by_owner.remove(&owner);
                }
            }
        }
        Some(entry.object)
    }

    pub(super) fn apply(&mut self, object: K) -> Option<Change<K>> {
        self.note_told(&object);
        let key = Key::of(&object);
        if !self.is_news(&key, &object) {
            return None;
        }
        let after = Arc::new(object);
        let before = self.put(key, after.clone(), None);
        Some(Change { before, after: Some(after) })
    }

    pub(super) fn delete(&mut self, object: &K) -> Option<Change<K>> {
        self.note_told(object);
        if object.uid().is_some_and(|uid| self.erased.remove(&uid)) {
            return None;
        }
        let key = Key::of(object);
        // The event of an earlier life must not remove its successor.
        if self.objects.get(&key).is_some_and(|entry| entry.object.uid() != object.uid()) {
            return None;
        }
        self.take(&key).map(|before| Change { before: Some(before), after: None })
    }

    /// Replaces the content by a complete list, but keeps what we wrote after the list began.
    pub(super) fn relist(&mut self) -> Vec<Change<K>> {
        let Some((began, incoming)) = self.incoming.take() else { return Vec::new() };
        let gone = self
            .objects
            .iter()
            .filter(|(key, entry)| !incoming.contains_key(key) && entry.written.is_none_or(|written| written < began));
        let gone: Vec<Key> = gone.map(|(key, _)| key.clone()).collect();
        let mut changes: Vec<_> = gone
            .iter()
            .filter_map(|key| self.take(key))
            .map(|before| Change { before: Some(before), after: None })
            .collect();
        for (key, object) in incoming {
            self.note_told(&object);
            if self.is_news(&key, &object) {
                let before = self.put(key, object.clone(), None);
                changes.push(Change { before, after: Some(object) });
            }
        }
        self.erased.clear();
        changes
    }
}

/// Two versions of an object that differ in what it reports only. Kinds that count no generations never say so.
fn asks_for_the_same(before: &ObjectMeta, after: &ObjectMeta) -> bool {
    after.generation.is_some()
        && before.generation == after.generation
        && before.uid == after.uid
        && before.labels == after.labels
        && before.annotations == after.annotations
        && before.owner_references == after.owner_references
        && before.finalizers == after.finalizers
        && before.deletion_timestamp == after.deletion_timestamp
}

/// Resource versions of one kind are numbers that grow (Kubernetes says so since 1.35).
pub(super) fn revision<K: Resource>(object: &K) -> Option<u64> {
    object.meta().resource_version.as_deref()?.parse().ok()
}

fn owners<K: Resource>(object: &K) -> BTreeSet<String> {
    let meta = object.meta();
    let label = meta.labels.iter().flatten().filter(|(key, _)| key.as_str() == OWNER_LABEL).map(|(_, uid)| uid.clone());
    let references = meta.owner_references.iter().flatten();
    label.chain(references.filter(|owner| owner.controller == Some(true)).map(|owner| owner.uid.clone())).collect()
}
