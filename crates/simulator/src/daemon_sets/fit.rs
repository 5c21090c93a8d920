// SPDX-License-Identifier: Apache-2.0
//! Which nodes a DaemonSet wants a pod on.

use k8s_openapi::api::core::v1::{Node, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration};

use crate::labels;

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
    if !named || !is_selected(spec, node) {
        return (false, false);
    }
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let repelled = |effects: &[&str]| {
        taints.iter().any(|taint| effects.contains(&taint.effect.as_str()) && !is_tolerated(spec, taint))
    };
    (!repelled(&["NoExecute", "NoSchedule"]), !repelled(&["NoExecute"]))
}

fn is_tolerated(spec: &PodSpec, taint: &Taint) -> bool {
    spec.tolerations.iter().flatten().any(|one| {
        let any = |wanted: &Option<String>, found: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted.is_empty() || wanted == found)
        };
        let value = || one.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default();
        any(&one.effect, &taint.effect)
            && any(&one.key, &taint.key)
            && (one.operator.as_deref() == Some("Exists") || value())
    })
}

fn is_selected(spec: &PodSpec, node: &Node) -> bool {
    let required = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = required.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    labels::contains(node.metadata.labels.as_ref(), spec.node_selector.as_ref())
        && required.is_none_or(|selector| selector.node_selector_terms.iter().any(|term| matches(term, node)))
}

/// A term that asks for nothing matches nothing.
fn matches(term: &NodeSelectorTerm, node: &Node) -> bool {
    let name = node.metadata.name.clone().unwrap_or_default();
    let label = |key: &str| node.metadata.labels.as_ref().and_then(|labels| labels.get(key));
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    !(expressions.is_empty() && fields.is_empty())
        && expressions.iter().all(|one| holds(one, label(&one.key)))
        && fields.iter().all(|one| holds(one, (one.key == "metadata.name").then_some(&name)))
}

fn holds(one: &NodeSelectorRequirement, value: Option<&String>) -> bool {
    let values = one.values.as_deref().unwrap_or_default();
    let number = |text: &String| text.parse::<i64>().ok();
    let pair = || Some((number(value?)?, number(values.first()?)?));
    match one.operator.as_str() {
        "In" => value.is_some_and(|value| values.contains(value)),
        "NotIn" => value.is_none_or(|value| !values.contains(value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => pair().is_some_and(|(found, limit)| found > limit),
        "Lt" => pair().is_some_and(|(found, limit)| found < limit),
        _ => false,
    }
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
