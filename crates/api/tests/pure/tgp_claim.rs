// SPDX-License-Identifier: Apache-2.0
//! Group `tgp.io`: the claim, and what may change in it.

use bivouac_api::tgp::{CapacityType, ClaimPhase, GPUNodeClaim, MachineState};
use serde_json::{Value, json};

use crate::kinds::face;

const T1: &str = "2026-01-01T00:00:00Z";
const T2: &str = "2026-01-01T01:00:00Z";

/// A claim whose machine runs, with changes by JSON pointer. A null removes.
fn claim(changes: &[(&str, Value)]) -> GPUNodeClaim {
    let mut object = json!({
        "apiVersion": "tgp.io/v1",
        "kind": "GPUNodeClaim",
        "metadata": {"name": "ml-7f3a", "uid": "9f1c2b3d-0000-4000-8000-000000000001"},
        "spec": {
            "poolRef": {"namespace": "ml", "name": "train", "uid": "p1", "templateHash": "h1"},
            "nodeClassRef": {"name": "standard", "uid": "c1", "specHash": "h2"},
            "credentialsRef": {"name": "clouds", "key": "RUNPOD_API_KEY", "namespace": "tgp-system"},
            "offer": {
                "provider": "runpod", "region": "EU-RO-1", "machineType": "NVIDIA H100 80GB HBM3",
                "capacityType": "spot", "gpu": {"type": "H100", "count": 8, "vendor": "nvidia", "memoryGiB": 80},
                "resources": {"cpu": "96", "nvidia.com/gpu": "8"},
            },
            "price": {"hourly": "21.52", "max": "25", "snapshot": "sha256:00"},
            "attempt": 1,
            "template": {"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}},
            "expireAfter": "24h",
        },
        "status": {
            "phase": "Booting",
            "launch": {"attempt": 2, "machineName": "tgp-9f1c", "token": "t", "requestedAt": T1},
            "providerID": "runpod://pod/abc",
            "instanceId": "abc",
            "machineState": "running",
            "ledger": {"openedAt": T1, "spent": "1.25", "bookedUntil": T2},
            "termination": {"requestedAt": T1, "calls": 1, "absentCount": 1, "confirmedAt": T2},
        },
    });
    for (pointer, value) in changes {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = object.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match value {
            Value::Null => parent.remove(key),
            value => parent.insert(key.into(), value.clone()),
        };
    }
    serde_json::from_value(object).unwrap()
}

#[test]
fn faces() {
    assert_eq!(
        face("gpunodeclaims.tgp.io"),
        [
            "Cluster",
            "gpuclaim, gnc",
            "Phase, Ready, Cloud, GPU, GPUs, $/H, Spent, Node, [Pool], [Region], [Machine], [Lease], Age"
        ]
    );
}

#[test]
fn a_claim_survives_writing_and_reading() {
    let claim = claim(&[]);
    let written = serde_json::to_value(&claim).unwrap();
    assert_eq!(
        written["spec"]["offer"]["gpu"],
        json!({"type": "H100", "count": 8, "vendor": "nvidia", "memoryGiB": 80})
    );
    assert_eq!(written["status"]["providerID"], "runpod://pod/abc");
    assert_eq!(serde_json::from_value::<GPUNodeClaim>(written).unwrap(), claim);
    assert_eq!(claim.spec.offer.capacity_type, CapacityType::Spot);
    let status = claim.status.unwrap();
    assert_eq!((status.phase, status.machine_state), (Some(ClaimPhase::Booting), Some(MachineState::Running)));
}

#[test]
fn a_good_claim_is_taken() {
    claim(&[]).validate_cel().unwrap();
    claim(&[("/status", Value::Null), ("/spec/price/max", Value::Null)]).validate_cel().unwrap();
    claim(&[("/spec/price/max", json!("21.52"))]).validate_cel().unwrap();
}

#[test]
fn a_bad_claim_is_refused() {
    for (pointer, value, part) in [
        ("/spec/price/max", json!("9.99"), "above price.max"),
        ("/spec/expireAfter", json!("tomorrow"), "must be a duration"),
        ("/spec/terminationGracePeriod", json!("Never"), "must be a duration"),
        ("/metadata/name", json!("a".repeat(64)), "63 characters"),
    ] {
        let refused = claim(&[(pointer, value)]).validate_cel().unwrap_err().to_string();
        assert!(refused.contains(part), "{pointer}: {refused}");
    }
}

#[test]
fn what_was_bought_never_changes() {
    for (pointer, value) in [
        ("/spec/poolRef/uid", json!("p2")),
        ("/spec/nodeClassRef/specHash", Value::Null),
        ("/spec/credentialsRef/key", json!("OTHER")),
        ("/spec/offer/region", json!("US-1")),
        ("/spec/offer/resources/cpu", json!("97")),
        ("/spec/offer/zone", json!("added")),
        ("/spec/price/hourly", json!("1")),
        ("/spec/price/max", Value::Null),
        ("/spec/attempt", json!(2)),
        ("/spec/template/spec/taints", json!([])),
    ] {
        let refused = claim(&[(pointer, value)]).validate_cel_update(&claim(&[])).unwrap_err().to_string();
        assert!(refused.contains("is immutable"), "{pointer}: {refused}");
    }
}

#[test]
fn the_life_time_may_change() {
    for value in [json!("48h"), json!("Never"), Value::Null] {
        let changes = [("/spec/expireAfter", value), ("/spec/terminationGracePeriod", json!("1m"))];
        claim(&changes).validate_cel_update(&claim(&[])).unwrap();
    }
}

#[test]
fn the_record_of_the_machine_is_never_lost() {
    for (pointer, value, part) in [
        ("/status", Value::Null, "status stays"),
        ("/status/providerID", Value::Null, "providerID never changes"),
        ("/status/providerID", json!("runpod://pod/other"), "providerID never changes"),
        ("/status/launch", Value::Null, "launch stays"),
        ("/status/launch/attempt", json!(1), "never goes back"),
        ("/status/launch/machineName", json!("other"), "never changes"),
        ("/status/ledger", Value::Null, "ledger stays"),
        ("/status/termination/confirmedAt", json!(T1), "never changes"),
    ] {
        let refused = claim(&[(pointer, value)]).validate_cel_update(&claim(&[])).unwrap_err().to_string();
        assert!(refused.contains(part), "{pointer}: {refused}");
    }
    let next = [
        ("/status/launch/attempt", json!(3)),
        ("/status/launch/token", json!("t3")),
        ("/status/ledger/spent", json!("2.50")),
        ("/status/nodeName", json!("node")),
    ];
    claim(&next).validate_cel_update(&claim(&[])).unwrap();
    let first =
        claim(&[("/status/providerID", Value::Null), ("/status/launch", Value::Null), ("/status/ledger", Value::Null)]);
    claim(&[]).validate_cel_update(&first).unwrap();
}

#[test]
fn a_closed_ledger_stays_closed() {
    let open = claim(&[]);
    let closed = claim(&[("/status/ledger/closedAt", json!(T2))]);
    closed.validate_cel_update(&open).unwrap();
    closed.validate_cel_update(&closed).unwrap();
    let more = claim(&[("/status/ledger/closedAt", json!(T2)), ("/status/ledger/spent", json!("9"))]);
    for changed in [open, more] {
        let refused = changed.validate_cel_update(&closed).unwrap_err().to_string();
        assert!(refused.contains("closed ledger"), "{refused}");
    }
}
