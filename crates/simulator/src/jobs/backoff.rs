// SPDX-License-Identifier: Apache-2.0
//! How long a Job waits before it replaces a failed pod.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use crate::workload::condition;

const FIRST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(600);

/// The failures of a Job since its last success. It is kept in memory only: after a restart the Job waits less.
#[derive(Clone, Debug, Default)]
pub struct Failures(BTreeMap<String, Timestamp>);

impl Failures {
    /// Takes in pods that have finished. The same pod may be told again.
    pub fn note(&mut self, succeeded: &[Arc<Pod>], failed: &[Arc<Pod>]) {
        let last_success = succeeded.iter().map(|pod| finished_at(pod)).max();
        if last_success.is_some() {
            self.0.clear();
        }
        for pod in failed {
            let at = finished_at(pod);
            if last_success.is_none_or(|success| at > success) {
                self.0.insert(pod.metadata.uid.clone().unwrap_or_default(), at);
            }
        }
    }

    /// Not before this time may a pod be created.
    pub fn until(&self) -> Option<Timestamp> {
        let last = self.0.values().max().copied()?;
        Some(wait_from(last, self.0.len()))
    }
}

/// When the next pod may be created, after so many failures of which this was the last.
pub fn wait_from(last: Timestamp, failures: usize) -> Timestamp {
    let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX).min(10);
    let wait = FIRST.saturating_mul(1 << doublings).min(LONGEST);
    last.checked_add(wait).unwrap_or(Timestamp::MAX)
}

/// When a pod finished, as well as it can be known.
pub fn finished_at(pod: &Pod) -> Timestamp {
    containers_finished_at(pod)
        .or_else(|| {
            let ready = condition(pod, "Ready").filter(|ready| ready.status == "False")?;
            Some(ready.last_transition_time.as_ref()?.0)
        })
        .or_else(|| {
            let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or_default();
            let grace = Duration::from_secs(u64::try_from(grace).unwrap_or_default());
            pod.metadata.deletion_timestamp.as_ref()?.0.checked_sub(grace).ok()
        })
        .or_else(|| pod.metadata.creation_timestamp.as_ref().map(|time| time.0))
        .unwrap_or(Timestamp::MIN)
}

/// When the last container finished, if all have. Containers that run beside the others count, too.
fn containers_finished_at(pod: &Pod) -> Option<Timestamp> {
    let (spec, status) = (pod.spec.as_ref()?, pod.status.as_ref()?);
    let beside = |one: &&ContainerStatus| {
        let containers = spec.init_containers.iter().flatten();
        let mut named = containers.filter(|container| container.name == one.name);
        named.any(|container| container.restart_policy.as_deref() == Some("Always"))
    };
    let init = status.init_container_statuses.iter().flatten().filter(beside);
    let ends = status.container_statuses.iter().flatten().chain(init).map(|one| {
        let terminated = one.state.as_ref()?.terminated.as_ref()?;
        Some(terminated.finished_at.as_ref()?.0)
    });
    ends.collect::<Option<Vec<_>>>()?.into_iter().max()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(uid: &str, finished: &str) -> Arc<Pod> {
        let pod = json!({ "metadata": { "uid": uid }, "spec": { "containers": [] }, "status": { "conditions": [
            { "type": "Ready", "status": "False", "lastTransitionTime": finished }] } });
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    #[test]
    fn waits_double_until_a_success() {
        let mut failures = Failures::default();
        assert_eq!(failures.until(), None);
        for (minute, seconds) in [(0, 10), (1, 20), (2, 40), (3, 80), (4, 160), (5, 320), (6, 600), (7, 600)] {
            let at = format!("2026-01-01T00:0{minute}:00Z");
            let failed = [pod(&at, &at)];
            failures.note(&[], &failed);
            failures.note(&[], &failed);
            let expected = at.parse::<Timestamp>().unwrap() + Duration::from_secs(seconds);
            assert_eq!(failures.until(), Some(expected), "{minute}");
        }
        let late = [pod("late", "2026-01-01T00:09:00Z"), pod("early", "2026-01-01T00:07:00Z")];
        failures.note(&[pod("good", "2026-01-01T00:08:00Z")], &late);
        assert_eq!(failures.until(), Some("2026-01-01T00:09:10Z".parse().unwrap()), "only the one after the success");
        failures.note(&[pod("better", "2026-01-01T00:10:00Z")], &[]);
        assert_eq!(failures.until(), None);
    }
}
