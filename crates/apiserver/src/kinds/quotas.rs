// SPDX-License-Identifier: Apache-2.0
//! Quotas and limits of namespaces.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    place::Place,
    pod::resources::{amount, quantity},
    values,
};
use crate::field::Error;

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];
const OPPOSITES: [[&str; 2]; 2] = [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];
/// What a quota for pods can be about.
const OF_PODS: [&str; 9] = [
    "pods",
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
    "requests.ephemeral-storage",
    "limits.ephemeral-storage",
];

pub fn quota(object: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Place::root(object);
    let spec = root.field("spec");
    amounts(&spec.field("hard"), &mut errors);
    scopes(&spec, &mut errors);
    scope_selector(&spec, &mut errors);
    errors
}

fn amounts(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    for (name, _) in at.map() {
        let place = at.key(name);
        values::resource_name(&place, name, errors);
        let known = values::is_quota_resource(name);
        if !name.contains('/') && !known {
            errors.push(place.invalid_as(name, "must be a standard resource for quota"));
        }
        let whole = amount(&place).and_then(|amount| amount.milli_value()).is_none_or(|milli| milli % 1000 == 0);
        quantity(&place, name, errors);
        if !whole && name.starts_with("count/") {
            let why = "must be an integer";
            let told = errors.iter().any(|error| error.field == place.path() && error.detail == why);
            if !told {
                errors.push(place.invalid(why));
            }
        }
    }
}

/// Whether a scope makes sense for every resource of the quota.
fn fits(spec: &Place<'_, '_>, scope: &str) -> bool {
    let hard = spec.field("hard");
    match scope {
        "BestEffort" => hard.map().all(|(name, _)| name == "pods"),
        "Terminating" | "NotTerminating" | "NotBestEffort" | "PriorityClass" | "CrossNamespacePodAffinity" => {
            hard.map().all(|(name, _)| OF_PODS.contains(&name) || name.starts_with("requests.") || name == "count/pods")
        }
        _ => true,
    }
}

fn scopes(spec: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let list = spec.field("scopes");
    let mut seen = BTreeSet::new();
    for scope in list.items() {
        let name = scope.text();
        if !SCOPES.contains(&name) {
            errors.push(list.invalid("unsupported scope"));
        } else if !fits(spec, name) {
            errors.push(list.invalid("unsupported scope applied to resource"));
        }
        seen.insert(name);
    }
    for pair in OPPOSITES {
        if pair.iter().all(|scope| seen.contains(scope)) {
            errors.push(list.invalid("conflicting scopes"));
        }
    }
}

fn scope_selector(spec: &Place<'_, '_>, errors: &mut Vec<Error>) {
    const ONLY: &str = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
    let selector = spec.field("scopeSelector");
    let list = selector.field("matchExpressions");
    let one = |one: Place<'_, '_>| {
        format!(
            "{{\"ScopeName\":{},\"Operator\":{},\"Values\":{}}}",
            one.field("scopeName").value(),
            one.field("operator").value(),
            one.field("values").value()
        )
    };
    let shown = || format!("{{\"MatchExpressions\":[{}]}}", list.items().map(one).collect::<Vec<_>>().join(","));
    for requirement in list.items() {
        let (name, operator) = (requirement.field("scopeName").text(), requirement.field("operator").text());
        let values = requirement.field("values");
        if !SCOPES.contains(&name) {
            errors.push(list.field("scopeName").invalid_as(name, "unsupported scope"));
        } else if !fits(spec, name) {
            errors.push(list.invalid_raw(&shown(), "unsupported scope applied to resource"));
        }
        if SCOPES.contains(&name) && !["PriorityClass", "VolumeAttributesClass"].contains(&name) && operator != "Exists"
        {
            errors.push(list.field("operator").invalid_as(operator, ONLY));
            continue;
        }
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                errors.push(list.field("values").required(why));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                errors.push(list.field("values").invalid_as(values.value().clone(), why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.push(list.field("operator").invalid_as(operator, "not a valid selector operator")),
        }
    }
}

pub fn limits(object: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Place::root(object);
    let spec = root.field("spec");
    let mut seen = BTreeSet::new();
    for item in spec.field("limits").items() {
        let kind = item.field("type");
        let known = ["Pod", "Container", "PersistentVolumeClaim"].contains(&kind.text());
        if !known && !kind.text().contains('/') {
            errors.push(kind.invalid("must be a standard limit type or fully qualified"));
        }
        if !seen.insert(kind.text()) {
            errors.push(kind.duplicate());
        }
        limit_item(&item, kind.text(), &mut errors);
    }
    errors
}

fn limit_item(item: &Place<'_, '_>, kind: &str, errors: &mut Vec<Error>) {
    const LISTS: [&str; 5] = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];
    let mut names = BTreeSet::new();
    for field in LISTS {
        let list = item.field(field);
        for (name, _) in list.map() {
            values::resource_name(&list.key(name), name, errors);
            names.insert(name);
        }
    }
    if kind == "Pod" {
        for field in ["default", "defaultRequest"] {
            if !item.field(field).is_empty() {
                errors.push(item.field(field).forbidden("may not be specified when `type` is 'Pod'"));
            }
        }
    }
    if kind == "PersistentVolumeClaim" {
        let has = |field: &str| item.field(field).value().get("storage").is_some();
        if !has("min") && !has("max") {
            let why = "either minimum or maximum storage value is required, but neither was provided";
            errors.push(item.field("limits").required(why));
        }
    }
    for name in names {
        ordered(item, name, errors);
    }
}

/// The least, what is given without a word, and the most come in this order.
fn ordered(item: &Place<'_, '_>, name: &str, errors: &mut Vec<Error>) {
    let (max, min) = (item.field("max"), item.field("min"));
    let (default, request) = (item.field("default"), item.field("defaultRequest"));
    let of = |list: &Place<'_, '_>| amount(&list.key(name));
    let above = |low: &Place<'_, '_>, high: &Place<'_, '_>| match (of(low), of(high)) {
        (Some(low), Some(high)) => low > high,
        _ => false,
    };
    let text = |list: &Place<'_, '_>| list.key(name).text().to_owned();
    let mut tell = |at: &Place<'_, '_>, shown: String, why: String| errors.push(at.key(name).invalid_as(shown, why));
    if above(&min, &max) {
        tell(&min, text(&min), format!("min value {} is greater than max value {}", text(&min), text(&max)));
    }
    if above(&min, &request) {
        let why = format!("min value {} is greater than default request value {}", text(&min), text(&request));
        tell(&request, text(&request), why);
    }
    if above(&request, &max) {
        let why = format!("default request value {} is greater than max value {}", text(&request), text(&max));
        tell(&request, text(&request), why);
    }
    if above(&request, &default) {
        let why =
            format!("default request value {} is greater than default limit value {}", text(&request), text(&default));
        tell(&request, text(&request), why);
    }
    if above(&min, &default) {
        tell(
            &default,
            text(&min),
            format!("min value {} is greater than default value {}", text(&min), text(&default)),
        );
    }
    if above(&default, &max) {
        tell(
            &default,
            text(&max),
            format!("default value {} is greater than max value {}", text(&default), text(&max)),
        );
    }
    let ratio = item.field("maxLimitRequestRatio");
    if of(&ratio).and_then(|ratio| ratio.milli_value()).is_some_and(|milli| milli < 1000) {
        tell(&ratio, text(&ratio), format!("ratio {} is less than 1", text(&ratio)));
    }
}
