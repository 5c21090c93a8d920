// SPDX-License-Identifier: Apache-2.0
//! Budgets of disruptions.

use serde_json::{Value, json};

use super::{
    labels,
    place::Place,
    values::{at_most_all, int_or_percent},
};
use crate::{field::Error, object::as_object};

/// These numbers are written even when they are nothing.
pub fn prepare_create(budget: &mut Value) {
    let status = json!({ "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0 });
    as_object(budget).insert("status".into(), status);
}

pub fn check(budget: &Value) -> Vec<Error> {
    let mut errors = Vec::new();
    let root = Place::root(budget);
    let spec = root.field("spec");
    let (least, most) = (spec.field("minAvailable"), spec.field("maxUnavailable"));
    if least.exists() && most.exists() {
        let text =
            |at: &Place<'_, '_>| at.value().as_str().map_or_else(|| at.value().to_string(), |text| format!("{text:?}"));
        let shown = format!(
            "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}",
            text(&least),
            spec.field("selector").value(),
            text(&most),
            spec.field("unhealthyPodEvictionPolicy").value(),
        );
        errors.push(spec.invalid_raw(&shown, "minAvailable and maxUnavailable cannot be both set"));
    }
    for amount in [least, most] {
        int_or_percent(&amount, &mut errors);
        at_most_all(&amount, &mut errors);
    }
    labels::selector(&spec.field("selector"), &mut errors);
    spec.field("unhealthyPodEvictionPolicy").maybe_one_of(&["AlwaysAllow", "IfHealthyBudget"], &mut errors);
    errors
}
