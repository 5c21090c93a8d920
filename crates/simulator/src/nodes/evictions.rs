// SPDX-License-Identifier: Apache-2.0
//! Pods leave nodes whose taints they cannot bear, at once or after a while.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Taint};

use super::{disrupted, pods_of};
use crate::{
    controller::{Controller, Moment, Plan},
    kinds::{Object, View},
    placement,
    request::Propagation,
    shelf::Key,
    workload::node_of,
};

#[derive(Debug, Default)]
pub struct Evictions {
    /// Since when pods bear a taint that does not say since when it is there.
    since: BTreeMap<Key, Timestamp>,
}

impl Controller for Evictions {
    fn name(&self) -> &'static str {
        "taint-eviction-controller"
    }

    fn concerns(&self, object: &Object, view: &View) -> Vec<Key> {
        pods_of(object, view)
    }

    fn plan(&mut self, key: &Key, view: &View, moment: &Moment<'_>) -> Plan {
        let mut plan = Plan::default();
        let pod = view.pods.get(key).filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let node = pod.and_then(|pod| view.nodes.get(&Key::bare(node_of(pod)?)));
        let (Some(pod), Some(node)) = (pod, node) else {
            self.since.remove(key);
            return plan;
        };
        let taints: Vec<_> = placement::taints(node).iter().filter(|taint| taint.effect == "NoExecute").collect();
        if taints.is_empty() {
            self.since.remove(key);
            return plan;
        }
        match patience(pod, &taints) {
            Some(Duration::MAX) => {}
            patience => {
                let seen = *self.since.entry(key.clone()).or_insert(moment.now);
                let since = taints.iter().filter_map(|taint| taint.time_added.as_ref()).map(|time| time.0).max();
                let end = since.unwrap_or(seen).checked_add(patience.unwrap_or_default()).unwrap_or(Timestamp::MAX);
                if end > moment.now {
                    plan.again_at(end);
                } else {
                    evict(&mut plan, pod, moment.now);
                }
            }
        }
        plan
    }
}

/// How long a pod bears taints: not at all, for a while, or for ever.
fn patience(pod: &Pod, taints: &[&Taint]) -> Option<Duration> {
    let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default();
    let mut least = Duration::MAX;
    for taint in taints {
        let toleration = tolerations.iter().find(|one| placement::tolerates(one, taint))?;
        if let Some(seconds) = toleration.toleration_seconds {
            least = least.min(Duration::from_secs(u64::try_from(seconds).unwrap_or_default()));
        }
    }
    Some(least)
}

fn evict(plan: &mut Plan, pod: &Pod, now: Timestamp) {
    plan.event(pod, "TaintManagerEviction", format!("Marking for deletion Pod {}", Key::of(&pod.metadata)));
    plan.status(&disrupted(pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", now));
    plan.delete(pod, Propagation::Background);
}
