// SPDX-License-Identifier: Apache-2.0
//! Something outside of Kubernetes that costs money: machines that live until somebody ends them. It is reached through
//! the same gate as the API server, so calls to it fail and crash like any other.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bivouac_apiserver::store::{Range, Store};
use http::{Method, StatusCode};
use serde_json::{Value, json};

/// Requests with paths that begin so are for the yard.
pub const ROOT: &str = "/yard/machines";

/// Machines by their ids, each with the tag that its buyer gave it.
#[derive(Clone, Debug, Default)]
pub struct Yard(Arc<Mutex<Machines>>);

#[derive(Debug, Default)]
struct Machines {
    living: BTreeMap<String, String>,
    bought: u64,
}

impl Yard {
    pub fn answer(&self, method: &Method, path: &str, body: &[u8]) -> (StatusCode, Value) {
        let mut machines = self.lock();
        let id = path.strip_prefix(ROOT).unwrap_or_default().trim_start_matches('/');
        match *method {
            Method::POST => {
                machines.bought += 1;
                let id = format!("machine-{}", machines.bought);
                let tag = serde_json::from_slice::<Value>(body).unwrap_or_default();
                let tag = tag.get("tag").and_then(Value::as_str).unwrap_or_default().to_owned();
                machines.living.insert(id.clone(), tag);
                (StatusCode::CREATED, json!({ "id": id }))
            }
            Method::DELETE if machines.living.remove(id).is_some() => (StatusCode::OK, json!({})),
            Method::DELETE => (StatusCode::NOT_FOUND, json!({})),
            _ => {
                let list = machines.living.iter().map(|(id, tag)| json!({ "id": id, "tag": tag }));
                (StatusCode::OK, json!({ "items": list.collect::<Vec<_>>() }))
            }
        }
    }

    /// G1: a machine that no object knows of is one that somebody pays for and nobody uses.
    pub fn orphans(&self, store: &Store) -> Vec<String> {
        let machines = self.lock();
        if machines.living.is_empty() {
            return Vec::new();
        }
        let mut known: BTreeMap<String, u32> = BTreeMap::new();
        for keyspace in store.keyspaces() {
            let Ok(page) = store.range(&keyspace, &Range::default(), |_| true) else { continue };
            let machines = page.items.iter().filter_map(|stored| machine(stored.body()));
            machines.for_each(|id| *known.entry(id).or_default() += 1);
        }
        let orphan = |id: &&String| known.get(*id) != Some(&1);
        machines
            .living
            .keys()
            .filter(orphan)
            .map(|id| format!("G1: nobody knows of {id}, and it costs money"))
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Machines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The machine that an object says it has.
fn machine(body: &[u8]) -> Option<String> {
    let object: Value = serde_json::from_slice(body).ok()?;
    Some(object.pointer("/status/machine")?.as_str()?.to_owned())
}
