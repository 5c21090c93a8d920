// SPDX-License-Identifier: Apache-2.0
//! Jobs: pods that run to their end.
//!
//! One look: count ([`facts`]), see whether the Job ends ([`end`]) and if not, how many pods it needs ([`scale`]), then
//! write down what has finished ([`track`]).

mod backoff;
mod end;
mod expiry;
mod facts;
mod indexes;
mod orphans;
mod pod;
mod policy;
mod scale;
mod track;

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::api::{
    batch::v1::{Job, JobCondition, JobSpec},
    core::v1::Pod,
};
use serde_json::json;

use self::{
    backoff::Failures,
    end::End,
    facts::{Facts, TRACKING, is_suspended, is_tracked},
    scale::Scale,
    track::Tracked,
};
pub use self::{expiry::Expiry, orphans::Orphans};
use crate::{
    controller::{Controller, Moment, Plan},
    kinds::{Object, View},
    labels,
    shelf::Key,
    workload::{claim, concerned, is_ready, time, whole},
};

/// The value of `managedBy` that means this controller.
const US: &str = "kubernetes.io/job-controller";

#[derive(Debug, Default)]
pub struct Jobs {
    failures: BTreeMap<Key, Failures>,
}

impl Controller for Jobs {
    fn name(&self) -> &'static str {
        "job-controller"
    }

    fn concerns(&self, object: &Object, view: &View) -> Vec<Key> {
        match object {
            Object::Job(job) => vec![Key::of(&job.metadata)],
            Object::Pod(pod) => concerned(&pod.metadata, &view.jobs, |job| job.spec.as_ref()?.selector.as_ref()),
            _ => Vec::new(),
        }
    }

    fn plan(&mut self, key: &Key, view: &View, moment: &Moment<'_>) -> Plan {
        let mut plan = Plan::default();
        let found = view.jobs.get(key).and_then(|job| Some((job, job.spec.as_ref()?)));
        let Some((job, spec)) = found.filter(|(job, spec)| is_ours(spec) && !is_finished(job)) else {
            self.failures.remove(key);
            return plan;
        };
        let selects = |pod: &Pod| labels::selects(spec.selector.as_ref(), pod.metadata.labels.as_ref());
        let claimed = claim(&mut plan, &**job, selects, &view.pods, Some(TRACKING));
        if claimed.changed {
            return plan;
        }
        let facts = Facts::count(job, spec, claimed.objects);
        let failures = self.failures.entry(key.clone()).or_default();
        failures.note(&facts.new_succeeded, &facts.new_failed);
        Pass { plan, moment, now: moment.now }.run(facts, failures)
    }
}

/// Others may have said that they look after the Job.
fn is_ours(spec: &JobSpec) -> bool {
    spec.managed_by.as_deref().is_none_or(|who| who == US)
}

pub fn finished(job: &Job) -> Option<&JobCondition> {
    let mut conditions = job.status.as_ref()?.conditions.as_ref()?.iter();
    conditions.find(|one| matches!(one.type_.as_str(), "Complete" | "Failed") && one.status == "True")
}

fn is_finished(job: &Job) -> bool {
    finished(job).is_some()
}

/// One look at one Job.
struct Pass<'a> {
    plan: Plan,
    moment: &'a Moment<'a>,
    now: Timestamp,
}

