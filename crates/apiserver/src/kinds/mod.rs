// SPDX-License-Identifier: Apache-2.0
//! The rules of built-in kinds that no schema tells: what is filled in, what may not change, what must hold.

mod access;
mod autoscaling;
mod budgets;
mod certificates;
pub mod conditions;
mod config;
mod cron;
mod events;
mod jobs;
pub mod labels;
mod namespaces;
mod network;
pub mod place;
pub mod pod;
mod quotas;
mod scheduling;
pub mod services;
mod storage;
mod table;
mod values;
mod workloads;

use serde_json::Value;

use crate::{field::Error, names};

/// A part of an object that has a path of its own and takes writes.
#[derive(Debug)]
pub struct Part {
    pub name: &'static str,
    /// Keeps what cannot be written through this part: (new, old).
    pub prepare: fn(&mut Value, &Value),
    pub check: fn(&Value, &Value) -> Vec<Error>,
    /// The fields that a writer of this part does not own.
    pub resets: &'static [&'static [&'static str]],
}

/// What is special about a kind. Most kinds have nothing special: see [`Rules::PLAIN`].
#[derive(Debug)]
pub struct Rules {
    pub kind: &'static str,
    /// Whether `metadata.generation` counts changes.
    pub generation: bool,
    /// Whether a write through the main endpoint leaves the status alone.
    pub status_apart: bool,
    /// Whether an update without a resourceVersion is taken.
    pub unconditional_update: bool,
    /// Whether an update of an absent object creates it.
    pub create_on_update: bool,
    /// Whether a deletion without a word about dependents leaves them.
    pub orphans: bool,
    /// Whether a change of annotations counts as a change of the object.
    pub counts_annotations: bool,
    /// Whether a deletion answers with the object.
    pub returns_deleted: bool,
    /// What is wrong with a name.
    pub name: fn(&str) -> Vec<String>,
    /// Fields that a selector may ask for beside name and namespace, with the pointers to their values.
    pub fields: &'static [(&'static str, &'static str)],
    /// The version in which objects are stored, if it is another one, and the way there and back.
    pub stored_as: Option<&'static str>,
    pub to_stored: fn(&mut Value),
    pub from_stored: fn(&mut Value),
    /// Before a new object is checked.
    pub prepare_create: fn(&mut Value),
    /// Before a changed object is checked: (new, old).
    pub prepare_update: fn(&mut Value, &Value),
    /// Before a status is written: (new, old). Everything but the status is kept.
    pub prepare_status: fn(&mut Value, &Value),
    /// Further parts that take writes.
    pub parts: &'static [Part],
    /// The fields that a writer of the status does not own.
    pub status_resets: &'static [&'static [&'static str]],
    pub check: fn(&Value) -> Vec<Error>,
    /// What must hold for new objects only.
    pub check_create: fn(&Value) -> Vec<Error>,
    /// What may not change: (new, old).
    pub check_update: fn(&Value, &Value) -> Vec<Error>,
    /// What must hold for a status: (new, old).
    pub check_status: fn(&Value, &Value) -> Vec<Error>,
    /// What is said about an object that is taken all the same.
    pub warn: fn(&Value) -> Vec<String>,
    /// How many seconds an object may take to go, of those that take any: (object, wanted).
    pub grace: Option<fn(&Value, Option<i64>) -> i64>,
}

impl Rules {
    pub const PLAIN: Self = Self {
        kind: "",
        generation: false,
        status_apart: true,
        unconditional_update: true,
        create_on_update: false,
        orphans: false,
        counts_annotations: false,
        returns_deleted: false,
        name: names::subdomain,
        fields: &[],
        stored_as: None,
        to_stored: |_| {},
        from_stored: |_| {},
        prepare_create: |_| {},
        prepare_update: |_, _| {},
        prepare_status: keep_all_but_status,
        parts: &[],
        status_resets: &[&["spec"]],
        check: |_| Vec::new(),
        check_create: |_| Vec::new(),
        check_update: |_, _| Vec::new(),
        check_status: |_, _| Vec::new(),
        warn: |_| Vec::new(),
        grace: None,
    };
}

impl Rules {
    pub fn part(&self, name: &str) -> Option<&'static Part> {
        self.parts.iter().find(|part| part.name == name)
    }
}

/// The rules of a built-in kind.
pub fn rules(group: &str, version: &str, kind: &str) -> &'static Rules {
    static PLAIN: Rules = Rules::PLAIN;
    if group == "autoscaling" {
        return autoscaling::rules(version);
    }
    table::RULES.iter().find(|(of, rules)| *of == group && rules.kind == kind).map_or(&PLAIN, |(_, rules)| rules)
}

/// A write of the status changes nothing else but metadata, where the real server lets labels and the like through.
pub fn keep_all_but_status(new: &mut Value, old: &Value) {
    let status = new.get("status").cloned();
    let metadata = new.get("metadata").cloned();
    *new = old.clone();
    for (field, value) in [("status", status), ("metadata", metadata)] {
        match value {
            Some(value) => {
                crate::object::as_object(new).insert(field.to_owned(), value);
            }
            None => {
                crate::object::as_object(new).remove(field);
            }
        }
    }
}
