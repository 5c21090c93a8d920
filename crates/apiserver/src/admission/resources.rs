// SPDX-License-Identifier: Apache-2.0
//! Sums of resources, and what a pod asks for altogether.

use std::collections::BTreeMap;

use bivouac_core::Quantity;
use serde_json::Value;

use crate::object::Object;

/// Amounts by the name of the resource.
pub type Amounts = BTreeMap<String, Quantity>;

/// The amounts in a map of quantities.
pub fn at(value: &Value, pointer: &str) -> Amounts {
    let map = value.at(pointer).and_then(Value::as_object).into_iter().flatten();
    map.filter_map(|(name, amount)| Some((name.clone(), quantity(amount)?))).collect()
}

pub fn quantity(value: &Value) -> Option<Quantity> {
    serde_json::from_value(value.clone()).ok()
}

pub fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let entry = sum.entry(name.clone()).or_default();
        *entry = entry.checked_add(*amount).unwrap_or(*entry);
    }
}

fn raise(most: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let entry = most.entry(name.clone()).or_insert(*amount);
        *entry = (*entry).max(*amount);
    }
}

/// What the containers of a pod need together. Init containers run before the others, one after the other; those that
/// never end count from their start on.
fn total(pod: &Value, field: &str) -> Amounts {
    let list = |kind: &str| pod.at(&format!("/spec/{kind}")).and_then(Value::as_array).into_iter().flatten();
    let of = |container: &Value| at(container, &format!("/resources/{field}"));
    let mut sum = Amounts::new();
    for container in list("containers") {
        add(&mut sum, &of(container));
    }
    let (mut sidecars, mut start) = (Amounts::new(), Amounts::new());
    for container in list("initContainers") {
        let mut needs = of(container);
        if container.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
            add(&mut sum, &needs);
            add(&mut sidecars, &needs);
            needs.clone_from(&sidecars);
        } else {
            add(&mut needs, &sidecars);
        }
        raise(&mut start, &needs);
    }
    raise(&mut sum, &start);
    // What the pod says as a whole counts instead of the sum.
    sum.extend(at(pod, &format!("/spec/resources/{field}")));
    sum
}

pub fn requests(pod: &Value) -> Amounts {
    let mut sum = total(pod, "requests");
    add(&mut sum, &at(pod, "/spec/overhead"));
    sum
}

/// Overhead only counts where there is a limit.
pub fn limits(pod: &Value) -> Amounts {
    let mut sum = total(pod, "limits");
    let overhead = at(pod, "/spec/overhead").into_iter().filter(|(name, _)| sum.contains_key(name)).collect();
    add(&mut sum, &overhead);
    sum
}
