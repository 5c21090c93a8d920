// SPDX-License-Identifier: Apache-2.0
//! Finished Jobs go when their time is over.

use std::time::Duration;

use super::finished;
use crate::{
    controller::{Controller, Moment, Plan},
    kinds::{Object, View},
    request::Propagation,
    shelf::Key,
};

#[derive(Debug)]
pub struct Expiry;

impl Controller for Expiry {
    fn name(&self) -> &'static str {
        "ttl-after-finished-controller"
    }

    fn concerns(&self, object: &Object, _: &View) -> Vec<Key> {
        match object {
            Object::Job(job) => vec![Key::of(&job.metadata)],
            _ => Vec::new(),
        }
    }

    fn plan(&mut self, key: &Key, view: &View, moment: &Moment<'_>) -> Plan {
        let mut plan = Plan::default();
        let Some(job) = view.jobs.get(key).filter(|job| job.metadata.deletion_timestamp.is_none()) else { return plan };
        let seconds = job.spec.as_ref().and_then(|spec| spec.ttl_seconds_after_finished);
        let end = finished(job).and_then(|condition| condition.last_transition_time.as_ref());
        let (Some(seconds), Some(end)) = (seconds.and_then(|seconds| u64::try_from(seconds).ok()), end) else {
            return plan;
        };
        match end.0.checked_add(Duration::from_secs(seconds)) {
            Ok(due) if due > moment.now => plan.again_at(due),
            Ok(_) => plan.delete(&**job, Propagation::Foreground),
            // So far away that it never comes.
            Err(_) => {}
        }
        plan
    }
}
