// SPDX-License-Identifier: Apache-2.0
//! Roles and their bindings.

use serde_json::Value;

use super::{labels, place::Place};
use crate::{field::Error, names, object::text};

const GROUP: &str = "rbac.authorization.k8s.io";

pub fn role(object: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Place::root(object);
    rules(&root.field("rules"), true, &mut errors);
    errors
}

pub fn cluster_role(object: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Place::root(object);
    rules(&root.field("rules"), false, &mut errors);
    let aggregation = root.field("aggregationRule");
    if aggregation.exists() {
        let selectors = aggregation.field("clusterRoleSelectors");
        if selectors.is_empty() {
            let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
            errors.push(selectors.required(why));
        }
        for selector in selectors.items() {
            let before = errors.len();
            labels::selector(&selector, &mut errors);
            if errors.len() > before {
                errors.push(selector.invalid_as(Value::Null, "invalid label selector."));
            }
        }
    }
    errors
}

fn rules(at: &Place<'_, '_>, namespaced: bool, errors: &mut Vec<Error>) {
    for rule in at.items() {
        let verbs = rule.field("verbs");
        if verbs.is_empty() {
            errors.push(verbs.required("verbs must contain at least one value"));
        }
        let paths = rule.field("nonResourceURLs");
        let (groups, resources) = (rule.field("apiGroups"), rule.field("resources"));
        if !paths.is_empty() {
            if namespaced {
                errors.push(paths.invalid("namespaced rules cannot apply to non-resource URLs"));
            }
            if !groups.is_empty() || !resources.is_empty() || !rule.field("resourceNames").is_empty() {
                errors.push(paths.invalid("rules cannot apply to both regular resources and non-resource URLs"));
            }
            continue;
        }
        if groups.is_empty() {
            errors.push(groups.required("resource rules must supply at least one api group"));
        }
        if resources.is_empty() {
            errors.push(resources.required("resource rules must supply at least one resource"));
        }
    }
}

pub fn role_binding(object: &Value) -> Vec<Error> {
    binding(object, &["Role", "ClusterRole"])
}

pub fn cluster_role_binding(object: &Value) -> Vec<Error> {
    binding(object, &["ClusterRole"])
}

fn binding(object: &Value, kinds: &[&str]) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Place::root(object);
    let role = root.field("roleRef");
    role.field("apiGroup").one_of(&[GROUP], &mut errors);
    role.field("kind").one_of(kinds, &mut errors);
    let name = role.field("name");
    if name.must_be(&mut errors) {
        name.named(names::path_segment, &mut errors);
    }
    let namespaced = kinds.len() > 1;
    for subject in root.field("subjects").items() {
        self::subject(&subject, namespaced, &mut errors);
    }
    errors
}

fn subject(at: &Place<'_, '_>, namespaced: bool, errors: &mut Vec<Error>) {
    let (name, group) = (at.field("name"), at.field("apiGroup"));
    let named = name.must_be(errors);
    match at.field("kind").text() {
        "ServiceAccount" => {
            if named {
                name.named(names::subdomain, errors);
            }
            if !group.text().is_empty() {
                errors.push(group.not_supported(&[""]));
            }
            if !namespaced && at.field("namespace").is_empty() {
                errors.push(at.field("namespace").required(""));
            }
        }
        "User" | "Group" => group.one_of(&[GROUP], errors),
        _ => errors.push(at.field("kind").not_supported(&["ServiceAccount", "User", "Group"])),
    }
}

/// A binding gives one role for ever.
pub fn binding_update(new: &Value, old: &Value) -> Vec<Error> {
    if new.get("roleRef") == old.get("roleRef") {
        return Vec::new();
    }
    let part = |field: &str| text(new, &format!("/roleRef/{field}"));
    let shown =
        format!("{{\"APIGroup\":{:?},\"Kind\":{:?},\"Name\":{:?}}}", part("apiGroup"), part("kind"), part("name"));
    let root = Place::root(new);
    vec![root.field("roleRef").invalid_raw(&shown, "cannot change roleRef")]
}
