// SPDX-License-Identifier: Apache-2.0
//! What a Deployment tells about itself.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentSpec, DeploymentStatus, ReplicaSet};

use super::{
    sets::Sets,
    sizes::{actual, available, may_be_missing, replicas, wanted},
};
use crate::workload::{some, time};

const PROGRESSING: &str = "Progressing";
const DONE: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";

pub fn condition(kind: &str, status: &str, reason: &str, message: &str, now: Timestamp) -> DeploymentCondition {
    DeploymentCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_transition_time: Some(time(now)),
        last_update_time: Some(time(now)),
    }
}

pub fn progressing(status: &DeploymentStatus) -> Option<&DeploymentCondition> {
    status.conditions.iter().flatten().find(|one| one.type_ == PROGRESSING)
}

/// The same status and reason are not news.
pub fn set(status: &mut DeploymentStatus, mut new: DeploymentCondition) {
    let all = status.conditions.get_or_insert_default();
    if let Some(known) = all.iter().find(|known| known.type_ == new.type_) {
        if known.status == new.status && known.reason == new.reason {
            return;
        }
        if known.status == new.status {
            new.last_transition_time = known.last_transition_time.clone();
        }
    }
    all.retain(|known| known.type_ != new.type_);
    all.push(new);
}

fn remove(status: &mut DeploymentStatus, kind: &str) {
    status.conditions.iter_mut().for_each(|all| all.retain(|one| one.type_ != kind));
}

/// Whether a limit is set on how long a rollout may stand still.
pub fn deadline(spec: &DeploymentSpec) -> Option<Duration> {
    let seconds = spec.progress_deadline_seconds.filter(|seconds| *seconds != i32::MAX)?;
    Some(Duration::from_secs(u64::try_from(seconds).ok()?))
}

/// Counts over all sets.
pub fn count(deployment: &Deployment, spec: &DeploymentSpec, sets: &Sets, now: Timestamp) -> DeploymentStatus {
    let before = deployment.status.clone().unwrap_or_default();
    let sum = |of: &dyn Fn(&ReplicaSet) -> i32| sets.all().map(of).sum::<i32>();
    let own = |set: &ReplicaSet| set.status.clone().unwrap_or_default();
    let available = sum(&available);
    let mut status = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: some(sum(&actual)),
        updated_replicas: sets.new.as_ref().map(actual).and_then(some),
        ready_replicas: some(sum(&|set| own(set).ready_replicas.unwrap_or_default())),
        available_replicas: some(available),
        unavailable_replicas: some((sum(&replicas) - available).max(0)),
        terminating_replicas: sets
            .all()
            .map(|set| own(set).terminating_replicas)
            .collect::<Option<Vec<_>>>()
            .map(|all| all.into_iter().sum()),
        collision_count: before.collision_count,
        conditions: before.conditions,
    };
    let enough = available >= wanted(spec) - may_be_missing(spec);
    let new = if enough {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    set(&mut status, condition("Available", new.0, new.1, new.2, now));
    status
}

/// All pods are new and available.
pub fn is_complete(deployment: &Deployment, spec: &DeploymentSpec, status: &DeploymentStatus) -> bool {
    let all = [status.updated_replicas, status.replicas, status.available_replicas];
    all.iter().all(|count| count.unwrap_or_default() == wanted(spec))
        && status.observed_generation >= deployment.metadata.generation
}

fn has_moved(before: &DeploymentStatus, status: &DeploymentStatus) -> bool {
    let number = |count: Option<i32>| count.unwrap_or_default();
    let old = |status: &DeploymentStatus| number(status.replicas) - number(status.updated_replicas);
    number(status.updated_replicas) > number(before.updated_replicas)
        || old(status) < old(before)
        || number(status.ready_replicas) > number(before.ready_replicas)
        || number(status.available_replicas) > number(before.available_replicas)
}

/// How the rollout goes. The answer also says when to look whether it stands still for too long.
pub fn of_rollout(
    deployment: &Deployment,
    spec: &DeploymentSpec,
    sets: &Sets,
    now: Timestamp,
) -> (DeploymentStatus, Option<Timestamp>) {
    let mut status = count(deployment, spec, sets, now);
    let before = deployment.status.clone().unwrap_or_default();
    let mut again = None;
    match deadline(spec) {
        None => remove(&mut status, PROGRESSING),
        Some(limit) => {
            let known = progressing(&before);
            let reason = known.and_then(|known| known.reason.as_deref());
            let was_done = status.replicas == status.updated_replicas && reason == Some(DONE);
            let name = |what: &str| match &sets.new {
                Some(set) => format!("ReplicaSet {:?} {what}", set.metadata.name.as_deref().unwrap_or_default()),
                None => format!("Deployment {:?} {what}", deployment.metadata.name.as_deref().unwrap_or_default()),
            };
            let due = known.and_then(|known| known.last_update_time.as_ref()?.0.checked_add(limit).ok());
            if was_done {
            } else if is_complete(deployment, spec, &status) {
                set(&mut status, condition(PROGRESSING, "True", DONE, &name("has successfully progressed."), now));
            } else if has_moved(&before, &status) {
                let mut new = condition(PROGRESSING, "True", "ReplicaSetUpdated", &name("is progressing."), now);
                if let Some(known) = known.filter(|known| known.status == "True") {
                    new.last_transition_time = known.last_transition_time.clone();
                }
                remove(&mut status, PROGRESSING);
                set(&mut status, new);
            } else if reason.is_some_and(|reason| reason != DONE && reason != TIMED_OUT) {
                if due.is_some_and(|due| due < now) {
                    set(
                        &mut status,
                        condition(PROGRESSING, "False", TIMED_OUT, &name("has timed out progressing."), now),
                    );
                } else {
                    // A little later than the limit, which must have been exceeded.
                    again = due.and_then(|due| due.checked_add(Duration::from_secs(1)).ok());
                }
            }
        }
    }
    tell_failure(&mut status, sets);
    (status, again)
}

/// What keeps a ReplicaSet from creating pods, the new one's first.
fn tell_failure(status: &mut DeploymentStatus, sets: &Sets) {
    let order = sets.new.iter().chain(&sets.old);
    let failures = order.filter_map(|set| set.status.as_ref()?.conditions.as_ref());
    match failures.flatten().find(|one| one.type_ == "ReplicaFailure") {
        Some(failure) => set(
            status,
            DeploymentCondition {
                type_: failure.type_.clone(),
                status: failure.status.clone(),
                reason: failure.reason.clone(),
                message: failure.message.clone(),
                last_transition_time: failure.last_transition_time.clone(),
                last_update_time: failure.last_transition_time.clone(),
            },
        ),
        None => remove(status, "ReplicaFailure"),
    }
}

/// The condition that a pause begins or ends with, if it does so now.
pub fn of_pause(spec: &DeploymentSpec, status: &DeploymentStatus, now: Timestamp) -> Option<DeploymentCondition> {
    deadline(spec)?;
    let reason = progressing(status).and_then(|known| known.reason.as_deref());
    match (spec.paused == Some(true), reason) {
        (_, Some(TIMED_OUT)) | (true, Some(PAUSED)) => None,
        (true, _) => Some(condition(PROGRESSING, "Unknown", PAUSED, "Deployment is paused", now)),
        (false, Some(PAUSED)) => {
            Some(condition(PROGRESSING, "Unknown", "DeploymentResumed", "Deployment is resumed", now))
        }
        (false, _) => None,
    }
}
