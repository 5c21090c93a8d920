// SPDX-License-Identifier: Apache-2.0
//! One pod: its containers in order, and what they come to together.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodSpec, PodStatus};

use super::{
    conditions,
    container::{Actor, Told, after, ended, started_at, terminated},
    script::{self, Role, Script},
};
use crate::workload::time;

/// A container that is killed.
const KILLED: i32 = 137;

/// What a pod comes to.
#[derive(Debug)]
pub struct Life {
    pub status: PodStatus,
    pub told: Vec<Told>,
    pub at: Option<Timestamp>,
}

/// What is next for a pod that has been admitted.
pub fn live(pod: &Pod, now: Timestamp) -> Life {
    let mut life = Life { status: pod.status.clone().unwrap_or_default(), told: Vec::new(), at: None };
    let Some(spec) = pod.spec.as_ref() else { return life };
    if life.status.start_time.is_none() {
        life.status.start_time = Some(time(now));
        let images = spec.init_containers.iter().flatten().chain(&spec.containers).map(|one| one.image.as_deref());
        let pulling = images.flatten().map(|image| (true, "Pulling", format!("Pulling image \"{image}\"")));
        life.told.extend(pulling);
    }
    let start = life.status.start_time.as_ref().map_or(now, |time| time.0);
    let deadline = spec.active_deadline_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let deadline = deadline.map(|seconds| after(start, Duration::from_secs(seconds)));
    if deadline.is_some_and(|deadline| deadline <= now) {
        life.fail("DeadlineExceeded", "Pod was active on the node longer than the specified deadline", now);
    } else {
        life.act(pod, spec, after(start, script::boot(pod)), now);
        life.look_at(deadline);
    }
    let prepared = life.has_begun();
    conditions::update(pod, &mut life.status, prepared, now);
    life.status.observed_generation = pod.metadata.generation;
    if matches!(life.status.phase.as_deref(), Some("Succeeded" | "Failed")) {
        life.at = None;
    }
    life
}

/// Ends all containers that have not ended.
pub fn end_all(status: &mut PodStatus, exit_code: i32, now: Timestamp) {
    let all = status.init_container_statuses.iter_mut().flatten().chain(status.container_statuses.iter_mut().flatten());
    for one in all.filter(|one| ended(one).is_none()) {
        one.state = Some(terminated(started_at(one), now, exit_code));
        one.ready = false;
        one.started = Some(false);
    }
}

// === impl Life ===

impl Life {
    fn look_at(&mut self, at: Option<Timestamp>) {
        self.at = self.at.into_iter().chain(at).min();
    }

    fn fail(&mut self, reason: &'static str, message: &str, now: Timestamp) {
        end_all(&mut self.status, KILLED, now);
        self.status.phase = Some("Failed".to_owned());
        self.status.reason = Some(reason.to_owned());
        self.status.message = Some(message.to_owned());
        self.told.push((true, reason, message.to_owned()));
    }

    /// Lets every container do what is next for it: first those before the others, in order.
    fn act(&mut self, pod: &Pod, spec: &PodSpec, prepared: Timestamp, now: Timestamp) {
        let first = spec.init_containers.as_deref().unwrap_or_default();
        let creating = if first.is_empty() { "ContainerCreating" } else { "PodInitializing" };
        let mut turn = Some(prepared);
        let known = self.status.init_container_statuses.take().unwrap_or_default();
        let mut before = Vec::new();
        for container in first {
            let role = script::role(container);
            let actor = Actor { pod, container, role, script: Script::of(pod, container, role), now };
            let step = actor.next(known.iter().find(|one| one.name == container.name), turn, creating);
            self.told.extend(step.told);
            self.look_at(step.at);
            let done = conditions::is_done(&step.status, role == Role::Beside);
            let ended = ended(&step.status).and_then(|end| end.finished_at.clone()).map(|time| time.0);
            turn = turn.filter(|_| done).map(|turn| ended.or(started_at(&step.status)).unwrap_or(turn));
            before.push(step.status);
        }
        let known = self.status.container_statuses.take().unwrap_or_default();
        let mut main = Vec::new();
        for container in &spec.containers {
            let actor = Actor { pod, container, role: Role::Main, script: Script::of(pod, container, Role::Main), now };
            let step = actor.next(known.iter().find(|one| one.name == container.name), turn, creating);
            self.told.extend(step.told);
            self.look_at(step.at);
            main.push(step.status);
        }
        self.conclude(spec, before, main, now);
    }

    fn conclude(&mut self, spec: &PodSpec, before: Vec<ContainerStatus>, main: Vec<ContainerStatus>, now: Timestamp) {
        let failed = |one: &ContainerStatus| ended(one).is_some_and(|end| end.exit_code != 0);
        let broken = spec.restart_policy.as_deref() == Some("Never") && before.iter().any(failed);
        let begun = |one: &ContainerStatus| {
            let last = one.last_state.as_ref().is_some_and(|state| state.terminated.is_some());
            last || started_at(one).is_some() || ended(one).is_some()
        };
        let phase = if broken {
            "Failed"
        } else if main.iter().all(|one| ended(one).is_some()) {
            if main.iter().any(failed) { "Failed" } else { "Succeeded" }
        } else if main.iter().any(begun) {
            "Running"
        } else {
            "Pending"
        };
        self.status.init_container_statuses = Some(before).filter(|all| !all.is_empty());
        self.status.container_statuses = Some(main);
        self.status.phase = Some(phase.to_owned());
        if matches!(phase, "Succeeded" | "Failed") {
            // Those that stay beside the others stop with them.
            end_all(&mut self.status, 0, now);
        }
    }

    /// Whether the node has prepared the pod: some container has been tried.
    pub fn has_begun(&self) -> bool {
        let all =
            self.status.init_container_statuses.iter().flatten().chain(self.status.container_statuses.iter().flatten());
        let creating = |one: &ContainerStatus| {
            let reason = one.state.as_ref().and_then(|state| state.waiting.as_ref()?.reason.as_deref());
            matches!(reason, Some("ContainerCreating" | "PodInitializing"))
        };
        all.into_iter().any(|one| !creating(one))
    }
}
