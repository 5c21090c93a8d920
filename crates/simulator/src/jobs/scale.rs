// SPDX-License-Identifier: Apache-2.0
//! Which pods of a Job to create and which to delete.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use super::{
    backoff::{Failures, finished_at, wait_from},
    facts::{Facts, IndexFacts, failures_before, has_limit_per_index, index_of, is_suspended, replaces_stopped_only},
};
use crate::workload::{by_dispensability, is_terminating, whole};

/// Pods that are created or deleted in one go.
const MOST_AT_ONCE: usize = 500;

#[derive(Debug)]
pub enum Scale {
    Fits,
    /// Too few, but not before this time.
    Wait(Timestamp),
    /// One pod for each, with its index if the Job is indexed.
    Create(Vec<Option<i32>>),
    Delete(Vec<Arc<Pod>>),
}

pub fn decide(facts: &Facts<'_>, failures: &Failures, now: Timestamp) -> Scale {
    let active = whole(facts.active.len());
    if is_suspended(facts.spec) {
        return delete(surplus(facts, facts.active.len()));
    }
    let wanted = wanted(facts);
    let too_many = surplus(facts, usize::try_from(active - wanted).unwrap_or_default());
    if !too_many.is_empty() {
        // Deleting comes first: what is missing then is found when we look again.
        return delete(too_many);
    }
    let going = if replaces_stopped_only(facts.spec) { whole(facts.terminating) } else { 0 };
    let missing = usize::try_from(wanted - going - active).unwrap_or_default().min(MOST_AT_ONCE);
    if missing == 0 {
        return Scale::Fits;
    }
    if !has_limit_per_index(facts.spec)
        && let Some(until) = failures.until().filter(|until| *until > now)
    {
        return Scale::Wait(until);
    }
    match &facts.indexes {
        None => Scale::Create(vec![None; missing]),
        Some(indexes) => create_indexes(indexes, pending(facts, indexes, missing), now),
    }
}

fn delete(pods: Vec<Arc<Pod>>) -> Scale {
    if pods.is_empty() { Scale::Fits } else { Scale::Delete(pods) }
}

/// How many pods should be active.
fn wanted(facts: &Facts<'_>) -> i32 {
    let parallelism = facts.spec.parallelism.unwrap_or(1);
    match facts.spec.completions {
        Some(completions) => (completions - facts.succeeded).min(parallelism).max(0),
        // One success is enough; those that run may go on.
        None if facts.succeeded > 0 => whole(facts.active.len()),
        None => parallelism,
    }
}

/// Pods to delete: those without a proper index of their own, and at least so many.
fn surplus(facts: &Facts<'_>, at_least: usize) -> Vec<Arc<Pod>> {
    let mut sorted = facts.active.clone();
    sorted.sort_by(|a, b| by_dispensability(a, b));
    let mut taken = BTreeSet::new();
    let mut keep =
        |pod: &Arc<Pod>| facts.indexes.is_none() || facts.has_valid_index(pod) && taken.insert(index_of(pod));
    // Of two with the same index, the one that is missed more stays.
    let (mut kept, mut gone): (Vec<_>, Vec<_>) = sorted.into_iter().rev().partition(|pod| keep(pod));
    kept.reverse();
    gone.reverse();
    let more = at_least.saturating_sub(gone.len());
    gone.extend(kept.into_iter().take(more));
    gone.truncate(MOST_AT_ONCE);
    gone
}

/// The first indexes that nobody works on and that are not over.
fn pending(facts: &Facts<'_>, indexes: &IndexFacts, count: usize) -> Vec<i32> {
    let going = facts.pods.iter().filter(|pod| replaces_stopped_only(facts.spec) && is_terminating(pod));
    let busy = facts.active.iter().chain(going).filter_map(|pod| index_of(pod));
    let taken = indexes.succeeded.with(busy).and(indexes.failed.as_ref().unwrap_or(&Default::default()));
    taken.missing(indexes.completions).take(count).collect()
}

/// Where each index waits for itself, some may be created before others.
fn create_indexes(indexes: &IndexFacts, pending: Vec<i32>, now: Timestamp) -> Scale {
    let until = |index: &i32| {
        let failed = indexes.to_replace.get(index)?;
        let (counted, ignored) = failures_before(failed);
        let failures = usize::try_from(counted + ignored + 1).unwrap_or_default();
        Some(wait_from(finished_at(failed), failures)).filter(|until| *until > now)
    };
    let due: Vec<_> = pending.iter().filter(|index| until(index).is_none()).map(|index| Some(*index)).collect();
    match pending.iter().filter_map(until).min() {
        Some(until) if due.is_empty() => Scale::Wait(until),
        _ if due.is_empty() => Scale::Fits,
        _ => Scale::Create(due),
    }
}