impl Pass<'_> {
    fn run(mut self, mut facts: Facts<'_>, failures: &Failures) -> Plan {
        if facts.status.start_time.is_none() && !is_suspended(facts.spec) {
            facts.status.start_time = Some(time(self.now));
        }
        let mut end = end::find(&facts, self.now);
        if end.is_some() {
            self.delete_active(&mut facts);
        } else {
            if let Some(deadline) = end::deadline(&facts) {
                self.plan.again_at(deadline);
            }
            let managed = facts.job.metadata.deletion_timestamp.is_none();
            if managed {
                self.rescale(&mut facts, failures);
            }
            end = completed(&facts);
            if end.is_none() && managed {
                self.tell_suspension(&mut facts);
            }
        }
        facts.status.active = Some(whole(facts.active.len())).filter(|active| *active > 0);
        facts.status.ready = Some(whole(facts.ready));
        facts.status.terminating = Some(whole(facts.terminating));
        let tracked = track::track(&mut facts, end.as_ref());
        self.conclude(facts, end.as_ref(), &tracked);
        self.plan
    }

    /// The Job is over. Finalizers stay: these pods are still to be counted.
    fn delete_active(&mut self, facts: &mut Facts<'_>) {
        for pod in std::mem::take(&mut facts.active) {
            self.plan.delete_pod(&pod, facts.job);
            facts.terminating += 1;
        }
        facts.ready = 0;
    }

    fn rescale(&mut self, facts: &mut Facts<'_>, failures: &Failures) {
        match scale::decide(facts, failures, self.now) {
            Scale::Fits => {}
            Scale::Wait(until) => self.plan.again_at(until),
            Scale::Create(indexes) => self.create(facts, &indexes),
            Scale::Delete(pods) => {
                for pod in &pods {
                    release(&mut self.plan, pod);
                    self.plan.delete_pod(pod, facts.job);
                }
                facts.ready -= pods.iter().filter(|pod| is_ready(pod)).count();
                facts.terminating += pods.len();
                facts.active.retain(|pod| pods.iter().all(|gone| gone.metadata.uid != pod.metadata.uid));
            }
        }
    }

    /// The status counts the new pods already, unless the last attempt to create some was refused.
    fn create(&mut self, facts: &mut Facts<'_>, indexes: &[Option<i32>]) {
        let pods = indexes.iter().map(|index| pod::build(facts, facts.job, *index)).collect::<Vec<_>>();
        if let Some(refusal) = self.moment.refusal {
            self.plan.warning(facts.job, "FailedCreate", format!("Error creating: {}", refusal.message));
        } else {
            facts.active.extend(pods.iter().cloned().map(Arc::new));
        }
        pods.iter().for_each(|pod| self.plan.create_pod(pod, facts.job));
    }

    fn tell_suspension(&mut self, facts: &mut Facts<'_>) {
        let suspended = is_suspended(facts.spec);
        let (status, reason, message) =
            if suspended { ("True", "JobSuspended", "Job suspended") } else { ("False", "JobResumed", "Job resumed") };
        let new = end::condition("Suspended", status, reason, message, self.now);
        let conditions = facts.status.conditions.get_or_insert_default();
        match conditions.iter_mut().find(|known| known.type_ == "Suspended") {
            Some(known) if known.status == status => return,
            Some(known) => *known = new,
            None if suspended => conditions.push(new),
            None => return,
        }
        facts.status.start_time = (!suspended).then(|| time(self.now));
        self.plan.event(facts.job, if suspended { "Suspended" } else { "Resumed" }, message);
    }

    /// Writes the status, then lets go of the pods that it has noted.
    fn conclude(&mut self, mut facts: Facts<'_>, end: Option<&End>, tracked: &Tracked) {
        let sealed = end.filter(|end| end.announced && tracked.all_counted && facts.terminating == 0);
        if let Some(end) = end {
            let conditions = facts.status.conditions.get_or_insert_default();
            if !end.announced {
                conditions.push(end.announcement(self.now));
            }
            if sealed.is_some() {
                conditions.push(end.seal(self.now));
                facts.status.completion_time = end.success.then(|| time(self.now));
            }
        }
        facts.status.conditions = facts.status.conditions.take().filter(|conditions| !conditions.is_empty());
        if facts.job.status.as_ref() != Some(&facts.status) {
            let job = Job { status: Some(facts.status), ..facts.job.clone() };
            let first = if self.moment.refusal.is_some() { 0 } else { self.plan.writes.len() };
            self.plan.status(&job);
            // What was refused is tried again after the truth is told.
            if let Some(status) = self.plan.writes.pop() {
                self.plan.writes.insert(first, status);
            }
            if let Some(end) = sealed {
                self.tell_end(&job, end);
            }
        }
        tracked.release.iter().for_each(|pod| release(&mut self.plan, pod));
    }

    fn tell_end(&mut self, job: &Job, end: &End) {
        if !end.success {
            let reason = REASONS.iter().find(|reason| **reason == end.reason).copied().unwrap_or("Failed");
            return self.plan.warning(job, reason, &*end.message);
        }
        let wanted = job.spec.as_ref().and_then(|spec| spec.completions);
        let succeeded = job.status.as_ref().and_then(|status| status.succeeded).unwrap_or_default();
        if wanted.is_some_and(|wanted| succeeded > wanted) {
            let note = "Too many succeeded pods running after completion count reached";
            self.plan.warning(job, "TooManySucceededPods", note);
        }
        self.plan.event(job, "Completed", "Job completed");
    }
}

const REASONS: [&str; 5] =
    ["BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded", "PodFailurePolicy"];

fn completed(facts: &Facts<'_>) -> Option<End> {
    let enough = facts.spec.completions.unwrap_or(1);
    (facts.succeeded >= enough && facts.active.is_empty()).then(End::completed)
}

/// Takes the finalizer from a pod.
fn release(plan: &mut Plan, pod: &Pod) {
    if is_tracked(pod) {
        let kept = pod.metadata.finalizers.iter().flatten().filter(|one| *one != TRACKING).collect::<Vec<_>>();
        plan.patch_metadata(pod, json!({ "finalizers": kept }));
    }
}
