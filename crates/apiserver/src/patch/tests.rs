// SPDX-License-Identifier: Apache-2.0
use serde_json::{Value, json};

use super::*;
use crate::builtin::builtins;

/// Patches of objects on a real server of version 1.36.3, with its answers.
const REAL: &str = include_str!("tests/real.json");

#[test]
fn patches_as_the_real_server_did() {
    let recorded: Value = serde_json::from_str(REAL).unwrap();
    let patches = recorded["patches"].as_array().unwrap();
    assert!(patches.len() > 130, "only {} patches", patches.len());
    for one in patches {
        let before = &recorded["before"][one["of"].as_str().unwrap()];
        let patch = one["patch"].clone();
        let (group, version) = {
            let version = before["apiVersion"].as_str().unwrap();
            version.split_once('/').unwrap_or(("", version))
        };
        let kind = before["kind"].as_str().unwrap();
        let patched = match one["type"].as_str().unwrap() {
            "json" => json(before.clone(), &patch, one["ignore"].is_null()),
            "merge" => merge(before.clone(), patch),
            _ => {
                let id = builtins().kind(group, version, kind).unwrap();
                strategic(before.clone(), patch, builtins().root(id).schema())
            }
        };
        match patched {
            Ok(mut object) => {
                complete(&mut object, group, version, kind);
                assert_eq!(object, one["want"], "{one}");
            }
            Err(error) => {
                let code = match &error {
                    PatchError::BadRequest(_) => 400,
                    PatchError::TooLarge(_) => 413,
                    PatchError::Rejected => 422,
                    PatchError::Failed(_) => 500,
                };
                assert_eq!(
                    (json!(error.to_string()), json!(code)),
                    (one["error"].clone(), one["code"].clone()),
                    "{one}"
                );
            }
        }
    }
}

/// What decoding does to every object: unknown fields go, defaults come.
fn complete(object: &mut Value, group: &str, version: &str, kind: &str) {
    let known = ["apiVersion", "data", "kind", "metadata", "spec", "template"];
    object.as_object_mut().unwrap().retain(|name, _| known.contains(&name.as_str()));
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.retain(|_, value| !value.is_null() && *value != json!({}) && *value != json!([]));
    builtins().complete(group, version, kind, object);
    if kind == "Deployment" || kind == "PodDisruptionBudget" {
        object.as_object_mut().unwrap().remove("status");
    }
}

#[test]
fn a_json_patch_has_a_limit() {
    let operation = json!({"op": "test", "path": "/a", "value": 1});
    let patch = |count| Value::Array(vec![operation.clone(); count]);
    assert_eq!(json(json!({"a": 1}), &patch(10_000), true), Ok(json!({"a": 1})));
    let error = json(json!({"a": 1}), &patch(10_001), true).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    );
}

#[test]
fn a_failed_json_patch_changes_nothing() {
    let patch = json!([{"op": "add", "path": "/b", "value": 1}, {"op": "test", "path": "/b", "value": 2}]);
    assert_eq!(json(json!({"a": 1}), &patch, true), Err(PatchError::Rejected));
}
