// SPDX-License-Identifier: Apache-2.0
//! One container: what state it is in next.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
    Pod,
};

use super::script::{Role, Script};
use crate::workload::time;

const FIRST_WAIT: u64 = 10;
const LONGEST_WAIT: u64 = 300;
/// Whoever has run for so long may fail again as if for the first time.
const FORGIVEN: u64 = 600;

/// Something to tell about a pod: whether it is trouble, the reason, the words.
pub type Told = (bool, &'static str, String);

/// What a container comes to.
#[derive(Debug)]
pub struct Step {
    pub status: ContainerStatus,
    pub told: Vec<Told>,
    /// When to look again.
    pub at: Option<Timestamp>,
}

/// A container and everything that decides about it.
#[derive(Debug)]
pub struct Actor<'a> {
    pub pod: &'a Pod,
    pub container: &'a Container,
    pub role: Role,
    pub script: Script,
    pub now: Timestamp,
}

pub fn after(start: Timestamp, wait: Duration) -> Timestamp {
    start.checked_add(wait).unwrap_or(Timestamp::MAX)
}

pub fn started_at(status: &ContainerStatus) -> Option<Timestamp> {
    status.state.as_ref()?.running.as_ref()?.started_at.as_ref().map(|time| time.0)
}

pub fn ended(status: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    status.state.as_ref()?.terminated.as_ref()
}

fn last(status: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    status.last_state.as_ref()?.terminated.as_ref()
}

/// Whether it has run, now or before.
pub fn has_begun(status: &ContainerStatus) -> bool {
    last(status).is_some() || started_at(status).is_some() || ended(status).is_some()
}

fn finished_at(end: &ContainerStateTerminated) -> Option<Timestamp> {
    end.finished_at.as_ref().map(|time| time.0)
}

fn waiting(reason: &str, message: Option<String>) -> ContainerState {
    let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message };
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}

/// A state that has come to an end.
pub fn terminated(since: Option<Timestamp>, until: Timestamp, exit_code: i32) -> ContainerState {
    let end = ContainerStateTerminated {
        exit_code,
        reason: Some(if exit_code == 0 { "Completed" } else { "Error" }.to_owned()),
        started_at: since.map(time),
        finished_at: Some(time(until)),
        ..ContainerStateTerminated::default()
    };
    ContainerState { terminated: Some(end), ..ContainerState::default() }
}

/// How long a container waits before it starts again: not at all the first time, then longer and longer.
fn patience(restarts: i32, end: &ContainerStateTerminated) -> Duration {
    let ran = end.started_at.as_ref().zip(end.finished_at.as_ref()).map(|(from, to)| to.0.duration_since(from.0));
    let forgiven = ran.is_some_and(|ran| ran.as_secs() > i64::try_from(FORGIVEN).unwrap_or(i64::MAX));
    match u32::try_from(restarts) {
        Ok(0) | Err(_) => Duration::ZERO,
        Ok(_) if forgiven => Duration::ZERO,
        Ok(count) => Duration::from_secs(FIRST_WAIT.saturating_mul(1 << (count - 1).min(10)).min(LONGEST_WAIT)),
    }
}

