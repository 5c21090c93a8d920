// SPDX-License-Identifier: Apache-2.0
//! Which nodes a DaemonSet wants a pod on.

use k8s_openapi::api::core::v1::{Node, PodSpec, Toleration};

use crate::placement;

/// Trouble of a node that pods of DaemonSets are meant to live with: the key of the taint and its effect.
const ENDURED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// Adds what pods of DaemonSets tolerate anyway.
pub fn endure(spec: &mut PodSpec) {
    let network = ("node.kubernetes.io/network-unavailable", "NoSchedule");
    let more = (spec.host_network == Some(true)).then_some(network);
    let tolerations = spec.tolerations.get_or_insert_default();
    for (key, effect) in ENDURED.into_iter().chain(more) {
        let wanted = Toleration {
            key: Some(key.to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some(effect.to_owned()),
            ..Toleration::default()
        };
        let same = |one: &&mut Toleration| {
            (&one.key, &one.effect, &one.value) == (&wanted.key, &wanted.effect, &wanted.value)
                && one.operator.as_deref() == Some("Exists")
        };
        match tolerations.iter_mut().find(same) {
            Some(known) => *known = wanted,
            None => tolerations.push(wanted),
        }
    }
}

/// Whether a pod should run on a node, and whether one that is there may stay. `spec` endures what it has to.
pub fn fit(spec: &PodSpec, node: &Node) -> (bool, bool) {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let named = spec.node_name.as_deref().is_none_or(|wanted| wanted.is_empty() || wanted == name);
    if !named || !placement::selects(spec, node) {
        return (false, false);
    }
    let repelled = |effects: &[&str]| {
        let mut taints = placement::taints(node).iter().filter(|taint| effects.contains(&taint.effect.as_str()));
        taints.any(|taint| !placement::is_tolerated(spec, taint))
    };
    (!repelled(&["NoExecute", "NoSchedule"]), !repelled(&["NoExecute"]))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn fits(spec: Value, node: Value) -> (bool, bool) {
        let mut spec: PodSpec = serde_json::from_value(spec).unwrap();
        endure(&mut spec);
        fit(&spec, &serde_json::from_value(node).unwrap())
    }

    #[test]
    fn nodes_are_chosen_by_name_labels_and_taints() {
        let node = json!({ "metadata": { "name": "n", "labels": { "gpu": "yes", "cores": "8" } },
            "spec": { "taints": [{ "key": "mine", "value": "x", "effect": "NoSchedule" }] } });
        let tolerant = json!([{ "key": "mine", "operator": "Equal", "value": "x", "effect": "NoSchedule" }]);
        let affine = |terms: Value| {
            json!({ "containers": [], "tolerations": tolerant, "affinity": { "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } } } })
        };
        let cases = [
            (json!({ "containers": [] }), (false, true)),
            (json!({ "containers": [], "tolerations": tolerant }), (true, true)),
            (json!({ "containers": [], "tolerations": [{ "operator": "Exists" }] }), (true, true)),
            (json!({ "containers": [], "tolerations": tolerant, "nodeName": "m" }), (false, false)),
            (json!({ "containers": [], "tolerations": tolerant, "nodeSelector": { "gpu": "no" } }), (false, false)),
            (
                affine(json!([{ "matchExpressions": [{ "key": "cores", "operator": "Gt", "values": ["4"] }] }])),
                (true, true),
            ),
            (
                affine(json!([{ "matchExpressions": [{ "key": "cores", "operator": "Lt", "values": ["4"] }] }])),
                (false, false),
            ),
            (
                affine(json!([{ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n"] }] }])),
                (true, true),
            ),
            (affine(json!([{}])), (false, false)),
        ];
        for (spec, expected) in cases {
            assert_eq!(fits(spec.clone(), node.clone()), expected, "{spec}");
        }
    }
}
