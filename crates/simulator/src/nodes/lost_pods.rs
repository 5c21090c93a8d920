// SPDX-License-Identifier: Apache-2.0
//! Pods whose node no longer exists: nobody else will ever end them.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;

use super::{disrupted, pods_of};
use crate::{
    controller::{Controller, Moment, Plan},
    kinds::{Object, View},
    shelf::Key,
    workload::{node_of, phase},
};

/// The node may come back.
const QUARANTINE: Duration = Duration::from_secs(40);

#[derive(Debug, Default)]
pub struct LostPods {
    since: BTreeMap<Key, Timestamp>,
}

impl Controller for LostPods {
    fn name(&self) -> &'static str {
        "pod-garbage-collector"
    }

    fn concerns(&self, object: &Object, view: &View) -> Vec<Key> {
        pods_of(object, view)
    }

    fn plan(&mut self, key: &Key, view: &View, moment: &Moment<'_>) -> Plan {
        let mut plan = Plan::default();
        let lost = view
            .pods
            .get(key)
            .filter(|pod| node_of(pod).is_some_and(|node| view.nodes.get(&Key::bare(node)).is_none()));
        let Some(pod) = lost else {
            self.since.remove(key);
            return plan;
        };
        let since = *self.since.entry(key.clone()).or_insert(moment.now);
        let end = since.checked_add(QUARANTINE).unwrap_or(Timestamp::MAX);
        if end > moment.now {
            plan.again_at(end);
            return plan;
        }
        if !matches!(phase(pod), "Succeeded" | "Failed") {
            let mut ended = disrupted(pod, "DeletionByPodGC", "PodGC: node no longer exists", moment.now);
            ended.status.get_or_insert_default().phase = Some("Failed".to_owned());
            plan.status(&ended);
        }
        // Once it is asked to go at once, only finalizers hold it back.
        if pod.metadata.deletion_timestamp.is_none() || pod.metadata.deletion_grace_period_seconds != Some(0) {
            plan.remove(&**pod);
        }
        plan
    }
}
