// SPDX-License-Identifier: Apache-2.0
//! Jobs.

use serde_json::Value;

use super::{labels, place::Place, pod, values, workloads::selected};
use crate::{
    field::Error,
    names,
    object::{Object, as_object, text},
};

const MOST_PARALLEL: i64 = 100_000;

pub fn check(job: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Place::root(job);
    let spec = root.field("spec");
    check_spec(&spec, &mut errors);
    own_selector(&spec, job, &mut errors);
    let completions = spec.field("completions").number().unwrap_or_default();
    if is_indexed(&spec) && completions > 0 {
        let pod = format!("{}-{}", job.name(), completions - 1);
        if !names::label(&pod).is_empty() {
            let why = format!("will not able to create pod with invalid DNS label: {pod}");
            errors.push(Error::invalid("metadata.name", job.name(), why));
        }
    }
    errors
}

fn is_indexed(spec: &Place<'_, '_>) -> bool {
    spec.field("completionMode").text() == "Indexed"
}

/// What the spec of a job must be, also inside of a cron job.
pub fn check_spec(spec: &Place<'_, '_>, errors: &mut Vec<Error>) {
    const NUMBERS: [&str; 7] = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    for field in NUMBERS {
        spec.field(field).not_negative(errors);
    }
    if spec.field("managedBy").exists() {
        values::prefixed_path(&spec.field("managedBy"), errors);
    }
    spec.field("completionMode").maybe_one_of(&["NonIndexed", "Indexed"], errors);
    indexes(spec, errors);
    success(spec, errors);
    failure(spec, errors);
    let replacement = spec.field("podReplacementPolicy");
    if spec.field("podFailurePolicy").exists() {
        replacement.maybe_one_of(&["Failed"], errors);
    } else {
        replacement.maybe_one_of(&["Failed", "TerminatingOrFailed"], errors);
    }
    let template = spec.field("template");
    pod::template(&template, errors);
    restart(spec, errors);
}

fn restart(spec: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let template = spec.field("template");
    let inner = template.field("spec");
    let policy = inner.field("restartPolicy");
    match policy.text() {
        "" | "Always" => errors.push(policy.required("valid values: \"OnFailure\", \"Never\"")),
        "OnFailure" | "Never" => {}
        _ => errors.push(policy.not_supported(&["OnFailure", "Never"])),
    }
    if spec.field("podFailurePolicy").exists() && policy.text() != "Never" {
        errors.push(policy.invalid("only \"Never\" is supported when podFailurePolicy is specified"));
    }
}

fn indexes(spec: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let (per_index, failed) = (spec.field("backoffLimitPerIndex"), spec.field("maxFailedIndexes"));
    let completions = spec.field("completions");
    if failed.exists() && !per_index.exists() {
        errors.push(per_index.required("when maxFailedIndexes is specified"));
    }
    if !is_indexed(spec) {
        for field in [per_index, failed] {
            if field.exists() {
                errors.push(field.invalid("requires indexed completion mode"));
            }
        }
        return;
    }
    if !completions.exists() {
        errors.push(completions.required("when completion mode is Indexed"));
    }
    let parallelism = spec.field("parallelism");
    if parallelism.number().is_some_and(|number| number > MOST_PARALLEL) {
        errors.push(
            parallelism
                .invalid(format!("must be less than or equal to {MOST_PARALLEL} when completion mode is Indexed")),
        );
    }
    if let (Some(most), Some(all)) = (failed.number(), completions.number()) {
        if most > all {
            errors.push(failed.invalid("must be less than or equal to completions"));
        }
        if most > MOST_PARALLEL {
            errors.push(failed.invalid(format!("must be less than or equal to {MOST_PARALLEL}")));
        }
    }
}

fn success(spec: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let policy = spec.field("successPolicy");
    if !policy.exists() {
        return;
    }
    let rules = policy.field("rules");
    if !is_indexed(spec) {
        let one = |rule: Place<'_, '_>| {
            format!(
                "{{\"SucceededIndexes\":{},\"SucceededCount\":{}}}",
                rule.field("succeededIndexes").value(),
                rule.field("succeededCount").value()
            )
        };
        let all: Vec<String> = rules.items().map(one).collect();
        errors.push(
            policy.invalid_raw(&format!("{{\"Rules\":[{}]}}", all.join(",")), "requires indexed completion mode"),
        );
        return;
    }
    if rules.is_empty() {
        errors.push(rules.required("at least one rules must be specified when the successPolicy is specified"));
    }
    let completions = spec.field("completions").number().unwrap_or_default();
    for rule in rules.items() {
        success_rule(&rule, completions, errors);
    }
}

