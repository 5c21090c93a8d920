// SPDX-License-Identifier: Apache-2.0
//! Deleting what nobody owns any more.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};

use super::graph::{Graph, News, Node, Owner};
use crate::{call::Call, object::Object, server::Inner, verbs::delete};

/// What is left to do.
#[derive(Default)]
pub struct Work {
    pub judge: BTreeSet<Box<str>>,
    pub waiting: BTreeSet<Box<str>>,
    pub namespaces: BTreeSet<Box<str>>,
}

impl Work {
    pub fn note(&mut self, news: News) {
        self.judge.extend(news.judge);
        self.waiting.extend(news.waiting);
        self.namespaces.extend(news.namespace);
    }
}

/// What the owners of an object say about it.
enum Verdict {
    Keep,
    /// Some owners are gone, others live: forget the gone ones.
    Trim(Vec<Box<str>>),
    /// All owners are gone, or wait for it to go.
    Delete {
        foreground: bool,
    },
    /// An owner is of a kind that is not served, so nobody can tell.
    Unknown,
}

/// Works through what is left to do. The answer is whether something has to be tried again.
pub async fn collect(server: &Arc<Inner>, graph: &mut Graph, work: &mut Work) -> bool {
    let mut again = BTreeSet::new();
    for uid in std::mem::take(&mut work.judge) {
        let Some(node) = graph.get(&uid).cloned() else { continue };
        if !judge(server, graph, &uid, &node).await {
            again.insert(uid);
        }
    }
    work.judge = again;
    let mut waiting = BTreeSet::new();
    for uid in std::mem::take(&mut work.waiting) {
        let Some(node) = graph.get(&uid).cloned() else { continue };
        if node.going && !release(server, graph, &uid, &node).await {
            waiting.insert(uid);
        }
    }
    work.waiting = waiting;
    !work.judge.is_empty() || !work.waiting.is_empty()
}

/// Does with an object what its owners' state asks for. The answer is whether that worked.
async fn judge(server: &Arc<Inner>, graph: &Graph, uid: &str, node: &Node) -> bool {
    match verdict(server, graph, uid, node) {
        Verdict::Keep | Verdict::Unknown => true,
        Verdict::Delete { .. } if node.going => true,
        Verdict::Delete { foreground } => {
            let propagation = if node.holds("orphan") {
                "Orphan"
            } else if foreground || node.holds("foregroundDeletion") {
                "Foreground"
            } else {
                "Background"
            };
            let options = json!({ "preconditions": { "uid": uid }, "propagationPolicy": propagation });
            let mut call = Call::inside(server, &node.resource, node.namespace(), node.name());
            match delete::one(&mut call, &options.to_string().into()).await {
                Ok(_) => true,
                Err(status) => status.code == 404 || status.code == 409,
            }
        }
        Verdict::Trim(gone) => {
            let keeps = |owner: &Value| !gone.iter().any(|uid| owner.get("uid").and_then(Value::as_str) == Some(uid));
            change(server, uid, node, |object| retain_owners(object, keeps)).await
        }
    }
}

fn verdict(server: &Inner, graph: &Graph, uid: &str, node: &Node) -> Verdict {
    let (mut solid, mut waiting, mut gone) = (0, 0, Vec::new());
    for owner in &node.owners {
        match state(server, graph, node, owner) {
            Some(State::Solid) => solid += 1,
            Some(State::Waiting) => waiting += 1,
            Some(State::Gone) => gone.push(owner.uid.clone()),
            None => return Verdict::Unknown,
        }
    }
    match (solid, waiting, gone.is_empty()) {
        (0, 0, true) => Verdict::Keep,
        // An owner that waits for it is as good as gone, unless another one lives.
        (0, 0, false) => Verdict::Delete { foreground: false },
        (0, _, _) => Verdict::Delete { foreground: !graph.dependents(uid).is_empty() },
        (_, 0, true) => Verdict::Keep,
        _ => {
            let waits = |owner: &&Owner| matches!(state(server, graph, node, owner), Some(State::Waiting));
            gone.extend(node.owners.iter().filter(waits).map(|owner| owner.uid.clone()));
            Verdict::Trim(gone)
        }
    }
}

enum State {
    Solid,
    Waiting,
    Gone,
}

/// How it stands with an owner. Nobody can tell if its kind is not served.
fn state(server: &Inner, graph: &Graph, node: &Node, owner: &Owner) -> Option<State> {
    let (group, version) = owner.api_version.rsplit_once('/').unwrap_or(("", &owner.api_version));
    let resource = server.registry().find_kind(group, version, &owner.kind).cloned()?;
    let found = graph.get(&owner.uid).filter(|found| {
        // An owner lives in the same namespace, or in none.
        found.resource.keyspace == resource.keyspace
            && found.name() == &*owner.name
            && (!resource.namespaced || found.namespace() == node.namespace())
    });
    Some(match found {
        None if fault!(OwnerAssumed) => State::Solid,
        None => State::Gone,
        Some(found) if found.waits() => State::Waiting,
        Some(_) => State::Solid,
    })
}

/// Lets an object go that has dealt with its dependents. The answer is whether nothing is left to do now.
async fn release(server: &Arc<Inner>, graph: &Graph, uid: &str, node: &Node) -> bool {
    if node.holds("orphan") {
        for (dependent, of) in graph.dependents(uid) {
            let keeps = |owner: &Value| owner.get("uid").and_then(Value::as_str) != Some(uid);
            if !change(server, &dependent, of, |object| retain_owners(object, keeps)).await {
                return false;
            }
        }
        return change(server, uid, node, |object| drop_finalizer(object, "orphan")).await;
    }
    if node.holds("foregroundDeletion") {
        let blocks = |of: &Node| {
            of.owners.iter().any(|owner| &*owner.uid == uid && owner.block_owner_deletion == Some(true))
                && !fault!(BlockIgnored)
        };
        if graph.dependents(uid).iter().any(|(_, of)| blocks(of)) {
            // Its going will bring us back here.
            return true;
        }
        return change(server, uid, node, |object| drop_finalizer(object, "foregroundDeletion")).await;
    }
    true
}

fn retain_owners(object: &mut Value, keeps: impl Fn(&Value) -> bool) {
    let meta = object.meta_mut();
    if let Some(owners) = meta.get_mut("ownerReferences").and_then(Value::as_array_mut) {
        owners.retain(keeps);
        if owners.is_empty() {
            meta.remove("ownerReferences");
        }
    }
}

fn drop_finalizer(object: &mut Value, finalizer: &str) {
    let meta = object.meta_mut();
    if let Some(finalizers) = meta.get_mut("finalizers").and_then(Value::as_array_mut) {
        finalizers.retain(|one| one.as_str() != Some(finalizer));
        if finalizers.is_empty() {
            meta.remove("finalizers");
        }
    }
}

/// Changes an object the way a client would. The answer is whether that worked, or nothing was left to change.
async fn change(server: &Arc<Inner>, uid: &str, node: &Node, edit: impl Fn(&mut Value)) -> bool {
    let mut call = Call::inside(server, &node.resource, node.namespace(), node.name());
    let Some(stored) = server.store.get(&node.resource.keyspace, &node.key) else { return true };
    let old = node.resource.read(&stored);
    if old.uid() != uid {
        return true;
    }
    let mut new = old.clone();
    edit(&mut new);
    if new == old {
        return true;
    }
    let new = crate::write::manage(&call, Some(&old), new, "");
    crate::write::replace(&mut call, &stored, &old, new, "").await.is_ok()
}
