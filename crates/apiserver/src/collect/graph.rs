// SPDX-License-Identifier: Apache-2.0
//! Who owns whom.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::Deserialize;

use crate::{registry::Resource, store::Stored};

/// Every object by its uid, and who refers to whom.
#[derive(Default)]
pub struct Graph {
    nodes: BTreeMap<Box<str>, Node>,
    dependents: BTreeMap<Box<str>, BTreeSet<Box<str>>>,
}

/// What matters of one object.
#[derive(Clone)]
pub struct Node {
    pub resource: Arc<Resource>,
    pub key: Box<str>,
    pub owners: Vec<Owner>,
    pub going: bool,
    pub finalizers: Vec<Box<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    #[serde(default)]
    pub api_version: Box<str>,
    #[serde(default)]
    pub kind: Box<str>,
    #[serde(default)]
    pub name: Box<str>,
    #[serde(default)]
    pub uid: Box<str>,
    #[serde(default)]
    pub block_owner_deletion: Option<bool>,
}

/// What somebody has to look at after a change.
#[derive(Debug, Default)]
pub struct News {
    /// Objects whose owners may be gone.
    pub judge: Vec<Box<str>>,
    /// Objects that wait for their dependents.
    pub waiting: Vec<Box<str>>,
    /// A namespace that is going, or that something in it left.
    pub namespace: Option<Box<str>>,
}

#[derive(Deserialize)]
struct Whole {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    uid: Box<str>,
    #[serde(default)]
    owner_references: Vec<Owner>,
    #[serde(default)]
    finalizers: Vec<Box<str>>,
    #[serde(default)]
    deletion_timestamp: Option<Box<str>>,
}

impl Node {
    pub fn namespace(&self) -> &str {
        if self.resource.namespaced { self.key.split('/').next().unwrap_or_default() } else { "" }
    }

    pub fn name(&self) -> &str {
        if self.resource.namespaced { self.key.split_once('/').map_or("", |(_, name)| name) } else { &self.key }
    }

    pub fn holds(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|one| &**one == finalizer)
    }

    /// Whether it waits for its dependents to go before it goes itself.
    pub fn waits(&self) -> bool {
        self.going && self.holds("foregroundDeletion")
    }
}

impl Graph {
    pub fn get(&self, uid: &str) -> Option<&Node> {
        self.nodes.get(uid)
    }

    pub fn dependents(&self, uid: &str) -> Vec<(Box<str>, &Node)> {
        let all = self.dependents.get(uid).into_iter().flatten();
        all.filter_map(|one| Some((one.clone(), self.nodes.get(one)?))).collect()
    }

    /// An object exists, in this state.
    pub fn put(&mut self, resource: &Arc<Resource>, stored: &Stored) -> News {
        let Ok(Whole { metadata }) = serde_json::from_slice(stored.body()) else { return News::default() };
        let node = Node {
            resource: resource.clone(),
            key: stored.key().into(),
            owners: metadata.owner_references,
            going: metadata.deletion_timestamp.is_some(),
            finalizers: metadata.finalizers,
        };
        let uid = metadata.uid;
        let mut news = News::default();
        if !node.owners.is_empty() {
            news.judge.push(uid.clone());
        }
        if node.going {
            news.waiting.push(uid.clone());
            if is_namespace(resource) {
                news.namespace = Some(node.key.clone());
            }
            // Those that depend on it are judged anew: it may hold them no longer.
            if node.waits() {
                news.judge.extend(self.dependents.get(&uid).into_iter().flatten().cloned());
            }
        }
        let before = self.nodes.insert(uid.clone(), node.clone()).map(|before| before.owners).unwrap_or_default();
        for owner in before {
            self.forget(&owner.uid, &uid);
            news.waiting.push(owner.uid);
        }
        for owner in node.owners {
            self.dependents.entry(owner.uid).or_default().insert(uid.clone());
        }
        news
    }

    /// An object is gone.
    pub fn remove(&mut self, resource: &Arc<Resource>, stored: &Stored) -> News {
        let Ok(Whole { metadata }) = serde_json::from_slice(stored.body()) else { return News::default() };
        let uid = metadata.uid;
        let mut news = News::default();
        if let Some(node) = self.nodes.remove(&uid) {
            for owner in node.owners {
                self.forget(&owner.uid, &uid);
                news.waiting.push(owner.uid);
            }
        }
        news.judge.extend(self.dependents.get(&uid).into_iter().flatten().cloned());
        if resource.namespaced {
            news.namespace = stored.key().split('/').next().map(Into::into);
        }
        news
    }

    fn forget(&mut self, owner: &str, dependent: &str) {
        if let Some(set) = self.dependents.get_mut(owner) {
            set.remove(dependent);
            if set.is_empty() {
                self.dependents.remove(owner);
            }
        }
    }
}

pub fn is_namespace(resource: &Resource) -> bool {
    resource.group.is_empty() && &*resource.kind == "Namespace"
}
