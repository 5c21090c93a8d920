// SPDX-License-Identifier: Apache-2.0
//! Label selectors and label maps inside of objects.

use serde_json::Value;

use super::place::Place;
use crate::{field::Error, names};

/// What is wrong with a label selector.
pub fn selector(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    map(&at.field("matchLabels"), errors);
    for one in at.field("matchExpressions").items() {
        requirement(&one, errors);
    }
}

fn requirement(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    let values = at.field("values");
    match at.field("operator").text() {
        "In" | "NotIn" if values.is_empty() => {
            errors.push(values.required("must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "In" | "NotIn" => {}
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            errors.push(values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
        }
        "Exists" | "DoesNotExist" => {}
        _ => errors.push(at.field("operator").invalid("not a valid selector operator")),
    }
    at.field("key").named(names::qualified_name, errors);
    for value in values.items() {
        value.named(names::label_value, errors);
    }
}

/// Labels: keys and values are told by the path of the map.
pub fn map(at: &Place<'_, '_>, errors: &mut Vec<Error>) {
    for (key, value) in at.map() {
        let text = value.as_str().unwrap_or_default();
        errors.extend(names::qualified_name(key).into_iter().map(|why| at.invalid_as(key, why)));
        errors.extend(names::label_value(text).into_iter().map(|why| at.invalid_as(text, why)));
    }
}

/// Whether a selector asks for nothing.
pub fn is_empty(selector: &Value) -> bool {
    let none = |field: &str| match selector.get(field) {
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        _ => true,
    };
    none("matchLabels") && none("matchExpressions")
}

/// Whether a selector selects these labels.
pub fn matches(selector: &Value, labels: Option<&Value>) -> bool {
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    let equal = |(key, value): (&String, &Value)| label(key).is_some() && label(key) == value.as_str();
    let fits = |one: &Value| {
        let found = label(one.get("key").and_then(Value::as_str).unwrap_or_default());
        let listed = || {
            let values = one.get("values").and_then(Value::as_array).into_iter().flatten();
            found.is_some_and(|found| values.into_iter().any(|value| value.as_str() == Some(found)))
        };
        match one.get("operator").and_then(Value::as_str).unwrap_or_default() {
            "In" => listed(),
            "NotIn" => !listed(),
            "Exists" => found.is_some(),
            "DoesNotExist" => found.is_none(),
            _ => false,
        }
    };
    let all = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten().all(equal);
    all && selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten().all(fits)
}