fn success_rule(rule: &Place<'_, '_>, completions: i64, errors: &mut Vec<Error>) {
    let (list, count) = (rule.field("succeededIndexes"), rule.field("succeededCount"));
    if !list.exists() && !count.exists() {
        errors.push(rule.required("at least one of succeededCount or succeededIndexes must be specified"));
    }
    let mut listed = None;
    if list.exists() {
        match count_indexes(list.text(), completions) {
            Ok(total) => listed = Some(total),
            Err(why) => {
                listed = Some(0);
                errors.push(list.invalid(format!("error parsing succeededIndexes: {why}")));
            }
        }
    }
    count.not_negative(errors);
    if let Some(wanted) = count.number() {
        if wanted > completions {
            let why = format!("must be less than or equal to {completions} (the number of specified completions)");
            errors.push(count.invalid(why));
        }
        if let Some(listed) = listed.filter(|listed| wanted > *listed) {
            errors.push(count.invalid(format!(
                "must be less than or equal to {listed} (the number of indexes in the specified succeededIndexes field)"
            )));
        }
    }
}

/// How many indexes a list like `1,3-5` names.
fn count_indexes(list: &str, completions: i64) -> Result<i64, String> {
    let number = |text: &str| -> Result<i64, String> {
        let value: i64 = text.parse().map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
        if value >= completions { Err(format!("too large index: {text:?}")) } else { Ok(value) }
    };
    let mut total = 0;
    let mut last: Option<i64> = None;
    for part in list.split(',').filter(|_| !list.is_empty()) {
        let ends: Vec<&str> = part.split('-').collect();
        let (from, to) = match ends.as_slice() {
            [one] => (number(one)?, number(one)?),
            [from, to] => (number(from)?, number(to)?),
            _ => {
                return Err(format!(
                    "the fragment {part:?} violates the requirement that an index interval can have at most two parts separated by '-'"
                ));
            }
        };
        if let Some(last) = last.filter(|last| *last >= from) {
            return Err(format!("non-increasing order, previous: {last}, current: {from}"));
        }
        if from > to {
            return Err(format!("non-increasing order, previous: {from}, current: {to}"));
        }
        total += to - from + 1;
        last = Some(to);
    }
    Ok(total)
}

fn failure(spec: &Place<'_, '_>, errors: &mut Vec<Error>) {
    const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
    let policy = spec.field("podFailurePolicy");
    let template = spec.field("template");
    let inner = template.field("spec");
    let containers: Vec<&str> = pod::containers::all(inner.value()).map(|one| text(one, "/name")).collect();
    for rule in policy.field("rules").items() {
        let action = rule.field("action");
        match action.text() {
            "" => errors.push(action.required("valid values: \"Count\", \"FailIndex\", \"FailJob\", \"Ignore\"")),
            "FailIndex" if !spec.field("backoffLimitPerIndex").exists() => {
                errors.push(action.invalid("requires the backoffLimitPerIndex to be set"));
            }
            other if ACTIONS.contains(&other) => {}
            _ => errors.push(action.not_supported(&ACTIONS)),
        }
        let (codes, conditions) = (rule.field("onExitCodes"), rule.field("onPodConditions"));
        if codes.exists() {
            exit_codes(&codes, &containers, errors);
        }
        for condition in conditions.items() {
            condition.field("type").named(names::qualified_name, errors);
            condition.field("status").one_of(&["False", "True", "Unknown"], errors);
        }
        match (codes.exists(), !conditions.is_empty()) {
            (true, true) => {
                errors.push(rule.refused("specifying both OnExitCodes and OnPodConditions is not supported"))
            }
            (false, false) => {
                errors.push(rule.refused("specifying one of OnExitCodes and OnPodConditions is required"))
            }
            _ => {}
        }
    }
}

