// SPDX-License-Identifier: Apache-2.0
//! One pod: its containers in order, and what they come to together.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, PodSpec, PodStatus};

use super::{
    brokers::Broker,
    conditions,
    container::{Actor, Told, after, ended, has_begun, started_at, terminated},
    mounts,
    script::{self, Role, Script},
};
use crate::{kinds::View, workload::time};

/// A container that is killed.
const KILLED: i32 = 137;

/// What a pod comes to.
#[derive(Debug)]
pub struct Life {
    pub status: PodStatus,
    pub told: Vec<Told>,
    pub at: Option<Timestamp>,
}

/// A pod and everything that decides about its containers.
#[derive(Debug)]
struct Scene<'a> {
    pod: &'a Pod,
    spec: &'a PodSpec,
    view: &'a View,
    now: Timestamp,
    /// Since when everything that it mounts is there.
    mounted: Option<Timestamp>,
}

/// What is next for a pod that has been admitted.
pub fn live(pod: &Pod, view: &View, now: Timestamp) -> Life {
    let mut life = Life { status: pod.status.clone().unwrap_or_default(), told: Vec::new(), at: None };
    let Some(spec) = pod.spec.as_ref() else { return life };
    let mounted = mounts::since(pod, &mut life, view, now);
    let fresh = life.status.start_time.is_none();
    if mounted.is_some() && (fresh || mounts::waits(pod)) {
        let images = spec.init_containers.iter().flatten().chain(&spec.containers).map(|one| one.image.as_deref());
        let pulling = images.flatten().map(|image| (true, "Pulling", format!("Pulling image \"{image}\"")));
        life.told.extend(pulling);
    }
    let start = life.status.start_time.get_or_insert_with(|| time(now)).0;
    let deadline = spec.active_deadline_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let deadline = deadline.map(|seconds| after(start, Duration::from_secs(seconds)));
    if deadline.is_some_and(|deadline| deadline <= now) {
        life.fail("DeadlineExceeded", "Pod was active on the node longer than the specified deadline", now);
    } else {
        life.act(&Scene { pod, spec, view, now, mounted }, after(start, script::boot(pod)));
        life.look_at(deadline);
        mounts::forget(&mut life);
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

impl Scene<'_> {
    /// The state that a container was in.
    fn before(&self, container: &Container, role: Role) -> Option<&ContainerStatus> {
        let status = self.pod.status.as_ref()?;
        let all = match role {
            Role::Main => &status.container_statuses,
            Role::First | Role::Beside => &status.init_container_statuses,
        };
        all.iter().flatten().find(|one| one.name == container.name)
    }
}

// === impl Life ===

impl Life {
    pub fn look_at(&mut self, at: Option<Timestamp>) {
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
    fn act(&mut self, scene: &Scene<'_>, prepared: Timestamp) {
        let mut turn = Some(prepared);
        let mut before = Vec::new();
        for container in scene.spec.init_containers.iter().flatten() {
            let role = script::role(container);
            let status = self.step(scene, container, role, turn);
            let done = conditions::is_done(&status, role == Role::Beside);
            let ended = ended(&status).and_then(|end| end.finished_at.clone()).map(|time| time.0);
            turn = turn.filter(|_| done).map(|turn| ended.or(started_at(&status)).unwrap_or(turn));
            before.push(status);
        }
        let main =
            scene.spec.containers.iter().map(|container| self.step(scene, container, Role::Main, turn)).collect();
        self.conclude(scene.spec, before, main, scene.now);
    }

    /// `turn` is when the container may start, if that is known already and nothing is missing.
    fn step(
        &mut self,
        scene: &Scene<'_>,
        container: &Container,
        role: Role,
        turn: Option<Timestamp>,
    ) -> ContainerStatus {
        let Scene { pod, spec, view, now, mounted } = *scene;
        let before = scene.before(container, role);
        let broker = Broker::of(pod, container, before, view, now).filter(|_| role == Role::Main);
        let mut script = Script::of(pod, container, role);
        if let Some(broker) = &broker {
            script = broker.direct(script);
        }
        let actor = Actor { pod, container, role, script, now };
        let first = spec.init_containers.as_deref().unwrap_or_default();
        let creating = if first.is_empty() { "ContainerCreating" } else { "PodInitializing" };
        let step = actor.next(before, turn.zip(mounted).map(|(turn, mounted)| turn.max(mounted)), creating);
        self.told.extend(step.told);
        self.look_at(step.at);
        if let Some(broker) = &broker {
            broker.note(self, &step.status, &actor.script);
        }
        step.status
    }

    fn conclude(&mut self, spec: &PodSpec, before: Vec<ContainerStatus>, main: Vec<ContainerStatus>, now: Timestamp) {
        let failed = |one: &ContainerStatus| ended(one).is_some_and(|end| end.exit_code != 0);
        let broken = spec.restart_policy.as_deref() == Some("Never") && before.iter().any(failed);
        let phase = if broken {
            "Failed"
        } else if main.iter().all(|one| ended(one).is_some()) {
            if main.iter().any(failed) { "Failed" } else { "Succeeded" }
        } else if main.iter().any(has_begun) {
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
