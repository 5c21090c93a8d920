// SPDX-License-Identifier: Apache-2.0
//! What the real server answered, and laws that hold for all objects.

mod laws;
mod sets;

use serde_json::json;

use super::{testing, *};
use crate::builtin::builtins;

/// Requests to a real server of version 1.36.3 with its answers, one object per case.
const REAL: &str = include_str!("tests/real.json");

#[test]
fn answers_as_the_real_server_did() {
    let recorded: Value = serde_json::from_str(REAL).unwrap();
    let probe = testing::object(recorded["schema"].clone());
    let mut steps = 0;
    for case in recorded["cases"].as_array().unwrap() {
        let kind = case["kind"].as_str().unwrap();
        let api_version = case["apiVersion"].as_str().unwrap();
        let custom = kind == "Probe";
        let (mut empty, root) = match custom {
            true => (json!({}), probe.clone()),
            false => {
                let id = builtins().kind("", api_version, kind).unwrap();
                (zero(builtins(), id), builtins().root(id))
            }
        };
        empty["apiVersion"] = json!(api_version);
        empty["kind"] = json!(kind);
        let kind = Kind { api_version, kind, schema: root.schema(), empty: &empty, custom, versions: &[] };
        let mut live = None;
        for (place, step) in case["steps"].as_array().unwrap().iter().enumerate() {
            let at = format!("{}, step {place}", case["name"]);
            live = Some(replay(&at, live.as_ref(), step, kind).unwrap_or_else(|| live.unwrap_or_default()));
            live = live.filter(|live| !live.is_null());
            steps += 1;
        }
    }
    assert!(steps > 150, "only {steps} steps");
}

/// Does one step and compares. Gives what the real server has now, if the step changed it.
fn replay(at: &str, live: Option<&Value>, step: &Value, kind: Kind<'_>) -> Option<Value> {
    let subresource = step["sub"].as_str().unwrap_or_default();
    let reset = match subresource {
        "" => Set::of_fields(&[&["status"]]),
        _ => Set::of_fields(&[&["metadata"], &["spec"]]),
    };
    let write = Write {
        kind,
        manager: step["manager"].as_str().unwrap(),
        subresource,
        now: step["now"].as_str().unwrap(),
        reset: &reset,
    };
    let answer = match step["op"].as_str().unwrap() {
        "apply" => apply(live, &step["body"], &write, step["force"] == true),
        _ => Ok(update(live, step["body"].clone(), &write)),
    };
    match answer {
        Ok(mut object) => {
            keep_what_the_endpoint_does_not_write(&mut object, live, subresource);
            complete(&mut object, &kind);
            if let Some(live) = live {
                keep_times(&mut object, live);
            }
            assert!(step["error"].is_null(), "{at}: applied, but the real server said {}", step["error"]);
            assert_eq!(object, step["want"], "{at}");
            Some(object)
        }
        Err(error) => {
            assert_eq!(json!(error.to_string()), step["error"], "{at}");
            let code = match &error {
                ApplyError::Conflict { causes, .. } => {
                    let causes: Vec<_> = causes.iter().map(|cause| json!([cause.message, cause.field])).collect();
                    let mut wanted = step["causes"].as_array().unwrap().clone();
                    // The real server lists managers in no order.
                    wanted.sort_by_key(|cause| causes.iter().position(|other| other == cause));
                    assert_eq!(causes, wanted, "{at}");
                    409
                }
                ApplyError::BadRequest(_) => 400,
                ApplyError::Failed(_) => 500,
            };
            assert_eq!(step["code"], code, "{at}");
            None
        }
    }
}

/// The caller of this module does it when it stores the object.
fn keep_what_the_endpoint_does_not_write(object: &mut Value, live: Option<&Value>, subresource: &str) {
    let managers = object["metadata"].get_mut("managedFields").map(Value::take);
    let kept: &[&str] = if subresource.is_empty() { &["status"] } else { &["metadata", "spec"] };
    for name in kept {
        match live.and_then(|live| live.get(name)) {
            Some(value) => object[name] = value.clone(),
            None => drop(object.as_object_mut().unwrap().remove(*name)),
        }
    }
    object["metadata"]["uid"] = json!("u");
    set_managers(object, managers);
}

