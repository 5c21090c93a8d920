// SPDX-License-Identifier: Apache-2.0
//! Emptying namespaces that are going.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use serde_json::{Value, json};

use super::{garbage::Work, graph::is_namespace, stored_resources};
use crate::{
    call::Call,
    object::{Object, as_object, child_object, text},
    registry::Resource,
    server::Inner,
    store::{Range, Stored},
    verbs::delete,
    write,
};

/// Empties what is going. The answer is whether something has to be tried again.
pub async fn empty(server: &Arc<Inner>, work: &mut Work) -> bool {
    let registry = server.registry();
    let Some(resource) = registry.all().find(|one| is_namespace(one)) else { return false };
    let mut again = false;
    for name in std::mem::take(&mut work.namespaces) {
        let Some(stored) = server.store.get(&resource.keyspace, &name) else { continue };
        let namespace = resource.read(&stored);
        if !namespace.is_going() {
            continue;
        }
        let left = clear(server, &name).await;
        let done = if left.is_empty() {
            finalize(server, resource, &stored, &namespace).await
        } else {
            tell(server, resource, &stored, &namespace, &left).await
        };
        if !done {
            again = true;
            work.namespaces.insert(name);
        }
    }
    again
}

/// What is left in a namespace: the resource, how many, and what holds them.
struct Left {
    resource: String,
    count: usize,
    finalizers: BTreeMap<String, usize>,
}

/// Deletes everything in a namespace and says what stays.
async fn clear(server: &Arc<Inner>, namespace: &str) -> Vec<Left> {
    let registry = server.registry();
    let mut left = Vec::new();
    for resource in stored_resources(&registry).filter(|one| one.namespaced) {
        let range = Range { namespace: Some(namespace), ..Range::default() };
        let all = |range: &Range<'_>| {
            server.store.range(&resource.keyspace, range, |_| true).map(|page| page.items).unwrap_or_default()
        };
        if all(&range).is_empty() {
            continue;
        }
        let mut call = Call::inside(server, resource, namespace, "");
        let _ = delete::collection(&mut call, &Bytes::from_static(b"{\"propagationPolicy\":\"Background\"}")).await;
        let stays = all(&range);
        if !stays.is_empty() {
            left.push(describe(resource, &stays));
        }
    }
    left
}

fn describe(resource: &Resource, stays: &[Stored]) -> Left {
    let mut finalizers = BTreeMap::new();
    for stored in stays {
        for finalizer in resource.read(stored).finalizers() {
            *finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }
    let name = crate::status::qualified(&resource.group, &resource.plural);
    Left { resource: if resource.group.is_empty() { format!("{name}.") } else { name }, count: stays.len(), finalizers }
}

/// Takes away the last hold on an empty namespace.
async fn finalize(server: &Arc<Inner>, resource: &Arc<Resource>, stored: &Stored, old: &Value) -> bool {
    let mut new = old.clone();
    let spec = child_object(as_object(&mut new), "spec");
    if let Some(finalizers) = spec.get_mut("finalizers").and_then(Value::as_array_mut) {
        finalizers.retain(|one| one.as_str() != Some("kubernetes"));
        if finalizers.is_empty() {
            spec.remove("finalizers");
        }
    }
    let mut call = Call::inside(server, resource, "", old.name());
    let new = write::manage(&call, Some(old), new, "finalize");
    write::replace(&mut call, stored, old, new, "finalize").await.is_ok()
}

/// Says in the namespace's status what it waits for.
async fn tell(server: &Arc<Inner>, resource: &Arc<Resource>, stored: &Stored, old: &Value, left: &[Left]) -> bool {
    let mut new = old.clone();
    let status = child_object(as_object(&mut new), "status");
    let before = status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let now = server.now();
    let conditions: Vec<Value> = conditions(left)
        .into_iter()
        .map(|(kind, holds, reason, message)| {
            let holds = if holds { "True" } else { "False" };
            let same = before.iter().find(|one| text(one, "/type") == kind && text(one, "/status") == holds);
            let since = same.map_or(now.as_str(), |one| text(one, "/lastTransitionTime"));
            json!({ "type": kind, "status": holds, "lastTransitionTime": since, "reason": reason, "message": message })
        })
        .collect();
    status.insert("conditions".into(), Value::Array(conditions));
    if new == *old {
        return true;
    }
    let mut call = Call::inside(server, resource, "", old.name());
    let new = write::manage(&call, Some(old), new, "status");
    write::replace(&mut call, stored, old, new, "status").await.is_ok()
}

fn conditions(left: &[Left]) -> Vec<(&'static str, bool, &'static str, String)> {
    let list = |texts: Vec<String>| texts.join(", ");
    let contents =
        list(left.iter().map(|one| format!("{} has {} resource instances", one.resource, one.count)).collect());
    let mut finalizers: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, count) in left.iter().flat_map(|one| &one.finalizers) {
        *finalizers.entry(name).or_default() += count;
    }
    let held = list(finalizers.iter().map(|(name, count)| format!("{name} in {count} resource instances")).collect());
    vec![
        (
            "NamespaceDeletionDiscoveryFailure",
            false,
            "ResourcesDiscovered",
            "All resources successfully discovered".into(),
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            false,
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed".into(),
        ),
        (
            "NamespaceDeletionContentFailure",
            false,
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization".into(),
        ),
        ("NamespaceContentRemaining", true, "SomeResourcesRemain", format!("Some resources are remaining: {contents}")),
        (
            "NamespaceFinalizersRemaining",
            !held.is_empty(),
            if held.is_empty() { "ContentHasNoFinalizers" } else { "SomeFinalizersRemain" },
            if held.is_empty() {
                "All content-preserving finalizers finished".into()
            } else {
                format!("Some content in the namespace has finalizers remaining: {held}")
            },
        ),
    ]
}
