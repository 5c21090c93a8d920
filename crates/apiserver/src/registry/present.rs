// SPDX-License-Identifier: Apache-2.0
//! Between an object as a version shows it and the object as it is stored.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::Value;

use super::{Backing, Resource};
use crate::{
    object::{Object, as_object, text},
    schema,
    store::{Draft, Stored, Tags},
};

impl Resource {
    /// The stored object in this version.
    pub fn present(&self, stored: &Stored) -> Bytes {
        if stored.body().starts_with(&self.head) && !self.is_older(stored) {
            return stored.bytes();
        }
        write(&self.head, &self.read(stored)).into()
    }

    /// The stored object as an item of a list: the real server leaves out version and kind of built-in kinds there.
    pub fn present_item(&self, stored: &Stored) -> Bytes {
        let whole = self.present(stored);
        match whole.get(self.head.len()..) {
            Some(rest) if self.custom().is_none() => {
                // What follows the head begins with a comma, or ends the object.
                let rest = rest.strip_prefix(b",").unwrap_or(rest);
                [b"{", rest].concat().into()
            }
            _ => whole,
        }
    }

    /// The stored object in this version, to be worked on.
    pub fn read(&self, stored: &Stored) -> Value {
        let mut object: Value = serde_json::from_slice(stored.body()).unwrap_or_default();
        let converted = text(&object, "/apiVersion") != &*self.api_version;
        if converted {
            as_object(&mut object).insert("apiVersion".into(), self.api_version.as_ref().into());
            if let Backing::Builtin(rules) = &self.backing {
                (rules.from_stored)(&mut object);
            }
        }
        if self.custom().is_some() && (converted || self.is_older(stored)) {
            schema::prune::prune(&mut object, self.schema.schema());
            schema::default::fill(&mut object, self.schema.schema());
        }
        object
    }

    /// Whether the object was written before the definition had its present schema: what that dropped or filled in
    /// shows in old objects too.
    fn is_older(&self, stored: &Stored) -> bool {
        self.custom().is_some_and(|custom| stored.revision() < custom.since)
    }

    /// The version in which objects are stored.
    pub fn storage_api_version(&self) -> &str {
        match &self.backing {
            Backing::Custom(custom) => &custom.storage_api_version,
            Backing::Builtin(rules) => rules.stored_as.unwrap_or(&self.api_version),
        }
    }

    /// The object as the store keeps it. `revision` becomes its resourceVersion.
    pub fn draft(&self, object: &mut Value, revision: u64) -> Draft {
        object.set_meta("resourceVersion", revision.to_string());
        let storage = self.storage_api_version();
        if storage == &*self.api_version {
            return Draft { tags: self.tags(object), body: write(&self.head, object) };
        }
        let mut stored = object.clone();
        as_object(&mut stored).insert("apiVersion".into(), storage.into());
        if let Backing::Builtin(rules) = &self.backing {
            (rules.to_stored)(&mut stored);
        }
        Draft { tags: self.tags(&stored), body: write(&head(storage, &self.kind), &stored) }
    }

    fn tags(&self, object: &Value) -> Tags {
        let fields: Vec<(&str, Cow<'_, str>)> = match &self.backing {
            Backing::Builtin(rules) => rules.fields.iter().map(|(name, at)| (*name, plain(object.at(at)))).collect(),
            Backing::Custom(custom) => {
                custom.selectable.iter().map(|(name, at)| (name.as_str(), plain(object.pointer(at)))).collect()
            }
        };
        Tags::new(object.labels(), fields.iter().map(|(name, value)| (*name, &**value)))
    }

    /// Whether a selector may ask for the field.
    pub fn selectable(&self, field: &str) -> bool {
        match &self.backing {
            Backing::Builtin(rules) => rules.fields.iter().any(|(name, _)| *name == field),
            Backing::Custom(custom) => custom.selectable.iter().any(|(name, _)| name == field),
        }
    }

    /// What is said about a selector for a field that the kind does not have.
    pub fn unknown_selector(&self, field: &str) -> String {
        match &self.backing {
            Backing::Builtin(rules) if rules.fields.is_empty() => {
                format!("{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
            }
            Backing::Builtin(_) | Backing::Custom(_) => format!("field label not supported: {field}"),
        }
    }
}

/// How a stored body begins. Version and kind come first, so that they can be told without parsing.
pub fn head(api_version: &str, kind: &str) -> Vec<u8> {
    format!("{{\"apiVersion\":{},\"kind\":{}", Value::from(api_version), Value::from(kind)).into_bytes()
}

/// Writes an object behind its head.
fn write(head: &[u8], object: &Value) -> Vec<u8> {
    // Room for most objects: growing means copying.
    let mut body = Vec::with_capacity(4096);
    body.extend_from_slice(head);
    for (key, value) in object.as_object().into_iter().flatten() {
        if key != "apiVersion" && key != "kind" {
            body.push(b',');
            // Writing to memory cannot fail.
            let _ = serde_json::to_writer(&mut body, key);
            body.push(b':');
            let _ = serde_json::to_writer(&mut body, value);
        }
    }
    body.push(b'}');
    body
}

/// A scalar as a selector compares it.
fn plain(value: Option<&Value>) -> Cow<'_, str> {
    match value {
        Some(Value::String(text)) => text.into(),
        Some(Value::Null) | None => "".into(),
        Some(other) => other.to_string().into(),
    }
}
