// SPDX-License-Identifier: Apache-2.0
//! Pods that no Job will count any more lose the finalizer that waits for it.

use k8s_openapi::{
    Resource as _,
    api::{batch::v1::Job, core::v1::Pod},
};

use super::{facts::is_tracked, is_finished, is_ours, release};
use crate::{
    controller::{Controller, Moment, Plan},
    kinds::{Object, View},
    shelf::Key,
    workload::controller_of,
};

#[derive(Debug)]
pub struct Orphans;

impl Controller for Orphans {
    fn name(&self) -> &'static str {
        "job-controller"
    }

    /// Keys are pods.
    fn concerns(&self, object: &Object, view: &View) -> Vec<Key> {
        match object {
            Object::Pod(pod) if is_tracked(pod) => vec![Key::of(&pod.metadata)],
            Object::Job(job) => {
                let uid = job.metadata.uid.as_deref().unwrap_or_default();
                view.pods.owned_by(uid).filter(|pod| is_tracked(pod)).map(|pod| Key::of(&pod.metadata)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn plan(&mut self, key: &Key, view: &View, _: &Moment<'_>) -> Plan {
        let mut plan = Plan::default();
        if let Some(pod) = view.pods.get(key).filter(|pod| is_orphan(pod, view)) {
            release(&mut plan, pod);
        }
        plan
    }
}

fn is_orphan(pod: &Pod, view: &View) -> bool {
    let Some(owner) = controller_of(&pod.metadata) else { return true };
    if (owner.kind.as_str(), owner.api_version.as_str()) != (Job::KIND, Job::API_VERSION) {
        return false;
    }
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let job = view.jobs.get(&Key::new(namespace, &owner.name));
    let job = job.filter(|job| job.metadata.uid.as_deref() == Some(owner.uid.as_str()));
    job.is_none_or(|job| is_finished(job) && job.spec.as_ref().is_some_and(is_ours))
}
