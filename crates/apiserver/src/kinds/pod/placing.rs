// SPDX-License-Identifier: Apache-2.0
//! Where a pod may run: affinity, tolerations, spreading.

use crate::{
    field::Error,
    kinds::{labels, place::Place},
    names,
};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub fn affinity(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let node = at.field("nodeAffinity");
    let required = node.field(REQUIRED);
    if required.exists() {
        node_selector(&required, errors);
    }
    for one in node.field(PREFERRED).items() {
        weight(&one.field("weight"), errors);
        node_term(&one.field("preference"), true, errors);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let pods = at.field(kind);
        for term in pods.field(REQUIRED).items() {
            pod_term(&term, errors);
        }
        for one in pods.field(PREFERRED).items() {
            weight(&one.field("weight"), errors);
            pod_term(&one.field("podAffinityTerm"), errors);
        }
    }
}

fn weight(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let weight = at.number().unwrap_or_default();
    if !(1..=100).contains(&weight) {
        errors.push(at.invalid_as(weight, "must be in the range 1-100"));
    }
}

pub fn node_selector(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let terms = at.field("nodeSelectorTerms");
    if terms.is_empty() {
        errors.push(terms.required("must have at least one node selector term"));
    }
    for term in terms.items() {
        node_term(&term, true, errors);
    }
}

fn node_term(at: &Place<'_, '_>, values: bool, errors: &mut Vec<Error>) {
    for one in at.field("matchExpressions").items() {
        node_requirement(&one, errors);
        for value in one.field("values").items().filter(|_| values) {
            value.named(names::label_value, errors);
        }
    }
    for one in at.field("matchFields").items() {
        let key = one.field("key");
        let list = one.field("values");
        match one.field("operator").text() {
            "In" | "NotIn" if list.len() != 1 => {
                errors.push(
                    list.required("must be only one value when `operator` is 'In' or 'NotIn' for node field selector"),
                );
            }
            "In" | "NotIn" => {}
            _ => errors.push(one.field("operator").invalid("not a valid selector operator")),
        }
        if key.text() != "metadata.name" {
            errors.push(key.invalid("not a valid field selector key"));
        }
    }
}

fn node_requirement(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let values = at.field("values");
    match at.field("operator").text() {
        "In" | "NotIn" if values.is_empty() => {
            errors.push(values.required("must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            errors.push(values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
        }
        "Gt" | "Lt" if values.len() != 1 => {
            errors.push(values.required("must be specified single value when `operator` is 'Lt' or 'Gt'"));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        _ => errors.push(at.field("operator").invalid("not a valid selector operator")),
    }
    at.field("key").named(names::qualified_name, errors);
}

fn pod_term(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    labels::selector(&at.field("labelSelector"), errors);
    labels::selector(&at.field("namespaceSelector"), errors);
    for name in at.field("namespaces").items() {
        let place = at.field("namespace");
        errors.extend(names::label(name.text()).into_iter().map(|why| place.invalid_as(name.text(), why)));
    }
    let key = at.field("topologyKey");
    if key.is_empty() {
        errors.push(key.required("can not be empty"));
    }
    key.named(names::qualified_name, errors);
}

pub fn tolerations(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    for one in at.items() {
        let (key, operator, effect) = (one.field("key"), one.field("operator"), one.field("effect"));
        if !key.is_empty() {
            key.named(names::qualified_name, errors);
        }
        if key.is_empty() && operator.text() != "Exists" {
            errors.push(
                operator.invalid(
                    "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
                ),
            );
        }
        if one.field("tolerationSeconds").exists() && effect.text() != "NoExecute" {
            errors.push(effect.invalid("effect must be 'NoExecute' when `tolerationSeconds` is set"));
        }
        match operator.text() {
            "Equal" | "" => {
                let value = one.field("value").text();
                errors.extend(names::label_value(value).into_iter().map(|why| operator.invalid_as(value, why)));
            }
            "Exists" if !one.field("value").is_empty() => {
                let value = one.field("value").text();
                errors.push(operator.invalid_as(value, "value must be empty when `operator` is 'Exists'"));
            }
            "Exists" => {}
            _ => errors.push(operator.not_supported(&["Equal", "Exists"])),
        }
        if !effect.is_empty() {
            effect.one_of(&["NoSchedule", "PreferNoSchedule", "NoExecute"], errors);
        }
    }
}

pub fn spreading(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    for one in at.items() {
        let skew = one.field("maxSkew");
        if skew.number().unwrap_or_default() <= 0 {
            errors.push(skew.invalid_as(skew.number().unwrap_or_default(), "must be greater than zero"));
        }
        let key = one.field("topologyKey");
        if key.is_empty() {
            errors.push(key.required("can not be empty"));
        } else {
            key.named(names::qualified_name, errors);
        }
        let when = one.field("whenUnsatisfiable");
        when.one_of(&["DoNotSchedule", "ScheduleAnyway"], errors);
        let same = |other: &Place<'_, '_>| {
            other.field("topologyKey").text() == key.text() && other.field("whenUnsatisfiable").text() == when.text()
        };
        // The first of two is the one that is told.
        let later = at.items().skip_while(|other| !std::ptr::eq(other.value(), one.value())).skip(1);
        if later.into_iter().any(|other| same(&other)) {
            let pair = format!("{{{}, {}}}", key.text(), when.text());
            errors.push(Error::duplicate(one.field("{topologyKey, whenUnsatisfiable}").path(), pair));
        }
        let least = one.field("minDomains");
        if least.number().is_some_and(|number| number <= 0) {
            errors.push(least.invalid("must be greater than zero"));
        } else if least.exists() && when.text() != "DoNotSchedule" {
            let why = "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway";
            errors.push(least.invalid(why));
        }
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            one.field(field).maybe_one_of(&["Honor", "Ignore"], errors);
        }
        labels::selector(&one.field("labelSelector"), errors);
    }
}
