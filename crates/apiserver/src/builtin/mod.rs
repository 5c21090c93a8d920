// SPDX-License-Identifier: Apache-2.0
//! The kinds that every Kubernetes serves: their types, how discovery lists them, and what the server fills in.
//!
//! All of it is read from the real server by `cargo xtask gen`, which writes `table.json`. What depends on other fields
//! cannot be learned that way; `defaults.rs` has it, by hand.

mod conditional;
mod defaults;
mod table;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::schema::{Root, TypeId, Types};

/// Everything in the table.
#[derive(Debug, Default)]
pub struct Builtins {
    pub types: Arc<Types>,
    /// In the order of discovery: the core group first, the preferred version of each group before its others.
    pub resources: Vec<Resource>,
    /// The values that OpenAPI lists for a string.
    pub enums: HashMap<TypeId, Vec<Box<str>>>,
    /// Definitions that are kinds, with group and version, also those that no resource serves, like `Eviction`.
    kinds: HashMap<GroupVersionKind, TypeId>,
    names: HashMap<Box<str>, TypeId>,
    rules: HashMap<TypeId, Rules>,
    places: Vec<Place>,
}

/// A kind with its group and version.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GroupVersionKind {
    pub group: Box<str>,
    pub version: Box<str>,
    pub kind: Box<str>,
}

/// One resource in one version, as discovery shows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub group: Box<str>,
    pub version: Box<str>,
    /// The first version of its group.
    #[serde(default, skip_serializing_if = "is_false")]
    pub preferred: bool,
    pub plural: Box<str>,
    pub singular: Box<str>,
    pub kind: Box<str>,
    pub namespaced: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub short_names: Vec<Box<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<Box<str>>,
    pub verbs: Vec<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_version_hash: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subresources: Vec<Subresource>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Column>,
    /// The type of the kind. Set when the table is read.
    #[serde(skip, default = "nowhere")]
    pub root: TypeId,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Subresource {
    pub name: Box<str>,
    pub kind: Box<str>,
    /// Empty where it is the group of the resource. The same goes for the version.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub group: Box<str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub version: Box<str>,
    pub verbs: Vec<Box<str>>,
}

/// A column of `kubectl get`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    pub name: Box<str>,
    #[serde(rename = "type")]
    pub kind: Box<str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub format: Box<str>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i32,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub description: Box<str>,
}

/// What the server does with the fields of a type, wherever it comes.
#[derive(Debug, Clone, Default)]
struct Rules {
    /// Filled in where absent.
    fill: Vec<(Box<str>, Value)>,
    /// Scalar fields whose zero value (`false`, `0`, `""`) is the same as no value, and is not written.
    zero: Vec<Box<str>>,
}

/// What the server fills in at one place of one kind only.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Place {
    #[serde(flatten)]
    pub of: GroupVersionKind,
    /// Names of fields; `*` stands for any key of a map or any item of a list.
    pub path: Vec<Box<str>>,
    pub fill: serde_json::Map<String, Value>,
}

fn nowhere() -> TypeId {
    TypeId(u32::MAX)
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn is_zero(number: &i32) -> bool {
    *number == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// The table of the Kubernetes version that this crate imitates.
pub fn builtins() -> &'static Builtins {
    static TABLE: OnceLock<Builtins> = OnceLock::new();
    // A table that cannot be read is a broken build; a test of this module finds it.
    TABLE.get_or_init(|| Builtins::decode(include_str!("table.json")).unwrap_or_default())
}

// === impl Builtins ===

impl Builtins {
    /// Reads the text that `cargo xtask gen` wrote.
    pub fn decode(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<table::Table>(text).map(table::Table::load)
    }

    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Resource> {
        self.resources.iter().find(|one| *one.group == *group && *one.version == *version && *one.plural == *plural)
    }

    /// The type of a kind, whether a resource serves it or only a subresource.
    pub fn kind(&self, group: &str, version: &str, kind: &str) -> Option<TypeId> {
        self.kinds.get(&GroupVersionKind::new(group, version, kind)).copied()
    }

    /// The kinds with their types, in no order.
    pub fn kinds(&self) -> impl Iterator<Item = (&GroupVersionKind, TypeId)> {
        self.kinds.iter().map(|(kind, id)| (kind, *id))
    }

    /// The type with this definition name, like `io.k8s.api.core.v1.PodSpec`.
    pub fn named(&self, name: &str) -> Option<TypeId> {
        self.names.get(name).copied()
    }

    /// What is filled in when a field of a type is absent.
    pub fn filled(&self, of: TypeId, field: &str) -> Option<&Value> {
        self.rules.get(&of)?.fill.iter().find(|(name, _)| **name == *field).map(|(_, value)| value)
    }

    pub fn root(&self, id: TypeId) -> Root {
        Root::new(self.types.clone(), id)
    }

    /// Brings a new object of a built-in kind into the form in which the real server keeps it.
    ///
    /// Left to the caller: names, addresses and ports that are allocated, and the object's own metadata.
    pub fn complete(&self, group: &str, version: &str, kind: &str, object: &mut Value) {
        self.fill(group, version, kind, object);
        self.begin(group, version, kind, object);
    }

    /// What happens to every object that is read: what is absent and has a default is filled in, zero values that mean
    /// "absent" go, quantities and times are written the one way. Whoever wrote the object owns these fields.
    pub fn fill(&self, group: &str, version: &str, kind: &str, object: &mut Value) {
        if let Some(root) = self.kind(group, version, kind) {
            defaults::complete(self, &GroupVersionKind::new(group, version, kind), root, object);
        }
    }

    /// What happens to an object when it is created, after its managers are known: nobody owns these fields. The uid has
    /// to be there.
    pub fn begin(&self, group: &str, version: &str, kind: &str, object: &mut Value) {
        conditional::create(&GroupVersionKind::new(group, version, kind), object);
    }
}

// === impl Resource ===

impl Resource {
    pub fn list_kind(&self) -> String {
        format!("{}List", self.kind)
    }

    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|one| *one.name == *name)
    }
}

// === impl GroupVersionKind ===

impl GroupVersionKind {
    pub fn new(group: &str, version: &str, kind: &str) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }
}
