// SPDX-License-Identifier: Apache-2.0
//! One request of a sequence.

use serde_json::{Map, Value, json};

use super::draw::Draw;
use super::{Family, Grammar};
use crate::case::Step;

/// Few, and the same for applies and other writes, so that they meet.
const MANAGERS: [&str; 4] = ["one", "two", "three", "one"];

pub struct Maker<'a> {
    pub draw: &'a mut Draw,
    pub grammar: &'a Grammar,
    pub family: &'a Family,
}

#[derive(Clone, Copy)]
enum Action {
    Create,
    Update,
    Apply,
    Merge,
    Json,
    Strategic,
    Status,
    Scale,
    Delete,
    Release,
    Get,
    List,
}

impl Maker<'_> {
    pub fn step(&mut self, first: bool) -> Step {
        use Action::{Apply, Create, Delete, Get, Json, List, Merge, Release, Scale, Status, Strategic, Update};
        let pool: &[(u32, Action)] = match first {
            true => &[(45, Create), (50, Apply), (5, Update)],
            false => &[
                (4, Create),
                (13, Update),
                (27, Apply),
                (10, Merge),
                (9, Json),
                (9, Strategic),
                (12, Status),
                (5, Scale),
                (5, Delete),
                (3, Release),
                (1, Get),
                (2, List),
            ],
        };
        let name = if first { "a" } else { self.draw.one(&["a", "a", "a", "a", "a", "a", "b"]) };
        let action = self.draw.weighted(pool).unwrap_or(Get);
        let mut step = self.request(action, name, first);
        if !matches!(action, List) {
            step.save.insert("rv".to_owned(), ".metadata.resourceVersion".to_owned());
            step.save.insert("uid".to_owned(), ".metadata.uid".to_owned());
            if first || self.draw.chance(20) {
                step.save.insert("old".to_owned(), ".metadata.resourceVersion".to_owned());
            }
        }
        step
    }

    fn request(&mut self, action: Action, name: &str, first: bool) -> Step {
        let path = format!("{}/{name}", self.family.path);
        match action {
            Action::Create => self.write(&format!("POST {}", self.family.path), |it| it.whole(name)),
            Action::Update => self.write(&format!("PUT {path}"), |it| it.update(name)),
            Action::Apply => self.apply(&path, |it| it.applied(name, first)),
            Action::Strategic if !self.family.strategic.is_empty() => {
                self.write(&format!("STRATEGIC {path}"), Self::strategic)
            }
            Action::Merge | Action::Strategic => self.write(&format!("MERGE {path}"), Self::merge),
            Action::Json => self.write(&format!("JSONPATCH {path}"), Self::operations),
            Action::Status => self.status(&path, name),
            Action::Scale if self.family.scale => self.scale(&path, name),
            Action::Delete => {
                let body = self.draw.value(&self.grammar.delete, false);
                Step { body: Some(body), ..plain(&format!("DELETE {path}")) }
            }
            Action::Release => self.write(&format!("MERGE {path}"), |_| json!({ "metadata": { "finalizers": null } })),
            Action::Scale | Action::Get => plain(&format!("GET {path}")),
            Action::List => {
                let selector = self.draw.value(&self.grammar.selectors, true);
                plain(&format!("GET {}?{}", self.family.path, selector.as_str().unwrap_or_default()))
            }
        }
    }

    /// With the options that all writes have.
    fn write(&mut self, request: &str, body: impl FnOnce(&mut Self) -> Value) -> Step {
        let manager = self.draw.one(&MANAGERS);
        let body = body(self);
        let options = self.options();
        Step { body: Some(body), ..plain(&format!("{request}?fieldManager={manager}{options}")) }
    }

    fn apply(&mut self, path: &str, body: impl FnOnce(&mut Self) -> Value) -> Step {
        let mut step = self.write(&format!("APPLY {path}"), body);
        if let Some(request) = step.request.as_mut().filter(|_| self.draw.chance(30)) {
            request.push_str("&force=true");
        }
        step
    }

    fn options(&mut self) -> String {
        let mut options = String::new();
        if self.draw.chance(15) {
            options += "&fieldValidation=";
            options += self.draw.one(&["Strict", "Warn", "Ignore"]);
        }
        if self.draw.chance(6) {
            options += "&dryRun=All";
        }
        options
    }

    fn object(&mut self, name: Option<&str>, whole: bool) -> Value {
        let mut object = match &self.family.head {
            Value::Object(head) if name.is_some() => head.clone(),
            _ => Map::new(),
        };
        if let Value::Object(rest) = self.draw.value(&self.family.object, whole) {
            object.extend(rest);
        }
        let mut metadata = self.draw.value(&self.grammar.metadata, whole);
        if let (Some(name), Value::Object(fields)) = (name, &mut metadata) {
            fields.insert("name".to_owned(), name.into());
        }
        object.insert("metadata".to_owned(), metadata);
        if let Some(status) = self.family.status.as_ref().filter(|_| self.draw.chance(5)) {
            object.insert("status".to_owned(), self.draw.value(status, true));
        }
        Value::Object(object)
    }

    fn whole(&mut self, name: &str) -> Value {
        self.object(Some(name), true)
    }

    fn applied(&mut self, name: &str, first: bool) -> Value {
        let whole = first || self.draw.chance(40);
        self.object(Some(name), whole)
    }

    fn update(&mut self, name: &str) -> Value {
        let mut object = self.whole(name);
        self.revision(&mut object);
        object
    }

    /// The right revision, one that may be stale, or none.
    fn revision(&mut self, object: &mut Value) {
        let revision = self.draw.one(&["{rv}", "{rv}", "{rv}", "{old}", ""]);
        if let (Some(Value::Object(metadata)), false) = (object.get_mut("metadata"), revision.is_empty()) {
            metadata.insert("resourceVersion".to_owned(), revision.into());
        }
    }

    fn merge(&mut self) -> Value {
        let mut patch = self.object(None, false);
        self.draw.nulls(&mut patch);
        patch
    }

    fn strategic(&mut self) -> Value {
        if self.draw.chance(30) {
            return self.merge();
        }
        let patch = self.draw.one(&self.family.strategic);
        self.draw.value(&patch, true)
    }

    fn operations(&mut self) -> Value {
        self.draw.some(&self.family.json, true)
    }

    fn status(&mut self, path: &str, name: &str) -> Step {
        let Some(status) = &self.family.status else { return plain(&format!("GET {path}")) };
        let part = |it: &mut Self| json!({ "status": it.draw.value(status, false) });
        let named = |it: &mut Self| {
            let mut object = it.family.head.clone();
            let fields = [("metadata", json!({ "name": name })), ("status", it.draw.value(status, false))];
            if let Value::Object(object) = &mut object {
                object.extend(fields.map(|(name, value)| (name.to_owned(), value)));
            }
            object
        };
        let path = format!("{path}/status");
        match self.draw.between(0, 3) {
            0 | 1 => self.apply(&path, named),
            2 => self.write(&format!("MERGE {path}"), part),
            _ => self.write(&format!("PUT {path}"), |it| {
                let (mut object, status) = (it.update(name), it.draw.value(status, false));
                if let Value::Object(object) = &mut object {
                    object.insert("status".to_owned(), status);
                }
                object
            }),
        }
    }

    fn scale(&mut self, path: &str, name: &str) -> Step {
        let path = format!("{path}/scale");
        let replicas = self.draw.one(&[1, 2, 3]);
        let spec = json!({ "replicas": replicas });
        let head =
            json!({ "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": { "name": name }, "spec": spec });
        match self.draw.between(0, 3) {
            0 => plain(&format!("GET {path}")),
            1 => self.write(&format!("MERGE {path}"), |_| json!({ "spec": spec })),
            2 => self.apply(&path, |_| head),
            _ => self.write(&format!("PUT {path}"), |it| {
                let mut head = head;
                it.revision(&mut head);
                head
            }),
        }
    }
}

fn plain(request: &str) -> Step {
    Step { request: Some(request.to_owned()), ..Step::default() }
}
