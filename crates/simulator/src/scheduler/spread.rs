// SPDX-License-Identifier: Apache-2.0
//! How evenly pods must be spread over nodes, zones and the like.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Pod, PodSpec, TopologySpreadConstraint};

use super::board::{Board, Spot};
use crate::{labels, placement};

/// How a pod must be spread, and how those like it are.
#[derive(Debug, Default)]
pub struct Spread {
    rules: Vec<Rule>,
    wishes: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    key: String,
    most: i64,
    counts: BTreeMap<String, i64>,
    least: i64,
    /// The pod counts as well.
    itself: i64,
}

// === impl Spread ===

impl Spread {
    pub fn new(pod: &Pod, board: &Board) -> Self {
        let Some(spec) = pod.spec.as_ref() else { return Self::default() };
        let all = spec.topology_spread_constraints.as_deref().unwrap_or_default();
        let (strict, soft): (Vec<_>, Vec<_>) =
            all.iter().partition(|constraint| constraint.when_unsatisfiable == "DoNotSchedule");
        let keys: BTreeSet<_> = strict.iter().map(|constraint| constraint.topology_key.as_str()).collect();
        let rule = |constraint: &&TopologySpreadConstraint| Rule::new(constraint, pod, spec, board, &keys);
        Self { rules: strict.iter().map(rule).collect(), wishes: soft.iter().map(rule).collect() }
    }

    /// Why a node is refused, and whether other pods could do nothing about it.
    pub fn refusal(&self, spot: &Spot) -> Option<(&'static str, bool)> {
        for rule in &self.rules {
            let Some(value) = spot.label(&rule.key) else {
                return Some(("node(s) didn't match pod topology spread constraints (missing required label)", true));
            };
            let there = rule.counts.get(value).copied().unwrap_or_default();
            if there + rule.itself - rule.least > rule.most {
                return Some(("node(s) didn't match pod topology spread constraints", false));
            }
        }
        None
    }

    /// The fewer like it are there, the better.
    pub fn crowd(&self, spot: &Spot) -> i64 {
        let there = |rule: &Rule| spot.label(&rule.key).and_then(|value| rule.counts.get(value)).copied();
        self.rules.iter().chain(&self.wishes).map(|rule| there(rule).unwrap_or_default()).sum()
    }
}

// === impl Rule ===

impl Rule {
    fn new(
        constraint: &TopologySpreadConstraint,
        pod: &Pod,
        spec: &PodSpec,
        board: &Board,
        keys: &BTreeSet<&str>,
    ) -> Self {
        let selector = constraint.label_selector.as_ref();
        let alike = |other: &Pod| {
            other.metadata.namespace == pod.metadata.namespace
                && other.metadata.deletion_timestamp.is_none()
                && labels::selects(selector, other.metadata.labels.as_ref())
        };
        let mut counts = BTreeMap::new();
        for spot in &board.spots {
            let Some(value) = spot.label(&constraint.topology_key) else { continue };
            if keys.iter().any(|key| spot.label(key).is_none()) || !is_counted(constraint, spec, spot) {
                continue;
            }
            let there = spot.guests.iter().filter(|guest| alike(&guest.pod)).count();
            *counts.entry(value.to_owned()).or_default() += i64::try_from(there).unwrap_or_default();
        }
        let few = i32::try_from(counts.len()).unwrap_or(i32::MAX) < constraint.min_domains.unwrap_or(1);
        let least = if few { 0 } else { counts.values().min().copied().unwrap_or_default() };
        let itself = i64::from(labels::selects(selector, pod.metadata.labels.as_ref()));
        Self { key: constraint.topology_key.clone(), most: i64::from(constraint.max_skew), counts, least, itself }
    }
}

/// Nodes that the pod cannot use for other reasons may be left out.
fn is_counted(constraint: &TopologySpreadConstraint, spec: &PodSpec, spot: &Spot) -> bool {
    let selected = constraint.node_affinity_policy.as_deref() == Some("Ignore") || placement::selects(spec, &spot.node);
    let repelled = |spot: &Spot| {
        let mut taints = placement::taints(&spot.node).iter().filter(|taint| taint.effect != "PreferNoSchedule");
        taints.any(|taint| !placement::is_tolerated(spec, taint))
    };
    selected && (constraint.node_taints_policy.as_deref() != Some("Honor") || !repelled(spot))
}
