// SPDX-License-Identifier: Apache-2.0
//! What must be true at every step, whatever goes wrong. Every version of every object is looked at.

use std::collections::{BTreeMap, BTreeSet};

use bivouac_apiserver::store::{Event, Keyspace, Kind, Store, Watcher};
use serde_json::Value;

/// Events that are read in one go.
const BATCH: usize = 1_000;
/// More violations than this say nothing new.
const MOST: usize = 20;

/// Looks at everything that is written.
#[derive(Debug)]
pub struct Watchman {
    store: Store,
    watchers: BTreeMap<Keyspace, Watcher>,
    secret: Vec<String>,
    living: BTreeSet<String>,
    /// Which Workspace says that a namespace is its own, by the namespace.
    tenants: BTreeMap<String, String>,
    pub steps: u64,
    /// The newest revision of anything that counts in the end.
    pub newest: u64,
    pub violations: Vec<String>,
}

impl Watchman {
    pub fn new(store: Store, secret: Vec<String>) -> Self {
        let mut watchman = Self {
            store,
            watchers: BTreeMap::new(),
            secret,
            living: BTreeSet::new(),
            tenants: BTreeMap::new(),
            steps: 0,
            newest: 0,
            violations: Vec::new(),
        };
        watchman.look();
        watchman.steps = 0;
        watchman
    }

    /// Looks at what happened since the last look.
    pub fn look(&mut self) {
        for keyspace in self.store.keyspaces() {
            if !self.watchers.contains_key(&keyspace) {
                self.begin(&keyspace);
            }
            loop {
                let events = match self.watchers.get_mut(&keyspace).map(|watcher| watcher.ready(BATCH)) {
                    Some(Ok(events)) if !events.is_empty() => events,
                    _ => break,
                };
                events.iter().for_each(|event| self.judge(&keyspace, event));
            }
        }
    }

    fn begin(&mut self, keyspace: &Keyspace) {
        // Behind that lies what an installation brings: nobody owns it, and it owns nothing.
        if let Ok(watcher) = self.store.watch(keyspace, self.store.oldest(keyspace)) {
            self.watchers.insert(keyspace.clone(), watcher);
        }
    }

    fn judge(&mut self, keyspace: &Keyspace, event: &Event) {
        self.steps += 1;
        if crate::end::counts(keyspace) {
            self.newest = self.newest.max(event.revision());
        }
        let object: Value = serde_json::from_slice(event.now.body()).unwrap_or_default();
        let before: Option<Value> = event.before.as_ref().and_then(|old| serde_json::from_slice(old.body()).ok());
        let place = format!("{} {}", keyspace.as_str(), event.now.key());
        if event.kind == Kind::Deleted {
            self.living.remove(uid(&object));
        } else {
            self.living.insert(uid(&object).to_owned());
            self.one_owner(&place, before.as_ref(), &object);
            self.says_why(&place, &object);
        }
        self.one_tenant(keyspace, event.kind, &object);
        self.keeps_secrets(keyspace, &place, event.now.body());
    }

    /// G3: an object has one owner, and keeps it as long as that one lives.
    fn one_owner(&mut self, place: &str, before: Option<&Value>, object: &Value) {
        let owners = owners(object);
        if owners.len() > 1 {
            self.violated(format!("G3: {place} has {} controllers", owners.len()));
        }
        for lost in before.map(owners_of).unwrap_or_default() {
            if self.living.contains(&lost) && !owners.iter().any(|owner| *owner == lost) && !owners.is_empty() {
                self.violated(format!("G3: {place} was taken from an owner that lives"));
            }
        }
    }

    /// G3: two Workspaces never both say that a namespace is theirs.
    fn one_tenant(&mut self, keyspace: &Keyspace, kind: Kind, object: &Value) {
        if keyspace.as_str() != "tenant.otterscale.io/workspaces" {
            return;
        }
        let name = text(object, "/metadata/name").to_owned();
        self.tenants.retain(|_, tenant| *tenant != name);
        let namespace = text(object, "/status/namespaceRef/name");
        if kind == Kind::Deleted || namespace.is_empty() || !is_ready(object) {
            return;
        }
        if let Some(other) = self.tenants.insert(namespace.to_owned(), name.clone()) {
            self.violated(format!("G3: the namespace {namespace} is the Workspaces' {other} and {name}"));
        }
    }

