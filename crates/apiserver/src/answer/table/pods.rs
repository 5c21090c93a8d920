// SPDX-License-Identifier: Apache-2.0
//! How a pod is doing, in a few words.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age;
use crate::{
    object::{Object, text},
    registry::Resource,
};

/// Ready, status and restarts of a pod.
pub struct Summary {
    pub ready: String,
    pub status: String,
    pub restarts: String,
}

/// A pod that is through is marked, so that clients can hide it.
pub fn conditions(resource: &Resource, object: &Value) -> Option<Value> {
    if !resource.group.is_empty() || &*resource.kind != "Pod" {
        return None;
    }
    let (reason, message) = match text(object, "/status/phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{ "type": "Completed", "status": "True", "reason": reason, "message": message }]))
}

fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn number(value: &Value, pointer: &str) -> i64 {
    value.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

fn flag(value: &Value, pointer: &str) -> bool {
    value.pointer(pointer).and_then(Value::as_bool).unwrap_or_default()
}

/// Whether an init container stays beside the others.
fn is_sidecar(pod: &Value, name: &str) -> bool {
    list(pod, "/spec/initContainers")
        .iter()
        .any(|one| text(one, "/name") == name && text(one, "/restartPolicy") == "Always")
}

pub fn summary(pod: &Value, now: Timestamp) -> Summary {
    let mut status = match text(pod, "/status/reason") {
        "" => text(pod, "/status/phase").to_owned(),
        reason => reason.to_owned(),
    };
    for condition in list(pod, "/status/conditions") {
        if text(condition, "/type") == "PodScheduled" && text(condition, "/reason") == "SchedulingGated" {
            status = "SchedulingGated".to_owned();
        }
    }
    let sidecars =
        list(pod, "/spec/initContainers").iter().filter(|one| text(one, "/restartPolicy") == "Always").count();
    let total = list(pod, "/spec/containers").len() + sidecars;
    let (mut ready, mut restarts, mut last) = (0, 0, String::new());
    let note_restart = |container: &Value, restarts: &mut i64, last: &mut String| {
        *restarts += number(container, "/restartCount");
        let finished = text(container, "/lastState/terminated/finishedAt");
        if finished > last.as_str() {
            *last = finished.to_owned();
        }
    };
    let initializing = init_status(pod, &mut ready, &mut restarts, &mut last, note_restart);
    if let Some(text) = &initializing {
        status.clone_from(text);
    }
    if initializing.is_none() || is_initialized(pod) {
        let mut running = false;
        for container in list(pod, "/status/containerStatuses").iter().rev() {
            note_restart(container, &mut restarts, &mut last);
            match state(container) {
                Some(reason) => status = reason,
                None if flag(container, "/ready") && container.pointer("/state/running").is_some() => {
                    running = true;
                    ready += 1;
                }
                None => {}
            }
        }
        if status == "Completed" && running {
            let ready = list(pod, "/status/conditions")
                .iter()
                .any(|one| text(one, "/type") == "Ready" && text(one, "/status") == "True");
            status = if ready { "Running" } else { "NotReady" }.to_owned();
        }
    }
    if pod.is_going() {
        status = match text(pod, "/status/reason") {
            "NodeLost" => "Unknown".to_owned(),
            _ if matches!(text(pod, "/status/phase"), "Failed" | "Succeeded") => status,
            _ => "Terminating".to_owned(),
        };
    }
    let restarts = match (restarts, last.as_str()) {
        (0, _) | (_, "") => restarts.to_string(),
        (count, last) => format!("{count} ({} ago)", age::since(last, now)),
    };
    Summary { ready: format!("{ready}/{total}"), status, restarts }
}

/// What a container waits for or ended with.
fn state(container: &Value) -> Option<String> {
    if let Some(waiting) = container.pointer("/state/waiting") {
        return Some(text(waiting, "/reason").to_owned()).filter(|reason| !reason.is_empty());
    }
    let ended = container.pointer("/state/terminated")?;
    Some(match (text(ended, "/reason"), number(ended, "/signal"), number(ended, "/exitCode")) {
        ("", 0, code) => format!("ExitCode:{code}"),
        ("", signal, _) => format!("Signal:{signal}"),
        (reason, ..) => reason.to_owned(),
    })
}

fn is_initialized(pod: &Value) -> bool {
    list(pod, "/status/conditions")
        .iter()
        .any(|one| text(one, "/type") == "Initialized" && text(one, "/status") == "True")
}

/// What the init containers do, while one of them is not through.
fn init_status(
    pod: &Value,
    ready: &mut i64,
    restarts: &mut i64,
    last: &mut String,
    note: impl Fn(&Value, &mut i64, &mut String),
) -> Option<String> {
    let all = list(pod, "/spec/initContainers").len();
    for (index, container) in list(pod, "/status/initContainerStatuses").iter().enumerate() {
        note(container, restarts, last);
        if container.pointer("/state/terminated").is_some_and(|ended| number(ended, "/exitCode") == 0) {
            continue;
        }
        if is_sidecar(pod, text(container, "/name")) && flag(container, "/started") {
            *ready += i64::from(flag(container, "/ready"));
            continue;
        }
        return Some(match (container.pointer("/state/terminated"), text(container, "/state/waiting/reason")) {
            (Some(_), _) => format!("Init:{}", state(container).unwrap_or_default()),
            (None, "" | "PodInitializing") => format!("Init:{index}/{all}"),
            (None, reason) => format!("Init:{reason}"),
        });
    }
    None
}
