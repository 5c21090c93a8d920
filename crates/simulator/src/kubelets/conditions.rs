// SPDX-License-Identifier: Apache-2.0
//! The conditions of a pod, out of the states of its containers.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition, PodStatus};

use super::container::ended;
use crate::{room::stays, workload::time};

/// A condition: whether it holds, and if not, why.
type Answer = Result<(), (&'static str, String)>;

/// Brings the conditions up to date. Those of others stay as they are.
pub fn update(pod: &Pod, status: &mut PodStatus, prepared: bool, now: Timestamp) {
    let over = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
    let containers = containers_ready(status);
    let ready = containers.clone().and_then(|()| gates(pod, status));
    let prepared = if prepared && !over { Ok(()) } else { Err(("", String::new())) };
    let all = [
        ("PodReadyToStartContainers", prepared),
        ("Initialized", initialized(pod, status)),
        ("Ready", ready),
        ("ContainersReady", containers),
        ("PodScheduled", Ok(())),
    ];
    for (kind, answer) in all {
        set(pod, status, kind, answer, now);
    }
}

fn set(pod: &Pod, status: &mut PodStatus, kind: &str, answer: Answer, now: Timestamp) {
    let completed = kind == "Initialized" && status.phase.as_deref() == Some("Succeeded");
    let all = status.conditions.as_deref().unwrap_or_default();
    let truth = if answer.is_ok() { "True" } else { "False" };
    let (reason, message) = answer.err().unwrap_or((if completed { "PodCompleted" } else { "" }, String::new()));
    let since = all.iter().find(|one| one.type_ == kind && one.status == truth);
    let new = PodCondition {
        type_: kind.to_owned(),
        status: truth.to_owned(),
        reason: Some(reason.to_owned()).filter(|text| !text.is_empty()),
        message: Some(message).filter(|text| !text.is_empty()),
        last_transition_time: since.and_then(|one| one.last_transition_time.clone()).or_else(|| Some(time(now))),
        observed_generation: pod.metadata.generation,
        ..PodCondition::default()
    };
    put(status, new);
}

/// Sets a condition in the place of the one before.
pub fn put(status: &mut PodStatus, new: PodCondition) {
    let all = status.conditions.get_or_insert_default();
    match all.iter_mut().find(|one| one.type_ == new.type_) {
        Some(known) => *known = new,
        None => all.push(new),
    }
}

pub fn remove(status: &mut PodStatus, kind: &str) {
    status.conditions.iter_mut().for_each(|all| all.retain(|one| one.type_ != kind));
}

fn names<'a>(all: impl Iterator<Item = &'a str>) -> Option<String> {
    let names: Vec<_> = all.collect();
    (!names.is_empty()).then(|| format!("[{}]", names.join(" ")))
}

fn containers_ready(status: &PodStatus) -> Answer {
    match status.phase.as_deref() {
        Some("Succeeded") => return Err(("PodCompleted", String::new())),
        Some("Failed") => return Err(("PodFailed", String::new())),
        _ => {}
    }
    let all = status.container_statuses.iter().flatten();
    match names(all.filter(|one| !one.ready).map(|one| one.name.as_str())) {
        None => Ok(()),
        Some(names) => Err(("ContainersNotReady", format!("containers with unready status: {names}"))),
    }
}

fn initialized(pod: &Pod, status: &PodStatus) -> Answer {
    let containers = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let state = |name: &str| status.init_container_statuses.iter().flatten().find(|one| one.name == name);
    let open = containers.filter(|container| !state(&container.name).is_some_and(|one| is_done(one, stays(container))));
    match names(open.map(|container| container.name.as_str())) {
        None => Ok(()),
        Some(names) => Err(("ContainersNotInitialized", format!("containers with incomplete status: {names}"))),
    }
}

/// Whether those after it may start.
pub fn is_done(status: &ContainerStatus, stays: bool) -> bool {
    if stays {
        return status.started == Some(true) || ended(status).is_some();
    }
    ended(status).is_some_and(|end| end.exit_code == 0)
}

fn gates(pod: &Pod, status: &PodStatus) -> Answer {
    for gate in pod.spec.iter().flat_map(|spec| spec.readiness_gates.iter().flatten()) {
        let kind = &gate.condition_type;
        let found = status.conditions.iter().flatten().find(|one| one.type_ == *kind);
        let why = match found.map(|one| one.status.as_str()) {
            Some("True") => continue,
            Some(other) => format!("the status of pod readiness gate \"{kind}\" is not \"True\", but {other}"),
            None => format!("corresponding condition of pod readiness gate \"{kind}\" does not exist."),
        };
        return Err(("ReadinessGatesNotReady", why));
    }
    Ok(())
}
