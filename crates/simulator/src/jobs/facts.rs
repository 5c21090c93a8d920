// SPDX-License-Identifier: Apache-2.0
//! Counting: what a Job asks for, and what its pods have come to.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::api::{
    batch::v1::{Job, JobSpec, JobStatus},
    core::v1::Pod,
};

use super::{
    backoff::finished_at,
    indexes::Indexes,
    policy::{self, Failure},
};
use crate::workload::{is_active, is_ready, is_terminating, phase, whole};

/// Pods have it until the Job has counted them.
pub const TRACKING: &str = "batch.kubernetes.io/job-tracking";
pub const INDEX: &str = "batch.kubernetes.io/job-completion-index";
pub const INDEX_FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
pub const INDEX_IGNORED: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// A Job and its pods, counted.
#[derive(Debug)]
pub struct Facts<'a> {
    pub job: &'a Job,
    pub spec: &'a JobSpec,
    pub status: JobStatus,
    /// Of an indexed Job, in the order of their indexes.
    pub pods: Vec<Arc<Pod>>,
    pub active: Vec<Arc<Pod>>,
    pub ready: usize,
    pub terminating: usize,
    /// Finished, and not yet in the status.
    pub new_succeeded: Vec<Arc<Pod>>,
    pub new_failed: Vec<Arc<Pod>>,
    /// With what the status will soon say.
    pub succeeded: i32,
    pub failed: i32,
    /// Of an indexed Job.
    pub indexes: Option<IndexFacts>,
}

#[derive(Debug)]
pub struct IndexFacts {
    pub completions: i32,
    /// What the status says.
    pub counted: Indexes,
    /// With those that have succeeded since.
    pub succeeded: Indexes,
    /// Where each index has its own limit of failures.
    pub failed: Option<Indexes>,
    /// Failed pods that stay until they are replaced: their replacement inherits the count of failures.
    pub to_replace: BTreeMap<i32, Arc<Pod>>,
}

pub fn is_tracked(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().flatten().any(|one| one == TRACKING)
}

pub fn index_of(pod: &Pod) -> Option<i32> {
    pod.metadata.annotations.as_ref()?.get(INDEX)?.parse().ok().filter(|index| *index >= 0)
}

fn number(pod: &Pod, annotation: &str) -> i32 {
    let text = pod.metadata.annotations.as_ref().and_then(|all| all.get(annotation));
    text.and_then(|text| text.parse().ok()).filter(|number| *number >= 0).unwrap_or_default()
}

/// Failures of the index before this pod: those that count, and those that are ignored.
pub fn failures_before(pod: &Pod) -> (i32, i32) {
    (number(pod, INDEX_FAILURES), number(pod, INDEX_IGNORED))
}

pub fn is_suspended(spec: &JobSpec) -> bool {
    spec.suspend == Some(true)
}

pub fn has_limit_per_index(spec: &JobSpec) -> bool {
    spec.backoff_limit_per_index.is_some()
}

/// Whether a pod is replaced only when it has stopped, not as soon as it is about to.
pub fn replaces_stopped_only(spec: &JobSpec) -> bool {
    spec.pod_failure_policy.is_some() || spec.pod_replacement_policy.as_deref() == Some("Failed")
}

/// A pod that is deleted before it stops has failed, too: it may never come to say so.
pub fn has_failed(spec: &JobSpec, pod: &Pod) -> bool {
    match phase(pod) {
        "Failed" => true,
        "Succeeded" => false,
        _ => pod.metadata.deletion_timestamp.is_some() && !replaces_stopped_only(spec),
    }
}

// === impl Facts ===

impl<'a> Facts<'a> {
    pub fn count(job: &'a Job, spec: &'a JobSpec, mut pods: Vec<Arc<Pod>>) -> Self {
        let status = job.status.clone().unwrap_or_default();
        if spec.completion_mode.as_deref() == Some("Indexed") {
            pods.sort_by_key(|pod| index_of(pod));
        }
        let active: Vec<_> = pods.iter().filter(|pod| is_active(pod)).cloned().collect();
        let mut facts = Self {
            ready: active.iter().filter(|pod| is_ready(pod)).count(),
            terminating: pods.iter().filter(|pod| is_terminating(pod)).count(),
            job,
            spec,
            status,
            pods,
            active,
            new_succeeded: Vec::new(),
            new_failed: Vec::new(),
            succeeded: 0,
            failed: 0,
            indexes: None,
        };
        facts.count_finished();
        if spec.completion_mode.as_deref() == Some("Indexed") {
            let indexes = facts.count_indexes(spec.completions.unwrap_or_default());
            facts.succeeded = indexes.succeeded.total();
            facts.indexes = Some(indexes);
        }
        facts
    }

