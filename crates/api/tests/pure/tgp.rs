// SPDX-License-Identifier: Apache-2.0
//! Group `tgp.io`: classes and pools.

use bivouac_api::tgp::{GPUNodeClass, GPUNodePool};
use serde_json::{Value, json};

use crate::kinds::{face, samples, schema};

#[test]
fn faces() {
    assert_eq!(face("gpunodeclasses.tgp.io"), ["Cluster", "gpuclass", "Ready, Nodes, GPUs, $/H, Spent, Age"]);
    assert_eq!(
        face("gpunodepools.tgp.io"),
        ["Namespaced", "gpupool, gnp", "Class, Ready, Nodes, GPUs, $/H, Spent, [Weight], Age"]
    );
}

#[test]
fn samples_survive() {
    assert!(samples::<GPUNodeClass>("tgp").is_none_or(|n| n == 2));
    assert!(samples::<GPUNodePool>("tgp").is_none_or(|n| n == 1));
}

fn class(talos: Value, limits: Value) -> Result<(), String> {
    let class: GPUNodeClass = serde_json::from_value(json!({
        "apiVersion": "tgp.io/v1", "kind": "GPUNodeClass", "metadata": {"name": "c"},
        "spec": {
            "providers": [{"name": "runpod", "credentialsRef": {"name": "s", "key": "k"}}],
            "talosConfig": talos,
            "limits": limits,
        },
    }))
    .unwrap();
    class.validate_cel().map_err(|e| e.to_string())
}

#[test]
fn a_class_of_any_generation_is_taken() {
    let secret = json!({"name": "s", "key": "k"});
    let talos = [
        json!({"image": "i"}),
        json!({"image": "i", "machineConfigTemplate": "version: v1alpha1"}),
        json!({"image": "i", "machineConfigSecretRef": secret}),
        json!({"machineConfigSecretRef": secret}),
    ];
    for talos in talos {
        assert_eq!(class(talos.clone(), json!({})), Ok(()), "{talos}");
    }
}

#[test]
fn a_class_has_one_machine_config_and_sane_limits() {
    let both = json!({"machineConfigTemplate": "v", "machineConfigSecretRef": {"name": "s", "key": "k"}});
    let cases = [
        (both, json!({}), "not both"),
        (json!({"machineConfigTemplate": ""}), json!({}), "must not be empty"),
        (json!({}), json!({"maxNodes": 0}), "at least 1"),
        (json!({}), json!({"maxHourlyCost": "50$"}), "decimal number of dollars"),
        (json!({}), json!({"maxHourlyCost": "-1"}), "decimal number of dollars"),
    ];
    for (talos, limits, part) in cases {
        let refused = class(talos, limits).unwrap_err();
        assert!(refused.contains(part), "{refused}");
    }
    assert_eq!(class(json!({}), json!({"maxNodes": 1, "maxHourlyCost": "50.0"})), Ok(()));
}

fn pool(change: Value) -> Result<(), String> {
    let mut object = json!({
        "apiVersion": "tgp.io/v1", "kind": "GPUNodePool", "metadata": {"name": "p", "namespace": "n"},
        "spec": {"nodeClassRef": {"kind": "GPUNodeClass", "name": "c"}, "template": {"spec": {}}},
    });
    object["spec"].as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    let pool: GPUNodePool = serde_json::from_value(object).map_err(|e| e.to_string())?;
    pool.validate_cel().map_err(|e| e.to_string())
}

#[test]
fn a_pool_may_cost_a_decimal_number_and_has_a_weight() {
    assert_eq!(pool(json!({"maxHourlyPrice": "2.0", "weight": 100})), Ok(()));
    assert_eq!(pool(json!({"maxHourlyPrice": "2"})), Ok(()));
    for (bad, part) in [
        (json!({"maxHourlyPrice": "2,0"}), "decimal number of dollars"),
        (json!({"maxHourlyPrice": ""}), "decimal number of dollars"),
        (json!({"weight": 0}), "between 1 and 100"),
        (json!({"weight": 101}), "between 1 and 100"),
    ] {
        let refused = pool(bad).unwrap_err();
        assert!(refused.contains(part), "{refused}");
    }
}

#[test]
fn a_pool_gives_nodes_back_after_a_duration_or_never() {
    for good in ["30m", "1h30m", "0", "1.5h", "Never"] {
        assert_eq!(pool(json!({"disruption": {"consolidateAfter": good, "expireAfter": good}})), Ok(()), "{good}");
    }
    for bad in ["30", "half an hour", "-5m", ""] {
        assert!(pool(json!({"disruption": {"consolidateAfter": bad}})).is_err(), "{bad}");
        assert!(pool(json!({"disruption": {"expireAfter": bad}})).is_err(), "{bad}");
    }
    for policy in ["WhenIdle", "WhenEmpty", "WhenUnderutilized", "WhenEmptyOrUnderutilized", "Never"] {
        assert_eq!(pool(json!({"disruption": {"consolidationPolicy": policy}})), Ok(()));
    }
    assert!(pool(json!({"disruption": {"consolidationPolicy": "Sometimes"}})).is_err());
}

#[test]
fn a_requirement_has_the_values_that_its_operator_needs() {
    let requirement = |operator: &str, values: Value| {
        let requirement = json!({"key": "tgp.io/gpu-type", "operator": operator, "values": values});
        pool(json!({"template": {"spec": {"requirements": [requirement]}}}))
    };
    let good = [
        ("In", json!(["H100"])),
        ("NotIn", json!(["H100", "A100"])),
        ("Exists", json!([])),
        ("DoesNotExist", json!([])),
        ("Gt", json!(["4"])),
        ("Lte", json!(["80"])),
    ];
    for (operator, values) in good {
        assert_eq!(requirement(operator, values), Ok(()), "{operator}");
    }
    let bad = [
        ("In", json!([]), "at least one value"),
        ("NotIn", json!([]), "at least one value"),
        ("Exists", json!(["H100"]), "take no values"),
        ("Gt", json!(["four"]), "exactly one whole number"),
        ("Gte", json!(["1", "2"]), "exactly one whole number"),
        ("Lt", json!([]), "exactly one whole number"),
        ("in", json!(["H100"]), "unknown variant"),
    ];
    for (operator, values, part) in bad {
        let refused = requirement(operator, values).unwrap_err();
        assert!(refused.contains(part), "{operator}: {refused}");
    }
}

#[test]
fn conditions_of_class_and_pool_stay_a_plain_list() {
    // Upstream's schema has no map keys here, and server-side apply would merge differently with them.
    for name in ["gpunodeclasses.tgp.io", "gpunodepools.tgp.io"] {
        assert_ne!(schema(name, "status.conditions")["x-kubernetes-list-type"], "map", "{name}");
    }
}