/// Defaults, and what becomes of empty values. It is not the concern of this module, but the answers have it.
fn complete(object: &mut Value, kind: &Kind<'_>) {
    if let Some(metadata) = metadata(object) {
        metadata.retain(|_, value| !value.is_null() && *value != json!({}) && *value != json!([]));
    }
    if !kind.custom {
        builtins().complete("", kind.api_version, kind.kind, object);
    }
    for item in object.pointer_mut("/spec/list").and_then(Value::as_array_mut).into_iter().flatten() {
        item.as_object_mut().unwrap().entry("port").or_insert(json!(80));
    }
}

/// Two versions of a kind that differ in one field.
fn with_versions(run: impl Fn(&dyn Fn(&'static str) -> Value, Kind<'_>, &Set<'_>)) {
    let text = json!({"type": "string"});
    let schema = |fields: Value| {
        testing::object(json!({"properties": {"spec": {"type": "object", "properties": fields}}, "type": "object"}))
    };
    let root = schema(json!({"a": text, "b": text}));
    let versions = [("g/v2".into(), schema(json!({"a": text})))];
    let empty = json!({"apiVersion": "g/v1", "kind": "K"});
    let kind = Kind {
        api_version: "g/v1",
        kind: "K",
        schema: root.schema(),
        empty: &empty,
        custom: true,
        versions: &versions,
    };
    let live = |version: &'static str| {
        json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"uid": "u", "managedFields": [
            {"manager": "old", "operation": "Apply", "apiVersion": version, "fieldsType": "FieldsV1",
             "fieldsV1": {"f:spec": {"f:a": {}}}},
        ]}, "spec": {"a": "1"}})
    };
    run(&live, kind, &Set::default());
}

#[test]
fn managers_of_another_version_are_kept_while_the_object_fits_it() {
    with_versions(|live, kind, none| {
        let write = Write { kind, manager: "new", subresource: "", now: "2020-01-01T00:00:00Z", reset: none };
        let config = |spec: Value| json!({"apiVersion": "g/v1", "kind": "K", "spec": spec});
        let live = live("g/v2");

        let conflict = apply(Some(&live), &config(json!({"a": "2"})), &write, false).unwrap_err();
        assert_eq!(conflict.to_string(), "Apply failed with 1 conflict: conflict with \"old\": .spec.a");
        let forced = apply(Some(&live), &config(json!({"a": "2"})), &write, true).unwrap();
        assert_eq!(forced["metadata"]["managedFields"].as_array().unwrap().len(), 1);

        let unfit = apply(Some(&live), &config(json!({"b": "1"})), &write, false).unwrap_err();
        assert_eq!(unfit.to_string(), "failed to convert new object: .spec.b: field not declared in schema");
    });
}

#[test]
fn managers_of_a_version_that_is_gone_spoil_custom_resources() {
    with_versions(|live, kind, none| {
        let write = Write { kind, manager: "new", subresource: "", now: "2020-01-01T00:00:00Z", reset: none };
        let live = live("g/v9");
        let config = json!({"apiVersion": "g/v1", "kind": "K", "spec": {"b": "1"}});
        let error = apply(Some(&live), &config, &write, false).unwrap_err();
        assert_eq!(error.to_string(), "request to convert CR to an invalid group/version: g/v9");
        let updated = update(Some(&live), live.clone(), &write);
        assert_eq!(updated["metadata"], json!({"uid": "u"}));

        let builtin = Write { kind: Kind { custom: false, ..kind }, ..write };
        let applied = apply(Some(&live), &config, &builtin, false).unwrap();
        assert_eq!(applied["metadata"]["managedFields"].as_array().unwrap().len(), 1);
    });
}
