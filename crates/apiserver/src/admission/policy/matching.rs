// SPDX-License-Identifier: Apache-2.0
//! Which requests a policy or a webhook is about.

use serde_json::Value;

use super::super::{Operation, Review, look};
use crate::{
    call::Call,
    object::{Object, text},
    request::selector::LabelSelector,
};

/// Whether the request is among those that these constraints select. `rules` is where they keep their rules.
pub fn matches(call: &Call, review: &Review<'_>, constraints: &Value, rules: &str) -> bool {
    let list = |key: &str| constraints.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let equivalent = text(constraints, "/matchPolicy") != "Exact";
    let any = |rules: &[Value]| rules.iter().any(|rule| rule_matches(call, review, rule, equivalent));
    let rules = list(rules);
    // What costs least comes first.
    (rules.is_empty() || any(rules))
        && !any(list("excludeResourceRules"))
        && has_labels(review, constraints.get("objectSelector"))
        && in_namespace(call, review, constraints.get("namespaceSelector"))
}

fn selects(selector: &Value, object: &Value) -> bool {
    let labels = object.meta().and_then(|meta| meta.get("labels"));
    let get = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    LabelSelector::from_object(selector).is_some_and(|selector| selector.matches(get))
}

fn is_empty(selector: &Value) -> bool {
    selector.as_object().is_none_or(|map| {
        map.values()
            .all(|part| part.as_object().is_none_or(|it| it.is_empty()) && part.as_array().is_none_or(Vec::is_empty))
    })
}

fn in_namespace(call: &Call, review: &Review<'_>, selector: Option<&Value>) -> bool {
    let Some(selector) = selector.filter(|selector| !is_empty(selector)) else { return true };
    if call.resource.group.is_empty() && &*call.resource.kind == "Namespace" {
        // A namespace is in itself. What is asked for counts, unless it is a change.
        return match (review.operation, review.object(), review.old) {
            (Operation::Create, Some(new), _) | (_, Some(new), None) => selects(selector, new),
            (_, _, Some(old)) => selects(selector, old),
            _ => false,
        };
    }
    if review.namespace.is_empty() {
        return true;
    }
    look(&call.server, "", "namespaces", review.namespace).is_some_and(|namespace| selects(selector, &namespace))
}

fn has_labels(review: &Review<'_>, selector: Option<&Value>) -> bool {
    let Some(selector) = selector.filter(|selector| !is_empty(selector)) else { return true };
    review.object().is_some_and(|object| selects(selector, object))
        || review.old.is_some_and(|old| selects(selector, old))
}

fn rule_matches(call: &Call, review: &Review<'_>, rule: &Value, equivalent: bool) -> bool {
    let resource = &call.resource;
    let list = |key: &str| rule.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let any = |key: &str, wanted: &str| list(key).any(|one| one == "*" || one == wanted);
    let scope = match text(rule, "/scope") {
        "Namespaced" => resource.namespaced,
        "Cluster" => !resource.namespaced,
        _ => true,
    };
    let names: Vec<&str> = list("resourceNames").collect();
    let version = any("apiVersions", &resource.version)
        || (equivalent
            && call.server.registry().group(&resource.group).is_some_and(|group| {
                group.versions.iter().any(|version| any("apiVersions", version) && serves(call, version))
            }));
    let part = call.target.subresource.as_deref().unwrap_or_default();
    scope
        && any("operations", word(review.operation))
        && any("apiGroups", &resource.group)
        && version
        && list("resources").any(|pattern| resource_matches(pattern, &resource.plural, part))
        && (names.is_empty() || names.contains(&review.name))
}

fn serves(call: &Call, version: &str) -> bool {
    call.server.registry().find(&call.resource.group, version, &call.resource.plural).is_some()
}

fn resource_matches(pattern: &str, plural: &str, part: &str) -> bool {
    let (of, wanted) = pattern.split_once('/').unwrap_or((pattern, ""));
    (of == "*" || of == plural) && (wanted == part || (wanted == "*"))
}

pub fn word(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
    }
}
