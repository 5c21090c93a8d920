// SPDX-License-Identifier: Apache-2.0
//! Which names a definition gets: those that no other definition of its group has.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{
    check::{APPROVED, is_protected},
    condition,
};
use crate::{
    kinds::conditions,
    object::{Object, as_object, child_object, text},
};

/// Writes the accepted names and the conditions into the status.
pub fn accept(definition: &mut Value, others: &[Value], now: &str) {
    let group = text(definition, "/spec/group").to_owned();
    let same = |other: &&Value| text(other, "/spec/group") == group;
    let mut taken = Taken::default();
    others.iter().filter(same).for_each(|other| taken.add(other));
    let wanted = definition.pointer("/spec/names").and_then(Value::as_object).cloned().unwrap_or_default();
    let (accepted, conflict) = judge(&wanted, definition, &taken);
    let status = child_object(as_object(definition), "status");
    status.insert("acceptedNames".into(), Value::Object(accepted));
    if status.get("conditions").is_some_and(Value::is_null) {
        status.remove("conditions");
    }
    approve(definition, now);
    let names = match &conflict {
        None => condition("NamesAccepted", "True", "NoConflicts", "no conflicts found", now),
        Some((reason, message)) => condition("NamesAccepted", "False", reason, message, now),
    };
    conditions::set(definition, names);
    // A definition that was served once stays so.
    if conditions::is_true(definition, "Established") {
        return;
    }
    let established = match conflict {
        None => condition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted", now),
        Some(_) => condition("Established", "False", "NotAccepted", "not all names are accepted", now),
    };
    conditions::set(definition, established);
}

/// Tells whose word there is for a group of Kubernetes itself.
fn approve(definition: &mut Value, now: &str) {
    const KIND: &str = "KubernetesAPIApprovalPolicyConformant";
    if !is_protected(text(definition, "/spec/group")) {
        return;
    }
    let word = definition.annotation(APPROVED).unwrap_or_default().to_owned();
    let told = if word.starts_with("unapproved") {
        condition(KIND, "False", "UnapprovedAnnotation", &format!("not approved: {word:?}"), now)
    } else {
        condition(KIND, "True", "ApprovedAnnotation", &format!("approved in {word}"), now)
    };
    conditions::set(definition, told);
}

/// The names of other definitions. Resources are apart from kinds.
#[derive(Default)]
struct Taken {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl Taken {
    fn add(&mut self, other: &Value) {
        let name = |field: &str| text(other, &format!("/status/acceptedNames/{field}")).to_owned();
        self.resources.extend(["plural", "singular"].map(name));
        self.kinds.extend(["kind", "listKind"].map(name));
        let short = other.pointer("/status/acceptedNames/shortNames").and_then(Value::as_array).into_iter().flatten();
        self.resources.extend(short.filter_map(Value::as_str).map(str::to_owned));
        self.resources.remove("");
        self.kinds.remove("");
    }
}

type Conflict = (&'static str, String);

/// The names that are free, and the last conflict.
fn judge(wanted: &Map<String, Value>, definition: &Value, taken: &Taken) -> (Map<String, Value>, Option<Conflict>) {
    let before = definition.pointer("/status/acceptedNames").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut accepted = before;
    let mut conflict = None;
    let in_use = |name: &str| format!("{name:?} is already in use");
    let single = [
        ("plural", "PluralConflict", &taken.resources),
        ("singular", "SingularConflict", &taken.resources),
        ("shortNames", "ShortNamesConflict", &taken.resources),
        ("kind", "KindConflict", &taken.kinds),
        ("listKind", "ListKindConflict", &taken.kinds),
    ];
    for (field, reason, taken) in single {
        let Some(name) = wanted.get(field) else {
            accepted.remove(field);
            continue;
        };
        let names: Vec<&str> = match name {
            Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
            one => one.as_str().into_iter().collect(),
        };
        let clashes: Vec<String> =
            names.iter().filter(|name| taken.contains(**name)).map(|name| in_use(name)).collect();
        match clashes.as_slice() {
            [] => drop(accepted.insert(field.to_owned(), name.clone())),
            [one] => conflict = Some((reason, one.clone())),
            many => conflict = Some((reason, format!("[{}]", many.join(", ")))),
        }
    }
    match wanted.get("categories") {
        Some(categories) => drop(accepted.insert("categories".into(), categories.clone())),
        None => drop(accepted.remove("categories")),
    }
    (accepted, conflict)
}