    /// G5: whoever says no says why.
    fn says_why(&mut self, place: &str, object: &Value) {
        let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
        for condition in conditions.into_iter().flatten() {
            let ours = text(object, "/apiVersion").contains('.') && !text(object, "/apiVersion").contains("k8s.io");
            let silent = text(condition, "/reason").is_empty() || text(condition, "/message").is_empty();
            if ours && silent && text(condition, "/status") != "True" {
                self.violated(format!("G5: {place} does not say why {} is not true", text(condition, "/type")));
            }
        }
    }

    /// G8: secrets stay in Secrets.
    fn keeps_secrets(&mut self, keyspace: &Keyspace, place: &str, body: &[u8]) {
        if keyspace.as_str() == "secrets" || self.secret.is_empty() {
            return;
        }
        let body = String::from_utf8_lossy(body).into_owned();
        if self.secret.iter().any(|word| body.contains(word)) {
            self.violated(format!("G8: {place} shows a secret"));
        }
    }

    fn violated(&mut self, words: String) {
        if self.violations.len() < MOST && !self.violations.contains(&words) {
            self.violations.push(words);
        }
    }
}

fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

fn is_ready(object: &Value) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|one| text(one, "/type") == "Ready" && text(one, "/status") == "True")
}

/// The uids of those that say they are its controller.
fn owners(object: &Value) -> Vec<&str> {
    let all = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let controls = |owner: &&Value| owner.get("controller").and_then(Value::as_bool) == Some(true);
    all.into_iter().flatten().filter(controls).map(|owner| text(owner, "/uid")).collect()
}

fn owners_of(object: &Value) -> Vec<String> {
    owners(object).into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn told(secret: &[&str], objects: &[(&str, &str, Value)]) -> Vec<String> {
        let store = Store::in_memory(bivouac_apiserver::store::Limits::default());
        let mut watchman = Watchman::new(store.clone(), secret.iter().map(|word| (*word).to_owned()).collect());
        for (keyspace, key, object) in objects {
            let keyspace = Keyspace::new("", keyspace);
            let write = match store.get(&keyspace, key) {
                Some(old) => bivouac_apiserver::store::Write::Update(old.revision()),
                None => bivouac_apiserver::store::Write::Create,
            };
            let draft = bivouac_apiserver::store::Draft { body: object.to_string().into_bytes(), ..Default::default() };
            store.commit(&keyspace, key, write, |_| draft).await.unwrap();
            watchman.look();
        }
        watchman.violations
    }

    #[tokio::test]
    async fn what_must_not_be_is_told() {
        use serde_json::json;
        let owned =
            |uid: &str| json!({ "metadata": { "uid": "c", "ownerReferences": [{ "controller": true, "uid": uid }] } });
        let parent = |uid: &str| json!({ "metadata": { "uid": uid } });
        let stolen = [("p", "a", parent("a")), ("p", "b", parent("b")), ("c", "c", owned("a")), ("c", "c", owned("b"))];
        assert_eq!(told(&[], &stolen).await, ["G3: c c was taken from an owner that lives"]);
        let inherited = [("p", "b", parent("b")), ("c", "c", owned("a")), ("c", "c", owned("b"))];
        assert_eq!(told(&[], &inherited).await, Vec::<String>::new());
        let workspace = |name: &str| {
            json!({ "metadata": { "name": name, "uid": name }, "status": {
                "namespaceRef": { "name": "n" }, "conditions": [{ "type": "Ready", "status": "True" }],
            }})
        };
        let twice = ["a", "b"].map(|name| ("tenant.otterscale.io/workspaces", name, workspace(name)));
        assert_eq!(told(&[], &twice).await, ["G3: the namespace n is the Workspaces' a and b"]);
        let loud = [("secrets", "a", json!({ "x": "hunter2" })), ("events", "a", json!({ "x": "it is hunter2!" }))];
        assert_eq!(told(&["hunter2"], &loud).await, ["G8: events a shows a secret"]);
        let silent = json!({ "apiVersion": "tgp.io/v1", "status": { "conditions": [{ "type": "A", "status": "False", "reason": "B" }] } });
        assert_eq!(told(&[], &[("x", "a", silent)]).await, ["G5: x a does not say why A is not true"]);
    }
}