impl Actor<'_> {
    /// `turn` is when the container may start, if that is known already.
    pub fn next(&self, before: Option<&ContainerStatus>, turn: Option<Timestamp>, first: &str) -> Step {
        let status = before.cloned().unwrap_or_else(|| self.fresh(first));
        if let Some(since) = started_at(&status) {
            return self.run(status, since);
        }
        if ended(&status).is_some() {
            return self.stay(status);
        }
        if let Some(end) = last(&status).cloned() {
            return self.recover(status, &end);
        }
        match turn {
            Some(turn) => self.begin(status, turn),
            None => self.stay(status),
        }
    }

    fn stay(&self, status: ContainerStatus) -> Step {
        Step { status, told: Vec::new(), at: None }
    }

    fn fresh(&self, reason: &str) -> ContainerStatus {
        ContainerStatus {
            name: self.container.name.clone(),
            image: self.container.image.clone().unwrap_or_default(),
            state: Some(waiting(reason, None)),
            last_state: Some(ContainerState::default()),
            started: Some(false),
            ..ContainerStatus::default()
        }
    }

    /// Pulls the image, and starts.
    fn begin(&self, mut status: ContainerStatus, turn: Timestamp) -> Step {
        let image = &status.image;
        let at = after(turn, self.script.pull);
        if self.now < at {
            return Step { told: Vec::new(), at: Some(at), status };
        }
        if !self.script.pulls {
            let why = format!("failed to pull and unpack image \"{image}\": not found");
            let reason = |status: &ContainerStatus| status.state.as_ref()?.waiting.as_ref()?.reason.clone();
            if reason(&status).as_deref() == Some("ImagePullBackOff") {
                return self.stay(status);
            }
            let told = vec![
                (false, "Failed", format!("Failed to pull image \"{image}\": {why}")),
                (false, "Failed", "Error: ErrImagePull".to_owned()),
                (true, "BackOff", format!("Back-off pulling image \"{image}\"")),
                (false, "Failed", "Error: ImagePullBackOff".to_owned()),
            ];
            let message = format!("Back-off pulling image \"{image}\": ErrImagePull: {why}");
            status.state = Some(waiting("ImagePullBackOff", Some(message)));
            return Step { status, told, at: None };
        }
        let pull = self.script.pull;
        let told = (
            true,
            "Pulled",
            format!(
                "Successfully pulled image \"{image}\" in {pull:?} ({pull:?} including waiting). Image size: 0 bytes."
            ),
        );
        self.start(status, at, vec![told])
    }

    fn start(&self, mut status: ContainerStatus, at: Timestamp, mut told: Vec<Told>) -> Step {
        let uid = self.pod.metadata.uid.as_deref().unwrap_or_default().replace('-', "");
        status.image_id = format!("simulated://{}", status.image);
        let mark = &self.script.mark;
        status.container_id = Some(format!("simulated://{uid}-{}-{}{mark}", status.name, status.restart_count));
        let running = ContainerStateRunning { started_at: Some(time(at)) };
        status.state = Some(ContainerState { running: Some(running), ..ContainerState::default() });
        status.started = Some(true);
        told.push((true, "Created", "Container created".to_owned()));
        told.push((true, "Started", "Container started".to_owned()));
        let mut step = self.run(status, at);
        step.told.splice(0..0, told);
        step
    }

    /// Runs on, or has come to its end in the meantime.
    fn run(&self, mut status: ContainerStatus, since: Timestamp) -> Step {
        let end = self.script.run.map(|run| after(since, run));
        if let Some(end) = end.filter(|end| *end <= self.now) {
            status.ready = false;
            status.started = Some(false);
            status.state = Some(terminated(Some(since), end, self.script.exit_code));
            let again = self.restarts(self.script.exit_code);
            return match ended(&status).cloned() {
                Some(end) if again => self.recover(status, &end),
                _ => self.stay(status),
            };
        }
        let ready = after(since, self.script.ready_after);
        status.ready = ready <= self.now;
        let at = if status.ready { end } else { Some(end.map_or(ready, |end| end.min(ready))) };
        Step { status, told: Vec::new(), at }
    }

    /// Whether a container starts again after it has ended.
    fn restarts(&self, exit_code: i32) -> bool {
        let policy = self.pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()).unwrap_or("Always");
        match (self.role, policy) {
            (Role::Beside, _) => true,
            (_, "Never") => false,
            (Role::Main, "Always") => true,
            _ => exit_code != 0,
        }
    }

    /// Starts again, or waits until it may.
    fn recover(&self, mut status: ContainerStatus, end: &ContainerStateTerminated) -> Step {
        let wait = patience(status.restart_count, end);
        let at = after(finished_at(end).unwrap_or(self.now), wait);
        status.last_state = Some(ContainerState { terminated: Some(end.clone()), ..ContainerState::default() });
        if at <= self.now {
            status.restart_count += 1;
            let told = (
                true,
                "Pulled",
                format!(
                    "Container image \"{}\" already present on machine and can be accessed by the pod",
                    status.image
                ),
            );
            return self.start(status, at, vec![told]);
        }
        let (name, meta) = (&status.name, &self.pod.metadata);
        let whom = format!(
            "{}_{}({})",
            meta.name.as_deref().unwrap_or_default(),
            meta.namespace.as_deref().unwrap_or_default(),
            meta.uid.as_deref().unwrap_or_default()
        );
        let mut told = Vec::new();
        if ended(&status).is_some() {
            told.push((false, "BackOff", format!("Back-off restarting failed container {name} in pod {whom}")));
        }
        let message = format!("back-off {} restarting failed container={name} pod={whom}", words(wait));
        status.state = Some(waiting("CrashLoopBackOff", Some(message)));
        Step { status, told, at: Some(at) }
    }
}

/// `2m40s`, as Go writes it.
fn words(wait: Duration) -> String {
    match (wait.as_secs() / 60, wait.as_secs() % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, seconds) => format!("{minutes}m{seconds}s"),
    }
}