    fn count_finished(&mut self) {
        let (succeeded, failed) = (self.uncounted(true), self.uncounted(false));
        let uid = |pod: &Pod| pod.metadata.uid.clone().unwrap_or_default();
        let fresh = |pod: &&Arc<Pod>| is_tracked(pod) && self.has_valid_index(pod);
        let fresh: Vec<_> = self.pods.iter().filter(fresh).cloned().collect();
        let good = fresh.iter().filter(|pod| phase(pod) == "Succeeded" && !succeeded.contains(&uid(pod)));
        let bad = fresh.iter().filter(|pod| has_failed(self.spec, pod) && !failed.contains(&uid(pod)));
        let (good, bad): (Vec<_>, Vec<_>) = (good.cloned().collect(), bad.cloned().collect());
        let counts = bad.iter().filter(|pod| self.judge(pod) != Failure::Ignored).count();
        self.succeeded = self.status.succeeded.unwrap_or_default() + whole(good.len() + succeeded.len());
        self.failed = self.status.failed.unwrap_or_default() + whole(counts + failed.len());
        (self.new_succeeded, self.new_failed) = (good, bad);
    }

    fn count_indexes(&self, completions: i32) -> IndexFacts {
        let tracked = || self.pods.iter().filter(|pod| is_tracked(pod) && self.has_valid_index(pod));
        let counted = Indexes::parse(self.status.completed_indexes.as_deref().unwrap_or_default(), completions);
        let succeeded = tracked().filter(|pod| phase(pod) == "Succeeded").filter_map(|pod| index_of(pod));
        let succeeded = counted.with(succeeded);
        let failed = self.spec.backoff_limit_per_index.map(|limit| {
            let before = Indexes::parse(self.status.failed_indexes.as_deref().unwrap_or_default(), completions);
            before.with(tracked().filter(|pod| self.fails_index(pod, limit)).filter_map(|pod| index_of(pod)))
        });
        let mut facts = IndexFacts { completions, counted, succeeded, failed, to_replace: BTreeMap::new() };
        if facts.failed.is_some() {
            facts.to_replace = self.to_replace(&facts);
        }
        facts
    }

    fn fails_index(&self, pod: &Pod, limit: i32) -> bool {
        has_failed(self.spec, pod)
            && match self.judge(pod) {
                Failure::FailsIndex => true,
                Failure::Ignored => false,
                Failure::Counts | Failure::FailsJob(_) => failures_before(pod).0 >= limit,
            }
    }

    fn to_replace(&self, indexes: &IndexFacts) -> BTreeMap<i32, Arc<Pod>> {
        let active: BTreeSet<_> = self.active.iter().filter_map(|pod| index_of(pod)).collect();
        let over =
            |index: i32| indexes.succeeded.has(index) || indexes.failed.as_ref().is_some_and(|all| all.has(index));
        let rank = |pod: &Pod| {
            let (counted, ignored) = failures_before(pod);
            (counted + ignored, finished_at(pod))
        };
        let mut last: BTreeMap<i32, Arc<Pod>> = BTreeMap::new();
        for pod in self.pods.iter().filter(|pod| is_tracked(pod) && has_failed(self.spec, pod)) {
            let Some(index) = index_of(pod).filter(|index| *index < indexes.completions) else { continue };
            if over(index) || active.contains(&index) {
                continue;
            }
            let known = last.get(&index).map(|known| rank(known));
            if known.is_none_or(|known| rank(pod).0 >= known.0 && rank(pod).1 >= known.1) {
                last.insert(index, pod.clone());
            }
        }
        last
    }

    /// Pods of an indexed Job count only with an index that it asks for.
    pub fn has_valid_index(&self, pod: &Pod) -> bool {
        self.spec.completion_mode.as_deref() != Some("Indexed")
            || index_of(pod).is_some_and(|index| index < self.spec.completions.unwrap_or_default())
    }

    /// The uids of finished pods that are in the status, but not yet in its counts.
    pub fn uncounted(&self, succeeded: bool) -> Vec<String> {
        let both = self.status.uncounted_terminated_pods.clone().unwrap_or_default();
        if succeeded { both.succeeded } else { both.failed }.unwrap_or_default()
    }

    pub fn judge(&self, pod: &Pod) -> Failure {
        policy::judge(self.spec.pod_failure_policy.as_ref(), pod)
    }
}
