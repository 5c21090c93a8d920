// SPDX-License-Identifier: Apache-2.0
//! What nodes can hold.

use bivouac_miniclusters::{
    room::{Ranks, Room, room},
    supply::{Machine, Occupant},
};
use k8s_openapi::api::core::v1::PodSpec;
use serde_json::{Value, json};

pub fn node(name: &str, more: Value) -> Machine {
    let mut node = json!({
        "metadata": {"name": name, "labels": {"disk": "ssd", "cores": "8"}},
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "3", "nvidia.com/gpu": "2"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    });
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(node).unwrap()
}

fn spec(more: Value) -> PodSpec {
    let mut spec = json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "1500m"}}}]});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(spec).unwrap()
}

fn pod(node: &str, phase: &str) -> Occupant {
    serde_json::from_value(json!({
        "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {"phase": phase},
    }))
    .unwrap()
}

fn count(pods: &[Occupant], nodes: &[Machine], more: Value, count: i32) -> Room {
    room(pods, nodes, &[], Ranks { pod: &spec(more), count })
}

#[test]
fn requests_are_added_up_beside_the_pods_that_are_there() {
    let nodes = [node("a", json!({})), node("b", json!({}))];
    assert_eq!(count(&[], &nodes, json!({}), 9).fits, 4);
    assert_eq!(count(&[pod("a", "Running")], &nodes, json!({}), 9).fits, 4, "3 cpu are left: two times 1.5");
    assert_eq!(count(&[pod("a", "Running"), pod("a", "Pending")], &nodes, json!({}), 9).fits, 3);
    assert_eq!(count(&[pod("a", "Running"), pod("a", "Failed")], &nodes, json!({}), 9).fits, 4);
    assert!(count(&[], &nodes, json!({}), 4).is_enough());
    assert!(!count(&[], &nodes, json!({}), 5).is_enough());
}

#[test]
fn every_way_to_ask_counts() {
    let nodes = [node("a", json!({}))];
    let one = |resources: Value| json!({"containers": [{"name": "c", "resources": resources}]});
    let cases = [
        (one(json!({})), 3, "the number of pods is a limit too"),
        (one(json!({"limits": {"cpu": "2"}})), 2, "a limit without a request"),
        (one(json!({"requests": {"cpu": "1"}, "limits": {"cpu": "4"}})), 3, "a request before a limit"),
        (one(json!({"limits": {"nvidia.com/gpu": "2"}})), 1, "extended resources"),
        (one(json!({"limits": {"amd.com/gpu": "1"}})), 0, "a resource that no node has"),
        (one(json!({"requests": {"memory": "5Gi"}})), 1, "memory"),
        (one(json!({"requests": {"cpu": "much"}})), 0, "what cannot be read never fits"),
        (json!({"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "3"}}}]}), 1, "init"),
        (
            json!({"initContainers": [{"name": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}]}),
            1,
            "an init container that stays",
        ),
        (json!({"overhead": {"cpu": "1"}}), 1, "overhead"),
        (json!({"resources": {"requests": {"cpu": "4"}}}), 1, "requests of the pod as a whole"),
    ];
    for (more, expected, why) in cases {
        assert_eq!(count(&[], &nodes, more, 9).fits, expected, "{why}");
    }
}

#[test]
fn closed_nodes_hold_nothing_and_are_named() {
    let taint = json!([{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]);
    let affinity = |operator: &str, key: &str, values: Value| {
        let term = json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [term]}}}})
    };
    let tainted = || json!({"spec": {"taints": taint}});
    let soft = json!({"spec": {"taints": [{"key": "a", "effect": "PreferNoSchedule"}]}});
    let cases = [
        (json!({"spec": {"unschedulable": true}}), json!({}), "closed to new pods"),
        (json!({"status": {"allocatable": {"cpu": "8", "pods": "9"}}}), json!({}), "not ready"),
        (json!({}), json!({"nodeSelector": {"disk": "hdd"}}), "not selected by the pods"),
        (json!({}), affinity("In", "disk", json!(["hdd"])), "not selected by the pods"),
        (json!({}), affinity("NotIn", "disk", json!(["ssd"])), "not selected by the pods"),
        (json!({}), affinity("Gt", "cores", json!(["8"])), "not selected by the pods"),
        (json!({}), affinity("DoesNotExist", "disk", json!([])), "not selected by the pods"),
        (tainted(), json!({}), "with a taint that the pods do not tolerate"),
        (
            tainted(),
            json!({"tolerations": [{"key": "gpu", "value": "no", "effect": "NoSchedule"}]}),
            "with a taint that the pods do not tolerate",
        ),
        (tainted(), json!({"tolerations": [{"key": "gpu", "value": "yes"}]}), ""),
        (tainted(), json!({"tolerations": [{"operator": "Exists"}]}), ""),
        (soft, json!({}), ""),
        (json!({}), json!({"nodeSelector": {"disk": "ssd"}}), ""),
        (json!({}), affinity("Exists", "disk", json!([])), ""),
        (json!({}), affinity("Lt", "cores", json!(["9"])), ""),
    ];
    for (of_node, of_pod, why) in cases {
        let room = count(&[], &[node("a", of_node.clone())], of_pod.clone(), 2);
        assert_eq!(room.is_enough(), why.is_empty(), "{of_node} {of_pod}");
        assert!(room.sentence().contains(why), "{}", room.sentence());
    }
}

#[test]
fn the_sentence_says_exactly_what_is_missing() {
    let gpu = json!({"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "2"}}}]});
    let nodes = [
        node("a", json!({})),
        node("b", json!({"spec": {"unschedulable": true}})),
        node(
            "c",
            json!({"status": {"allocatable": {"pods": "9"}, "conditions": [{"type": "Ready", "status": "True"}]}}),
        ),
    ];
    assert_eq!(
        count(&[], &nodes, gpu.clone(), 4).sentence(),
        "there is room for 1 of 4 ranks: 1 node closed to new pods, 1 node short of nvidia.com/gpu, 1 node then out of \
         nvidia.com/gpu"
    );
    assert_eq!(count(&[], &[], gpu, 1).sentence(), "there is room for 0 of 1 ranks: no node can take pods");
}
