// SPDX-License-Identifier: Apache-2.0
//! What a container has written. Only nodes know, so somebody has to stand in for them.

use std::fmt;

use http::StatusCode;
use serde_json::Value;

use crate::{
    answer::Answer,
    call::Call,
    kinds::pod::containers,
    object::{Object, text},
    status::Status,
};

/// Knows what containers have written. The simulation is one; without any, the server is one whose nodes are away.
pub trait Logs: fmt::Debug + Send + Sync {
    /// Everything a container has written so far, if its node can tell.
    fn read(&self, pod: &Value, container: &str) -> Option<String>;
}

pub fn run(call: &Call) -> Result<Answer, Status> {
    let stored = call.server.store.get(&call.resource.keyspace, &call.key()).ok_or_else(|| call.not_found())?;
    let pod = call.resource.read(&stored);
    let container = container(call, &pod)?;
    let node = text(&pod, "/spec/nodeName");
    if node.is_empty() {
        return Ok(Answer::Text { code: StatusCode::NO_CONTENT, body: String::new() });
    }
    let written = match &call.server.logs {
        Some(logs) => logs.read(&pod, &container).ok_or_else(|| no_node(node))?,
        None => return Err(no_node(node)),
    };
    Ok(Answer::Text { code: StatusCode::OK, body: tail(&written, call.options.tail_lines) })
}

/// The real server looks for the node where it looks for pods.
fn no_node(node: &str) -> Status {
    Status::not_found("", "pods", node)
}

fn container(call: &Call, pod: &Value) -> Result<String, Status> {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let names = || containers::all(spec).map(|one| text(one, "/name"));
    let main = spec.get("containers").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let default = pod.annotation("kubectl.kubernetes.io/default-container");
    match (call.options.container.as_deref(), main) {
        (Some(name), _) if names().any(|known| known == name) => Ok(name.to_owned()),
        (Some(name), _) => Err(Status::bad_request(format!("container {name} is not valid for pod {}", pod.name()))),
        (None, [one]) => Ok(text(one, "/name").to_owned()),
        (None, _) if default.is_some_and(|name| names().any(|known| known == name)) => {
            Ok(default.unwrap_or_default().to_owned())
        }
        (None, _) => {
            let all: Vec<&str> = names().collect();
            let why = format!(
                "a container name must be specified for pod {}, choose one of: [{}]",
                pod.name(),
                all.join(" ")
            );
            Err(Status::bad_request(why))
        }
    }
}

fn tail(text: &str, lines: Option<u64>) -> String {
    let Some(lines) = lines.and_then(|lines| usize::try_from(lines).ok()) else { return text.to_owned() };
    let all: Vec<&str> = text.split_inclusive('\n').collect();
    all.get(all.len().saturating_sub(lines)..).unwrap_or_default().concat()
}
