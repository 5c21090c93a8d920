// SPDX-License-Identifier: Apache-2.0
//! What containers have written.

use std::sync::Arc;

use bivouac_apiserver::Logs;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use serde_json::Value;

use super::{
    container::{ended, has_begun},
    script,
};

/// Knows what the containers of simulated nodes have written: what the annotation
/// `simulator.bivouac.dev/logs` says, else what they were started with and how they ended.
pub fn logs() -> Arc<dyn Logs> {
    Arc::new(Written)
}

#[derive(Debug)]
struct Written;

impl Logs for Written {
    fn read(&self, pod: &Value, container: &str) -> Option<String> {
        let pod: Pod = serde_json::from_value(pod.clone()).ok()?;
        let status = pod.status.clone().unwrap_or_default();
        let mut all = status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten());
        let state = all.find(|one| one.name == container).filter(|one| has_begun(one));
        let Some(state) = state else { return Some(String::new()) };
        let own = script::annotation(&pod, &format!("logs.{container}"));
        let text = match own.or_else(|| script::annotation(&pod, "logs")) {
            Some(text) => text.to_owned(),
            None => default(&pod, state),
        };
        Some(if text.is_empty() || text.ends_with('\n') { text } else { format!("{text}\n") })
    }
}

fn default(pod: &Pod, status: &ContainerStatus) -> String {
    let spec = pod.spec.iter();
    let mut all = spec.flat_map(|spec| spec.init_containers.iter().flatten().chain(&spec.containers));
    let container = all.find(|one| one.name == status.name).cloned().unwrap_or_default();
    let words = container.command.into_iter().chain(container.args).flatten().collect::<Vec<_>>();
    let command = if words.is_empty() { "the image's own command".to_owned() } else { words.join(" ") };
    let mut text = format!("image {}\nstarted: {command}\n", status.image);
    if let Some(end) = ended(status) {
        text.push_str(&format!("ended with exit code {}\n", end.exit_code));
    }
    text
}
