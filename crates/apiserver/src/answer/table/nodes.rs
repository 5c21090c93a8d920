// SPDX-License-Identifier: Apache-2.0
//! How a node is doing, in a few words.

use serde_json::Value;

use crate::object::{Object, text};

/// `Ready,SchedulingDisabled`
pub fn status(node: &Value) -> String {
    let conditions = node.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let ready = conditions.into_iter().find(|one| text(one, "/type") == "Ready");
    let mut words = vec![match ready.map(|one| text(one, "/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }];
    if node.pointer("/spec/unschedulable").and_then(Value::as_bool) == Some(true) {
        words.push("SchedulingDisabled");
    }
    words.join(",")
}

/// What the labels say a node is for.
pub fn roles(node: &Value) -> String {
    let mut roles: Vec<&str> = node
        .labels()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => Some(value),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") }
}

pub fn address(node: &Value, kind: &str) -> String {
    let addresses = node.pointer("/status/addresses").and_then(Value::as_array).into_iter().flatten();
    let found = addresses.into_iter().find(|one| text(one, "/type") == kind).map(|one| text(one, "/address"));
    found.unwrap_or("<none>").to_owned()
}
