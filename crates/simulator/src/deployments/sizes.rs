// SPDX-License-Identifier: Apache-2.0
//! How large each ReplicaSet of a Deployment should be.

use std::cmp::Reverse;

use k8s_openapi::api::apps::v1::{DeploymentSpec, ReplicaSet};

use super::sets::{DESIRED, MOST, Sets, annotation, is_active};
use crate::workload::{Round, share};

pub fn wanted(spec: &DeploymentSpec) -> i32 {
    spec.replicas.unwrap_or(1)
}

pub fn replicas(set: &ReplicaSet) -> i32 {
    set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or_default()
}

pub fn available(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or_default()
}

pub fn actual(set: &ReplicaSet) -> i32 {
    set.status.as_ref().map(|status| status.replicas).unwrap_or_default()
}

pub fn is_rolling(spec: &DeploymentSpec) -> bool {
    spec.strategy.as_ref().and_then(|strategy| strategy.type_.as_deref()) != Some("Recreate")
}

/// How many pods there may be beyond the wanted ones, and how many may be missing. Not both can be none.
fn margins(spec: &DeploymentSpec) -> (i32, i32) {
    let rolling = spec.strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
    let surge = share(rolling.and_then(|rolling| rolling.max_surge.as_ref()), wanted(spec), Round::Up);
    let missing = share(rolling.and_then(|rolling| rolling.max_unavailable.as_ref()), wanted(spec), Round::Down);
    if surge == 0 && missing == 0 { (0, 1) } else { (surge, missing) }
}

pub fn surge(spec: &DeploymentSpec) -> i32 {
    if is_rolling(spec) { margins(spec).0 } else { 0 }
}

pub fn may_be_missing(spec: &DeploymentSpec) -> i32 {
    if is_rolling(spec) && wanted(spec) > 0 { margins(spec).1.min(wanted(spec)) } else { 0 }
}

/// The size to which the new set may grow, from its size now.
pub fn new_size(spec: &DeploymentSpec, sets: &Sets, now: i32) -> i32 {
    if !is_rolling(spec) {
        return wanted(spec);
    }
    let all: i32 = sets.old.iter().map(replicas).sum::<i32>() + now;
    let room = wanted(spec) + surge(spec) - all;
    if room <= 0 { now } else { now + room.min(wanted(spec) - now) }
}

/// Sizes of the old sets after a step of the rollout: first without those pods that are not available anyway. Each
/// change is told by its own name, size before and after.
pub fn shrink_old(spec: &DeploymentSpec, sets: &Sets) -> Vec<(String, i32, i32)> {
    let Some(new) = &sets.new else { return Vec::new() };
    let total: i32 = sets.all().map(replicas).sum();
    let at_least = wanted(spec) - may_be_missing(spec);
    let most = total - at_least - (replicas(new) - available(new));
    let mut sizes: Vec<(&ReplicaSet, i32)> =
        sets.old.iter().filter(|set| is_active(set)).map(|set| (set, replicas(set))).collect();
    if sizes.is_empty() || most <= 0 {
        return Vec::new();
    }
    let mut steps = Vec::new();
    let mut step = |set: &ReplicaSet, size: &mut i32, less: i32| {
        if less > 0 {
            steps.push((set.metadata.name.clone().unwrap_or_default(), *size, *size - less));
            *size -= less;
        }
        less.max(0)
    };
    let mut cleaned = 0;
    for (set, size) in &mut sizes {
        cleaned += step(set, size, (most - cleaned).min(*size - available(set)));
    }
    let mut spare: i32 = sets.all().map(available).sum::<i32>() - at_least;
    for (set, size) in &mut sizes {
        spare -= step(set, size, spare.min(*size));
    }
    steps
}

/// The one set that takes a new size as a whole: the only one with pods, or the newest if none has any.
pub fn only_active(sets: &Sets) -> Option<&ReplicaSet> {
    let mut active = sets.all().filter(|set| is_active(set));
    match (active.next(), active.next()) {
        (Some(only), None) => Some(only),
        (None, _) => sets.new.as_ref().or_else(|| sets.old.last()),
        _ => None,
    }
}

/// Whether the new set has all pods that the Deployment wants.
pub fn is_saturated(spec: &DeploymentSpec, set: &ReplicaSet) -> bool {
    let desired = annotation(set, DESIRED).and_then(|text| text.parse().ok());
    replicas(set) == wanted(spec) && desired == Some(wanted(spec)) && available(set) == wanted(spec)
}

/// New sizes in proportion when a Deployment is resized in the middle of a rollout.
pub fn proportional(spec: &DeploymentSpec, sets: &Sets, total_before: i32) -> Vec<(String, i32)> {
    let mut active: Vec<&ReplicaSet> = sets.all().filter(|set| is_active(set)).collect();
    let allowed = if wanted(spec) > 0 { wanted(spec) + surge(spec) } else { 0 };
    let to_add = allowed - active.iter().map(|set| replicas(set)).sum::<i32>();
    let age = |set: &ReplicaSet| (set.metadata.creation_timestamp.clone(), set.metadata.name.clone());
    if to_add > 0 {
        active.sort_by_key(|set| (Reverse(replicas(set)), Reverse(age(set))));
    } else {
        active.sort_by_key(|set| (Reverse(replicas(set)), age(set)));
    }
    let mut added = 0;
    let mut sizes = Vec::new();
    for set in active {
        let left = to_add - added;
        let part = fraction(spec, set, total_before);
        let part = if to_add > 0 { part.min(left) } else { part.max(left) };
        added += part;
        sizes.push((set.metadata.name.clone().unwrap_or_default(), replicas(set) + part));
    }
    if let Some((_, largest)) = sizes.first_mut() {
        *largest = (*largest + to_add - added).max(0);
    }
    sizes
}

fn fraction(spec: &DeploymentSpec, set: &ReplicaSet, total_before: i32) -> i32 {
    if wanted(spec) == 0 {
        return -replicas(set);
    }
    let known = annotation(set, MOST).and_then(|text| text.parse::<i32>().ok()).filter(|most| *most > 0);
    match i64::from(known.unwrap_or(total_before)) {
        0 => 0,
        before => {
            let grown = 2 * i64::from(replicas(set)) * i64::from(wanted(spec) + surge(spec)) + before;
            i32::try_from(grown.div_euclid(2 * before)).unwrap_or(i32::MAX) - replicas(set)
        }
    }
}
