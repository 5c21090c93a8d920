// SPDX-License-Identifier: Apache-2.0
//! The names that a case plays with: its namespaces, its API group, and what its steps have saved.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::Case;

#[derive(Debug, Clone)]
pub struct Cast {
    pub ns: String,
    pub ns2: String,
    pub group: String,
    names: BTreeMap<String, String>,
}

impl Cast {
    /// The same for the same case, so that both servers see the same requests.
    pub fn new(case: &Case) -> Self {
        let hash = Sha256::digest(case.id().as_bytes());
        let id: String = hash.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
        let (ns, ns2, group) = (format!("ns-{id}"), format!("ns2-{id}"), case.stage.clone());
        let group = group.unwrap_or_else(|| format!("g{id}.example.com"));
        let places = [
            ("ns", ns.clone()),
            ("ns2", ns2.clone()),
            ("group", group.clone()),
            ("core", format!("/api/v1/namespaces/{ns}")),
            ("apps", format!("/apis/apps/v1/namespaces/{ns}")),
            ("batch", format!("/apis/batch/v1/namespaces/{ns}")),
            ("rbac", format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}")),
            ("tents", format!("/apis/{group}/v1/namespaces/{ns}/tents")),
            ("crds", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned()),
        ];
        let names = places.into_iter().map(|(name, text)| (name.to_owned(), text)).collect();
        Self { ns, ns2, group, names }
    }

    pub fn set(&mut self, name: &str, value: &Value) {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.names.insert(name.to_owned(), text);
    }

    /// Puts the names into a text. Braces around anything else stay.
    pub fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        if text.contains('{') {
            for (name, value) in &self.names {
                text = text.replace(&format!("{{{name}}}"), value);
            }
        }
        text
    }

    pub fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => fields.iter().map(|(name, value)| (self.text(name), self.value(value))).collect(),
            _ => value.clone(),
        }
    }

    /// The other way round: the names of this case become the same as in every other.
    pub fn hide(&self, text: &str) -> String {
        text.replace(&self.ns2, "{ns2}").replace(&self.ns, "{ns}").replace(&self.group, "{group}")
    }
}
