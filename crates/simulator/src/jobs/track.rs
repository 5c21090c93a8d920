// SPDX-License-Identifier: Apache-2.0
//! Counting finished pods exactly once: a pod is noted in the status, then loses its finalizer, then is counted.

use std::{collections::BTreeSet, sync::Arc};

use k8s_openapi::api::{
    batch::v1::{Job, UncountedTerminatedPods},
    core::v1::Pod,
};

use super::{
    backoff::finished_at,
    end::End,
    facts::{Facts, has_failed, index_of, is_tracked},
    policy::Failure,
};
use crate::workload::{phase, whole};

/// Uids that a status may hold.
const MOST_UNCOUNTED: usize = 500;

/// What comes out of one look at the pods.
#[derive(Debug)]
pub struct Tracked {
    /// Their finalizers go once the status is written.
    pub release: Vec<Arc<Pod>>,
    /// Nothing is left to count.
    pub all_counted: bool,
}

/// Brings counts, indexes and uncounted pods of the status up to date.
pub fn track(facts: &mut Facts<'_>, end: Option<&End>) -> Tracked {
    let tracked = facts.pods.iter().filter(|pod| is_tracked(pod));
    let tracked: BTreeSet<String> = tracked.filter_map(|pod| pod.metadata.uid.clone()).collect();
    let (mut succeeded, mut failed) = (facts.uncounted(true), facts.uncounted(false));
    let known: BTreeSet<String> = failed.iter().cloned().collect();
    let before = (succeeded.len(), failed.len());
    succeeded.retain(|uid| tracked.contains(uid));
    failed.retain(|uid| tracked.contains(uid));
    add(&mut facts.status.failed, before.1 - failed.len());
    let newly_counted = before.0 - succeeded.len();
    let mut release = Vec::new();
    let mut indexes = Vec::new();
    let mut full = false;
    for pod in facts.pods.iter().filter(|pod| is_tracked(pod)) {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        if !may_release(facts, pod, end) {
            continue;
        }
        release.push(pod.clone());
        if phase(pod) == "Succeeded" && !known.contains(&uid) {
            match &facts.indexes {
                Some(_) if !facts.has_valid_index(pod) => {}
                Some(found) => indexes.extend(index_of(pod).filter(|index| !found.counted.has(*index))),
                None if succeeded.contains(&uid) => {}
                None => succeeded.push(uid),
            }
        } else if has_failed(facts.spec, pod) && !went_with(facts.job, pod) || end.is_some_and(|end| !end.success) {
            let counts = facts.has_valid_index(pod) && facts.judge(pod) != Failure::Ignored;
            if counts && !failed.contains(&uid) {
                failed.push(uid);
            }
        }
        full = indexes.len() + succeeded.len() + failed.len() >= MOST_UNCOUNTED;
        if full {
            break;
        }
    }
    match &facts.indexes {
        Some(found) => {
            let all = found.succeeded.with(indexes);
            facts.status.succeeded = Some(all.total()).filter(|total| *total > 0);
            facts.status.completed_indexes = Some(all.to_string()).filter(|text| !text.is_empty());
            facts.status.failed_indexes = found.failed.as_ref().map(ToString::to_string);
        }
        None => add(&mut facts.status.succeeded, newly_counted),
    }
    let all_counted = succeeded.is_empty() && failed.is_empty() && release.is_empty() && !full;
    facts.status.uncounted_terminated_pods = Some(UncountedTerminatedPods {
        succeeded: Some(succeeded).filter(|list| !list.is_empty()),
        failed: Some(failed).filter(|list| !list.is_empty()),
    });
    Tracked { release, all_counted }
}

/// Zero is told by leaving the field out.
fn add(count: &mut Option<i32>, more: usize) {
    *count = Some(count.unwrap_or_default() + whole(more)).filter(|count| *count != 0);
}

/// Whether a pod has come to its end as far as the Job is concerned.
fn may_release(facts: &Facts<'_>, pod: &Pod, end: Option<&End>) -> bool {
    if facts.job.metadata.deletion_timestamp.is_some() || end.is_some() || phase(pod) == "Succeeded" {
        return true;
    }
    let replaced_later = || {
        let indexes = facts.indexes.as_ref()?;
        Some(indexes.to_replace.get(&index_of(pod)?)?.metadata.uid == pod.metadata.uid)
    };
    has_failed(facts.spec, pod) && replaced_later() != Some(true)
}

/// A pod that is deleted because its Job is has not failed. Who comes first, we or the one who deletes the pod, must not
/// matter.
fn went_with(job: &Job, pod: &Pod) -> bool {
    let since = job.metadata.deletion_timestamp.as_ref();
    phase(pod) != "Failed" && since.is_some_and(|since| finished_at(pod) >= since.0)
}
