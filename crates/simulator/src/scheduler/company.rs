// SPDX-License-Identifier: Apache-2.0
//! Which other pods a pod wants near it, and which not.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Affinity, Pod, PodAffinityTerm};

use super::board::{Board, Spot};
use crate::labels;

/// A label of nodes and its value: all nodes that share it.
type Place = (String, String);

/// What the company of others means for one pod.
#[derive(Debug, Default)]
pub struct Company {
    /// Every term, and where somebody fits all of them.
    wanted: Vec<(String, BTreeSet<Place>)>,
    /// Nobody is like what it wants, but it is itself: somebody has to be the first.
    first_of_its_kind: bool,
    avoided: BTreeSet<Place>,
    /// Where those are that do not want it.
    closed: BTreeSet<Place>,
    liked: BTreeMap<Place, i64>,
}

fn affinity(pod: &Pod) -> Option<&Affinity> {
    pod.spec.as_ref()?.affinity.as_ref()
}

fn wants(pod: &Pod) -> &[PodAffinityTerm] {
    let near = affinity(pod).and_then(|one| one.pod_affinity.as_ref());
    near.and_then(|one| one.required_during_scheduling_ignored_during_execution.as_deref()).unwrap_or_default()
}

fn avoids(pod: &Pod) -> &[PodAffinityTerm] {
    let far = affinity(pod).and_then(|one| one.pod_anti_affinity.as_ref());
    far.and_then(|one| one.required_during_scheduling_ignored_during_execution.as_deref()).unwrap_or_default()
}

fn likes(pod: &Pod) -> Vec<(i64, &PodAffinityTerm)> {
    let both = affinity(pod);
    let near = both.and_then(|one| one.pod_affinity.as_ref());
    let near = near.and_then(|one| one.preferred_during_scheduling_ignored_during_execution.as_deref());
    let far = both.and_then(|one| one.pod_anti_affinity.as_ref());
    let far = far.and_then(|one| one.preferred_during_scheduling_ignored_during_execution.as_deref());
    let near = near.unwrap_or_default().iter().map(|one| (i64::from(one.weight), &one.pod_affinity_term));
    let far = far.unwrap_or_default().iter().map(|one| (-i64::from(one.weight), &one.pod_affinity_term));
    near.chain(far).collect()
}

fn means(term: &PodAffinityTerm, owner: &Pod, other: &Pod, board: &Board) -> bool {
    let namespace = other.metadata.namespace.clone().unwrap_or_default();
    let listed = term.namespaces.as_deref().unwrap_or_default();
    let inside = if listed.is_empty() && term.namespace_selector.is_none() {
        owner.metadata.namespace == other.metadata.namespace
    } else {
        listed.contains(&namespace)
            || labels::selects(term.namespace_selector.as_ref(), board.namespaces.get(&namespace))
    };
    inside && labels::selects(term.label_selector.as_ref(), other.metadata.labels.as_ref())
}

fn place(spot: &Spot, key: &str) -> Option<Place> {
    Some((key.to_owned(), spot.label(key)?.to_owned()))
}

// === impl Company ===

impl Company {
    pub fn new(pod: &Pod, board: &Board) -> Self {
        let mut company = Self::default();
        let (wants, avoids, likes) = (wants(pod), avoids(pod), likes(pod));
        company.wanted = wants.iter().map(|term| (term.topology_key.clone(), BTreeSet::new())).collect();
        for spot in &board.spots {
            for guest in &spot.guests {
                if !wants.is_empty() && wants.iter().all(|term| means(term, pod, &guest.pod, board)) {
                    company.wanted.iter_mut().for_each(|(key, places)| places.extend(place(spot, key)));
                }
                let avoided = avoids.iter().filter(|term| means(term, pod, &guest.pod, board));
                company.avoided.extend(avoided.filter_map(|term| place(spot, &term.topology_key)));
                let closed = self::avoids(&guest.pod).iter().filter(|term| means(term, &guest.pod, pod, board));
                company.closed.extend(closed.filter_map(|term| place(spot, &term.topology_key)));
                for (weight, term) in likes.iter().filter(|(_, term)| means(term, pod, &guest.pod, board)) {
                    if let Some(place) = place(spot, &term.topology_key) {
                        *company.liked.entry(place).or_default() += weight;
                    }
                }
            }
        }
        company.first_of_its_kind = company.wanted.iter().all(|(_, places)| places.is_empty())
            && wants.iter().all(|term| means(term, pod, pod, board));
        company
    }

    /// Why a node is refused, and whether other pods could do nothing about it.
    pub fn refusal(&self, spot: &Spot) -> Option<(&'static str, bool)> {
        let wanted = |(key, places): &(String, BTreeSet<Place>)| {
            place(spot, key).is_some_and(|here| self.first_of_its_kind || places.contains(&here))
        };
        let is_at = |(key, value): &Place| spot.label(key) == Some(value);
        if !self.wanted.iter().all(wanted) {
            Some(("node(s) didn't match pod affinity rules", true))
        } else if self.avoided.iter().any(is_at) {
            Some(("node(s) didn't match pod anti-affinity rules", false))
        } else if self.closed.iter().any(is_at) {
            Some(("node(s) didn't satisfy existing pods anti-affinity rules", false))
        } else {
            None
        }
    }

    pub fn score(&self, spot: &Spot) -> i64 {
        let here = self.liked.iter().filter(|((key, value), _)| spot.label(key) == Some(value));
        here.map(|(_, weight)| weight).sum()
    }
}
