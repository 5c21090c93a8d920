// SPDX-License-Identifier: Apache-2.0
//! Whether a Job has come to its end, and why.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::JobCondition;

use super::{
    facts::{Facts, has_failed, is_suspended},
    policy::{self, Failure},
};
use crate::workload::{phase, time};

/// How a Job ends. It is announced by a first condition, and sealed by a second when all its pods are counted and gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    pub success: bool,
    pub reason: String,
    pub message: String,
    /// The status has the first condition already.
    pub announced: bool,
}

impl End {
    fn failure(reason: &str, message: &str) -> Self {
        Self { success: false, reason: reason.to_owned(), message: message.to_owned(), announced: false }
    }

    fn success(reason: &str, message: &str) -> Self {
        Self { success: true, ..Self::failure(reason, message) }
    }

    pub fn completed() -> Self {
        Self::success("CompletionsReached", "Reached expected number of succeeded pods")
    }

    pub fn announcement(&self, now: Timestamp) -> JobCondition {
        let kind = if self.success { "SuccessCriteriaMet" } else { "FailureTarget" };
        condition(kind, "True", &self.reason, &self.message, now)
    }

    pub fn seal(&self, now: Timestamp) -> JobCondition {
        condition(if self.success { "Complete" } else { "Failed" }, "True", &self.reason, &self.message, now)
    }
}

pub fn condition(kind: &str, status: &str, reason: &str, message: &str, now: Timestamp) -> JobCondition {
    JobCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(time(now)),
        last_transition_time: Some(time(now)),
    }
}

/// Why the Job ends now, other than that enough pods have succeeded.
pub fn find(facts: &Facts<'_>, now: Timestamp) -> Option<End> {
    announced(facts)
        .or_else(|| by_failure_policy(facts))
        .or_else(|| by_limit(facts))
        .or_else(|| by_deadline(facts, now))
        .or_else(|| by_failed_indexes(facts))
        .or_else(|| by_success_policy(facts))
}

fn announced(facts: &Facts<'_>) -> Option<End> {
    let known = |kind: &str| {
        let mut conditions = facts.status.conditions.iter().flatten();
        conditions.find(|condition| condition.type_ == kind && condition.status == "True")
    };
    let end = |condition: &JobCondition, success| End {
        success,
        reason: condition.reason.clone().unwrap_or_default(),
        message: condition.message.clone().unwrap_or_default(),
        announced: true,
    };
    known("SuccessCriteriaMet")
        .map(|condition| end(condition, true))
        .or_else(|| known("FailureTarget").map(|condition| end(condition, false)))
}

fn by_failure_policy(facts: &Facts<'_>) -> Option<End> {
    facts.spec.pod_failure_policy.as_ref()?;
    let failed = facts.pods.iter().filter(|pod| has_failed(facts.spec, pod));
    failed.into_iter().find_map(|pod| match facts.judge(pod) {
        Failure::FailsJob(why) => Some(End::failure("PodFailurePolicy", &why)),
        _ => None,
    })
}

fn by_limit(facts: &Facts<'_>) -> Option<End> {
    let limit = facts.spec.backoff_limit.unwrap_or(6);
    (facts.failed > limit || restarts_exceed(facts, limit))
        .then(|| End::failure("BackoffLimitExceeded", "Job has reached the specified backoff limit"))
}

/// Where containers are restarted in their pod, the restarts count.
fn restarts_exceed(facts: &Facts<'_>, limit: i32) -> bool {
    let template = facts.spec.template.spec.as_ref();
    if template.and_then(|spec| spec.restart_policy.as_deref()) != Some("OnFailure") {
        return false;
    }
    let living = facts.pods.iter().filter(|pod| matches!(phase(pod), "Running" | "Pending"));
    let statuses = living.filter_map(|pod| pod.status.as_ref());
    let containers =
        statuses.flat_map(|status| status.init_container_statuses.iter().chain(&status.container_statuses).flatten());
    let restarts: i32 = containers.map(|one| one.restart_count).sum();
    if limit == 0 { restarts > 0 } else { restarts >= limit }
}

/// When the Job has been active for as long as it may.
pub fn deadline(facts: &Facts<'_>) -> Option<Timestamp> {
    let seconds = facts.spec.active_deadline_seconds.filter(|_| !is_suspended(facts.spec))?;
    let started = facts.status.start_time.as_ref()?.0;
    started.checked_add(Duration::from_secs(u64::try_from(seconds).ok()?)).ok()
}

fn by_deadline(facts: &Facts<'_>, now: Timestamp) -> Option<End> {
    deadline(facts)
        .filter(|deadline| *deadline <= now)
        .map(|_| End::failure("DeadlineExceeded", "Job was active longer than specified deadline"))
}

fn by_failed_indexes(facts: &Facts<'_>) -> Option<End> {
    let indexes = facts.indexes.as_ref()?;
    let failed = indexes.failed.as_ref()?.total();
    if facts.spec.max_failed_indexes.is_some_and(|most| failed > most) {
        let why = "Job has exceeded the specified maximal number of failed indexes";
        return Some(End::failure("MaxFailedIndexesExceeded", why));
    }
    (failed > 0 && failed + indexes.succeeded.total() >= indexes.completions)
        .then(|| End::failure("FailedIndexes", "Job has failed indexes"))
}

fn by_success_policy(facts: &Facts<'_>) -> Option<End> {
    let indexes = facts.indexes.as_ref()?;
    let why = policy::enough(facts.spec.success_policy.as_ref(), &indexes.succeeded, indexes.completions)?;
    Some(End::success("SuccessPolicy", &why))
}
