// SPDX-License-Identifier: Apache-2.0
//! What pods say about nodes: selectors, affinity, tolerations.

use k8s_openapi::api::core::v1::{Node, NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Taint, Toleration};

use crate::labels;

pub fn taints(node: &Node) -> &[Taint] {
    node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default()
}

pub fn tolerates(one: &Toleration, taint: &Taint) -> bool {
    let any = |wanted: &Option<String>, found: &str| {
        wanted.as_deref().is_none_or(|wanted| wanted.is_empty() || wanted == found)
    };
    let value = || one.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default();
    any(&one.effect, &taint.effect)
        && any(&one.key, &taint.key)
        && (one.operator.as_deref() == Some("Exists") || value())
}

pub fn is_tolerated(spec: &PodSpec, taint: &Taint) -> bool {
    spec.tolerations.iter().flatten().any(|one| tolerates(one, taint))
}

/// Whether a node has the labels that a pod requires.
pub fn selects(spec: &PodSpec, node: &Node) -> bool {
    labels::contains(node.metadata.labels.as_ref(), spec.node_selector.as_ref())
        && required(spec).is_none_or(|terms| terms.iter().any(|term| matches(term, node)))
}

pub fn required(spec: &PodSpec) -> Option<&[NodeSelectorTerm]> {
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    Some(&affinity.required_during_scheduling_ignored_during_execution.as_ref()?.node_selector_terms)
}

/// The only nodes that can be meant, if the pod names them in every term.
pub fn named(spec: &PodSpec) -> Option<Vec<&String>> {
    let mut names = Vec::new();
    for term in required(spec)? {
        let by_name = |one: &&NodeSelectorRequirement| one.key == "metadata.name" && one.operator == "In";
        names.extend(term.match_fields.iter().flatten().find(by_name)?.values.iter().flatten());
    }
    Some(names)
}

/// A term that asks for nothing matches nothing.
pub fn matches(term: &NodeSelectorTerm, node: &Node) -> bool {
    let name = node.metadata.name.as_deref();
    let label = |key: &str| Some(node.metadata.labels.as_ref()?.get(key)?.as_str());
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    !(expressions.is_empty() && fields.is_empty())
        && expressions.iter().all(|one| holds(one, label(&one.key)))
        && fields.iter().all(|one| holds(one, name.filter(|_| one.key == "metadata.name")))
}

fn holds(one: &NodeSelectorRequirement, value: Option<&str>) -> bool {
    let values = one.values.as_deref().unwrap_or_default();
    let listed = |value: &str| values.iter().any(|one| one == value);
    let pair = || Some((value?.parse::<i64>().ok()?, values.first()?.parse::<i64>().ok()?));
    match one.operator.as_str() {
        "In" => value.is_some_and(listed),
        "NotIn" => !value.is_some_and(listed),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => pair().is_some_and(|(found, limit)| found > limit),
        "Lt" => pair().is_some_and(|(found, limit)| found < limit),
        _ => false,
    }
}
