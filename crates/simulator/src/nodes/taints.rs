// SPDX-License-Identifier: Apache-2.0
//! The taints that follow from the state of a node.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};

use crate::{placement, workload::time};

const NO_SCHEDULE: &str = "NoSchedule";
const NO_EXECUTE: &str = "NoExecute";

/// A taint, and the condition with the value that brings it.
const BY_CONDITION: [(&str, &str, &str, &str); 8] = [
    ("not-ready", NO_SCHEDULE, "Ready", "False"),
    ("not-ready", NO_EXECUTE, "Ready", "False"),
    ("unreachable", NO_SCHEDULE, "Ready", "Unknown"),
    ("unreachable", NO_EXECUTE, "Ready", "Unknown"),
    ("memory-pressure", NO_SCHEDULE, "MemoryPressure", "True"),
    ("disk-pressure", NO_SCHEDULE, "DiskPressure", "True"),
    ("pid-pressure", NO_SCHEDULE, "PIDPressure", "True"),
    ("network-unavailable", NO_SCHEDULE, "NetworkUnavailable", "True"),
];

/// The taints that a node should have, if it does not have them. Those of people stay.
pub fn wanted(node: &Node, now: Timestamp) -> Option<Vec<Taint>> {
    let value = |kind: &str| {
        let all = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        all.iter().find(|one| one.type_ == kind).map(|one| one.status.as_str())
    };
    let cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
    let by_condition = BY_CONDITION.into_iter().filter_map(|(key, effect, kind, truth)| {
        // Before a node has spoken, nothing follows.
        value("Ready").map(|_| (key, effect, value(kind) == Some(truth)))
    });
    let mut taints = placement::taints(node).to_vec();
    let mut changed = false;
    for (key, effect, holds) in by_condition.chain([("unschedulable", NO_SCHEDULE, cordoned)]) {
        let key = format!("node.kubernetes.io/{key}");
        let is_it = |taint: &Taint| taint.key == key && taint.effect == effect;
        match (holds, taints.iter().any(is_it)) {
            (true, false) => {
                taints.push(Taint { key, effect: effect.to_owned(), time_added: Some(time(now)), value: None });
                changed = true;
            }
            (false, true) => {
                taints.retain(|taint| !is_it(taint));
                changed = true;
            }
            _ => {}
        }
    }
    changed.then_some(taints)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn taints_follow_conditions_and_leave_others_alone() {
        let cases = [
            (json!({}), json!(null), None),
            (json!({}), json!("True"), None),
            (json!({ "unschedulable": true }), json!("True"), Some(vec!["unschedulable:NoSchedule"])),
            (json!({}), json!("False"), Some(vec!["not-ready:NoSchedule", "not-ready:NoExecute"])),
            (json!({}), json!("Unknown"), Some(vec!["unreachable:NoSchedule", "unreachable:NoExecute"])),
            (
                json!({ "taints": [{ "key": "mine", "effect": "NoSchedule" },
                    { "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" }] }),
                json!("True"),
                Some(vec!["mine:NoSchedule"]),
            ),
        ];
        for (spec, ready, expected) in cases {
            let conditions = if ready.is_null() { json!([]) } else { json!([{ "type": "Ready", "status": ready }]) };
            let node = json!({ "metadata": { "name": "n" }, "spec": spec, "status": { "conditions": conditions } });
            let node: Node = serde_json::from_value(node).unwrap();
            let short =
                |taint: &Taint| format!("{}:{}", taint.key.trim_start_matches("node.kubernetes.io/"), taint.effect);
            let found = wanted(&node, Timestamp::UNIX_EPOCH).map(|all| all.iter().map(short).collect::<Vec<_>>());
            assert_eq!(found, expected.map(|all| all.iter().map(ToString::to_string).collect()), "{node:?}");
        }
    }
}