fn exit_codes(at: &Place<'_, '_>, containers: &[&str], errors: &mut Vec<Error>) {
    let (operator, list) = (at.field("operator"), at.field("values"));
    match operator.text() {
        "" => errors.push(operator.required("valid values: \"In\", \"NotIn\"")),
        _ => operator.one_of(&["In", "NotIn"], errors),
    }
    let name = at.field("containerName");
    if name.exists() && !containers.contains(&name.text()) {
        errors.push(name.invalid("must be one of the container or initContainer names in the pod template"));
    }
    if list.is_empty() {
        errors.push(list.invalid_as(Value::Array(Vec::new()), "at least one value is required"));
    }
    let mut seen = Vec::new();
    for value in list.items() {
        let number = value.number().unwrap_or_default();
        if operator.text() == "In" && number == 0 {
            errors.push(value.invalid("must not be 0 for the In operator"));
        }
        if seen.contains(&number) {
            errors.push(value.duplicate());
        }
        seen.push(number);
    }
    if !seen.is_sorted() {
        errors.push(list.invalid("must be ordered"));
    }
}

/// A selector of a job is made by the server, unless the job says that it has its own.
fn own_selector(spec: &Place<'_, '_>, job: &Value, errors: &mut Vec<Error>) {
    let selector = spec.field("selector");
    if !selector.exists() {
        errors.push(selector.required(""));
    } else {
        labels::selector(&selector, errors);
    }
    let labels = selector.value().get("matchLabels").and_then(Value::as_object);
    // The key has a slash, which no way of fields can spell.
    let names_us = |key: &str| labels.and_then(|labels| labels.get(key)).is_some_and(|value| value == job.uid());
    let made = names_us("batch.kubernetes.io/controller-uid") && labels.is_some_and(|labels| labels.len() == 1);
    let legacy = names_us("controller-uid");
    if !spec.field("manualSelector").flag() && selector.exists() && !made && !legacy {
        errors.push(selector.invalid("`selector` not auto-generated"));
    }
    selected(&selector, &spec.field("template"), errors);
}

pub fn check_update(new: &Value, old: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let (root, before) = (Place::root(new), Place::root(old));
    let (spec, old_spec) = (root.field("spec"), before.field("spec"));
    let completions = spec.field("completions");
    if completions.value() != old_spec.field("completions").value() {
        if !is_indexed(&spec) {
            errors.push(completions.invalid_as(completions.value().clone(), "field is immutable"));
        } else if completions.value() != spec.field("parallelism").value() {
            errors.push(completions.invalid("can only be modified in tandem with spec.parallelism"));
        }
    }
    for field in
        ["selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
    {
        spec.field(field).fixed(&old_spec.field(field), &mut errors);
    }
    let waits = old_spec.field("suspend").flag() && old.pointer("/status/startTime").is_none();
    if template(new, old, waits) != template(old, old, waits) {
        let whole = spec.field("template");
        errors.push(if waits { whole.field("spec") } else { whole }.invalid("field is immutable"));
    }
    errors
}

/// The template with what may change taken from the old one: a job that has not begun can be sent elsewhere.
fn template(job: &Value, old: &Value, waits: bool) -> Value {
    let mut template = job.pointer("/spec/template").cloned().unwrap_or_default();
    let before = old.pointer("/spec/template").cloned().unwrap_or_default();
    if !waits {
        return template;
    }
    let places = [
        ("spec", ["nodeSelector", "tolerations", "schedulingGates", "affinity"].as_slice()),
        ("metadata", ["labels", "annotations"].as_slice()),
    ];
    for (part, fields) in places {
        let map = crate::object::child_object(as_object(&mut template), part);
        for field in fields {
            match before.get(part).and_then(|part| part.get(*field)).cloned() {
                Some(value) => drop(map.insert((*field).to_owned(), value)),
                None => drop(map.remove(*field)),
            }
        }
    }
    for list in ["/spec/containers", "/spec/initContainers"] {
        for container in template.pointer_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            as_object(container).remove("resources");
        }
    }
    template
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_selector_that_the_server_made_is_known() {
        let errors = |key: &str, uid: &str| {
            let labels = json!({ key: uid });
            let job = json!({
                "metadata": { "name": "a", "uid": "u" },
                "spec": {
                    "selector": { "matchLabels": labels },
                    "template": { "metadata": { "labels": labels } },
                },
            });
            let mut errors = Vec::new();
            own_selector(&Place::root(&job).field("spec"), &job, &mut errors);
            errors.len()
        };
        assert_eq!(errors("batch.kubernetes.io/controller-uid", "u"), 0);
        assert_eq!(errors("controller-uid", "u"), 0);
        assert_eq!(errors("batch.kubernetes.io/controller-uid", "v"), 1);
        assert_eq!(errors("app", "u"), 1);
    }
}
