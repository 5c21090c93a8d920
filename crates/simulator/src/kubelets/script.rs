// SPDX-License-Identifier: Apache-2.0
//! What a pod does, as its annotations say.
//!
//! `simulator.bivouac.dev/run: 30s` is for all containers of a pod, `simulator.bivouac.dev/run.web: 30s` for the one
//! called `web`. Containers that run before the others are meant by their name only.

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{Container, Pod};

use crate::room::stays;

pub const PREFIX: &str = "simulator.bivouac.dev";

const BOOT: Duration = Duration::from_secs(1);
const PULL: Duration = Duration::from_secs(2);
/// Work that ends, of a pod that may end.
const RUN: Duration = Duration::from_secs(10);
/// Work that comes before the others.
const PREPARE: Duration = Duration::from_secs(1);
const STOP: Duration = Duration::from_secs(1);

/// The part that a container plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Main,
    /// Runs before the others, to its end.
    First,
    /// Starts before the others, and stays.
    Beside,
}

/// What one container does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    pub pull: Duration,
    pub pulls: bool,
    /// How long it runs; for ever if it does not say.
    pub run: Option<Duration>,
    pub exit_code: i32,
    /// It ends without a word to anybody.
    pub crashes: bool,
    pub ready_after: Duration,
    /// What the id of the container ends with.
    pub mark: String,
}

pub fn role(container: &Container) -> Role {
    if stays(container) { Role::Beside } else { Role::First }
}

/// How long the node prepares the pod.
pub fn boot(pod: &Pod) -> Duration {
    duration(pod, "boot", None).unwrap_or(BOOT)
}

/// How long the containers take to stop when they are asked to.
pub fn stop(pod: &Pod) -> Duration {
    duration(pod, "stop", None).unwrap_or(STOP)
}

pub fn annotation<'a>(pod: &'a Pod, word: &str) -> Option<&'a str> {
    Some(pod.metadata.annotations.as_ref()?.get(&format!("{PREFIX}/{word}"))?.as_str())
}

/// What the pod says about one container, else about all.
fn said<'a>(pod: &'a Pod, word: &str, container: Option<(&str, Role)>) -> Option<&'a str> {
    let own = container.and_then(|(name, _)| annotation(pod, &format!("{word}.{name}")));
    let all = || match container {
        Some((_, Role::First | Role::Beside)) if word != "pull" => None,
        _ => annotation(pod, word),
    };
    own.or_else(all)
}

fn duration(pod: &Pod, word: &str, container: Option<(&str, Role)>) -> Option<Duration> {
    let text = said(pod, word, container)?.trim();
    let parsed = text.parse::<SignedDuration>().ok().or_else(|| Some(SignedDuration::from_secs(text.parse().ok()?)));
    Duration::try_from(parsed?).ok()
}

impl Script {
    pub fn of(pod: &Pod, container: &Container, role: Role) -> Self {
        let whom = Some((container.name.as_str(), role));
        let ends = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()).is_some_and(|one| one != "Always");
        let usual = match role {
            Role::Main => ends.then_some(RUN),
            Role::First => Some(PREPARE),
            Role::Beside => None,
        };
        let crash = duration(pod, "crash-after", whom);
        let code = said(pod, "exit-code", whom).and_then(|text| text.trim().parse().ok()).unwrap_or_default();
        Self {
            pull: duration(pod, "pull", whom).unwrap_or(PULL),
            pulls: said(pod, "fails-to-pull", whom) != Some("true"),
            run: crash.or_else(|| duration(pod, "run", whom)).or(usual),
            exit_code: if crash.is_some() && code == 0 { 1 } else { code },
            crashes: crash.is_some(),
            ready_after: duration(pod, "ready-after", whom).unwrap_or_default(),
            mark: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn annotations_say_what_containers_do() {
        let said = json!({ "simulator.bivouac.dev/run": "30s", "simulator.bivouac.dev/run.two": "1m30s",
            "simulator.bivouac.dev/exit-code": "3", "simulator.bivouac.dev/pull": "5" });
        let pod: Pod = serde_json::from_value(json!({ "metadata": { "annotations": said } })).unwrap();
        let script = |name: &str, role| {
            let script = Script::of(&pod, &Container { name: name.to_owned(), ..Container::default() }, role);
            (script.pull.as_secs(), script.run.map(|run| run.as_secs()), script.exit_code)
        };
        assert_eq!(script("one", Role::Main), (5, Some(30), 3));
        assert_eq!(script("two", Role::Main), (5, Some(90), 3));
        assert_eq!(script("one", Role::First), (5, Some(1), 0));
        assert_eq!(script("one", Role::Beside), (5, None, 0));
    }
}
