// SPDX-License-Identifier: Apache-2.0
//! Deployments: from one template to the next, a few pods at a time.
//!
//! Each look makes at most one step; what it leads to brings the next look.

mod sets;
mod sizes;
mod status;

use k8s_openapi::api::{
    apps::v1::{Deployment, DeploymentSpec, DeploymentStatus, ReplicaSet},
    core::v1::Pod,
};

use self::{
    sets::{DESIRED, REVISION, Sets, annotation},
    sizes::{replicas, wanted},
    status::condition,
};
use crate::{
    controller::{Controller, Moment, Plan},
    kinds::{Object, View},
    labels,
    request::Propagation,
    shelf::Key,
    workload::{claim, concerned, controller_of, phase},
};

#[derive(Debug)]
pub struct Deployments;

impl Controller for Deployments {
    fn name(&self) -> &'static str {
        "deployment-controller"
    }

    fn concerns(&self, object: &Object, view: &View) -> Vec<Key> {
        match object {
            Object::Deployment(deployment) => vec![Key::of(&deployment.metadata)],
            Object::ReplicaSet(set) => {
                concerned(&set.metadata, &view.deployments, |deployment| Some(&deployment.spec.as_ref()?.selector))
            }
            Object::Pod(pod) => waiting_for(pod, view).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn plan(&mut self, key: &Key, view: &View, moment: &Moment<'_>) -> Plan {
        let mut plan = Plan::default();
        let found = view.deployments.get(key).and_then(|one| Some((one, one.spec.as_ref()?)));
        let Some((deployment, spec)) = found else { return plan };
        let selects = |set: &ReplicaSet| labels::selects(Some(&spec.selector), set.metadata.labels.as_ref());
        let claimed = claim(&mut plan, &**deployment, selects, &view.replica_sets, None);
        if !claimed.changed {
            let sets = Sets::sort(spec, claimed.objects);
            Look { deployment, spec, sets, view, moment, plan: &mut plan }.take();
        }
        plan
    }
}

/// Where all old pods go before the new ones come, each pod that goes counts.
fn waiting_for(pod: &Pod, view: &View) -> Option<Key> {
    let namespace = pod.metadata.namespace.as_deref()?;
    let set = view.replica_sets.get(&Key::new(namespace, &controller_of(&pod.metadata)?.name))?;
    let key = Key::new(namespace, &controller_of(&set.metadata)?.name);
    let recreates = view.deployments.get(&key)?.spec.as_ref().is_some_and(|spec| !sizes::is_rolling(spec));
    recreates.then_some(key)
}

/// One look at one Deployment.
struct Look<'a> {
    deployment: &'a Deployment,
    spec: &'a DeploymentSpec,
    sets: Sets,
    view: &'a View,
    moment: &'a Moment<'a>,
    plan: &'a mut Plan,
}

impl Look<'_> {
    fn take(mut self) {
        let before = self.deployment.status.clone().unwrap_or_default();
        if self.deployment.metadata.deletion_timestamp.is_some() {
            return self.tell_counts();
        }
        if let Some(condition) = status::of_pause(self.spec, &before, self.moment.now) {
            let mut changed = before;
            status::set(&mut changed, condition);
            return self.write(changed);
        }
        if self.revise() {
            return;
        }
        if self.spec.paused == Some(true) {
            self.resize();
            self.forget_history();
            return self.tell_counts();
        }
        let resized = |set: &ReplicaSet| {
            let desired = annotation(set, DESIRED).and_then(|text| text.parse::<i32>().ok());
            sets::is_active(set) && desired.is_some_and(|desired| desired != wanted(self.spec))
        };
        if self.sets.all().any(resized) {
            self.resize();
            return self.tell_counts();
        }
        if sizes::is_rolling(self.spec) { self.roll() } else { self.recreate() }
    }

    /// Keeps annotations of the new set and the number of the revision. Whether something had to be written.
    fn revise(&mut self) -> bool {
        let Some(new) = &self.sets.new else { return false };
        let mut updated = new.clone();
        sets::annotate(&mut updated, self.deployment, self.sets.next_revision());
        if let Some(own) = updated.spec.as_mut() {
            own.min_ready_seconds = self.spec.min_ready_seconds;
        }
        if updated != *new {
            self.plan.update(&updated);
            return true;
        }
        let revision = annotation(new, REVISION).unwrap_or_default();
        let known = self.deployment.metadata.annotations.as_ref().and_then(|all| all.get(REVISION));
        let before = self.deployment.status.clone().unwrap_or_default();
        if status::progressing(&before).is_none() && status::deadline(self.spec).is_some() {
            let message = format!("Found new replica set {:?}", new.metadata.name.as_deref().unwrap_or_default());
            let mut changed = before;
            status::set(
                &mut changed,
                condition("Progressing", "True", "FoundNewReplicaSet", &message, self.moment.now),
            );
            self.write(changed);
            return true;
        }
        if known.map(String::as_str) != Some(revision) {
            let revision = revision.to_owned();
            self.write_with(before, Some(&revision));
            return true;
        }
        false
    }

    fn roll(mut self) {
        if self.create_new() {
            return;
        }
        if !self.resize_new() {
            let steps = sizes::shrink_old(self.spec, &self.sets);
            let mut names: Vec<_> = steps.iter().map(|(name, ..)| name.clone()).collect();
            names.sort();
            names.dedup();
            for name in &names {
                let own: Vec<_> =
                    steps.iter().filter(|(other, ..)| other == name).map(|(_, from, to)| (*from, *to)).collect();
                self.scale(name, &own);
            }
            if names.is_empty() {
                self.forget_history_if_complete();
            }
        }
        self.tell_rollout();
    }

    /// One step towards the wanted size, as far as there is room. Whether there was a step to make.
    fn resize_new(&mut self) -> bool {
        let Some(new) = &self.sets.new else { return false };
        let (size, name) = (replicas(new), new.metadata.name.clone().unwrap_or_default());
        let target = match wanted(self.spec) {
            wanted if size >= wanted => wanted,
            _ => sizes::new_size(self.spec, &self.sets, size),
        };
        size != target && self.scale(&name, &[(size, target)])
    }

    fn recreate(mut self) {
        let old: Vec<_> = self.sets.old.iter().filter(|set| sets::is_active(set)).cloned().collect();
        for set in &old {
            self.scale(set.metadata.name.as_deref().unwrap_or_default(), &[(replicas(set), 0)]);
        }
        if !old.is_empty() || self.old_pods_run() {
            return self.tell_rollout();
        }
        if self.create_new() {
            return;
        }
        if let Some((name, size)) = self.sets.new.as_ref().map(|new| (new.metadata.name.clone(), replicas(new)))
            && size != wanted(self.spec)
        {
            self.scale(&name.unwrap_or_default(), &[(size, wanted(self.spec))]);
        }
        self.forget_history_if_complete();
        self.tell_rollout();
    }

    fn old_pods_run(&self) -> bool {
        self.sets.old.iter().any(|set| {
            let pods = self.view.pods.owned_by(set.metadata.uid.as_deref().unwrap_or_default());
            let mut running = pods.filter(|pod| !matches!(phase(pod), "Failed" | "Succeeded"));
            sizes::actual(set) > 0 || running.next().is_some()
        })
    }

    /// Makes the set for the template if there is none. Whether it did.
    fn create_new(&mut self) -> bool {
        if self.sets.new.is_some() {
            return false;
        }
        let set = sets::build(self.deployment, self.spec, &self.sets);
        let name = set.metadata.name.clone().unwrap_or_default();
        let mut changed = self.deployment.status.clone().unwrap_or_default();
        let now = self.moment.now;
        if let Some(refusal) = self.moment.refusal {
            if refusal.reason == "AlreadyExists" {
                changed.collision_count = Some(changed.collision_count.unwrap_or_default() + 1);
                self.write(changed);
                return true;
            }
            let message = format!("Failed to create new replica set {name:?}: {}", refusal.message);
            if status::deadline(self.spec).is_some() {
                status::set(&mut changed, condition("Progressing", "False", "ReplicaSetCreateError", &message, now));
                self.write(changed.clone());
            }
            self.plan.warning(self.deployment, "ReplicaSetCreateError", message);
            self.plan.create(&set);
            return true;
        }
        self.plan.create(&set);
        if replicas(&set) > 0 {
            let note = format!("Scaled up replica set {name} from 0 to {}", replicas(&set));
            self.plan.event(self.deployment, "ScalingReplicaSet", note);
        }
        if status::deadline(self.spec).is_some() {
            let message = format!("Created new replica set {name:?}");
            status::set(&mut changed, condition("Progressing", "True", "NewReplicaSetCreated", &message, now));
        }
        let revision = self.sets.next_revision().to_string();
        self.sets.new = Some(set);
        let told = Deployment { status: Some(changed), ..self.deployment.clone() };
        let (counted, _) = status::of_rollout(&told, self.spec, &self.sets, now);
        self.write_with(counted, Some(&revision));
        true
    }

    /// The Deployment has a new size: the sets take it in proportion.
    fn resize(&mut self) {
        if let Some(only) = sizes::only_active(&self.sets) {
            let (name, size) = (only.metadata.name.clone().unwrap_or_default(), replicas(only));
            if size != wanted(self.spec) {
                self.scale(&name, &[(size, wanted(self.spec))]);
            }
            return;
        }
        let sizes: Vec<(String, i32)> = if self.sets.new.as_ref().is_some_and(|new| sizes::is_saturated(self.spec, new))
        {
            self.sets.old.iter().filter_map(|set| Some((set.metadata.name.clone()?, 0))).collect()
        } else if sizes::is_rolling(self.spec) {
            let total = self.deployment.status.as_ref().and_then(|status| status.replicas).unwrap_or_default();
            sizes::proportional(self.spec, &self.sets, total)
        } else {
            Vec::new()
        };
        for (name, size) in sizes {
            let before = self.sets.all().find(|set| set.metadata.name.as_deref() == Some(&name)).map(replicas);
            self.scale(&name, &[(before.unwrap_or_default(), size)]);
        }
    }

    /// Gives a set its new size, by way of these sizes.
    fn scale(&mut self, name: &str, steps: &[(i32, i32)]) -> bool {
        let spec = self.spec;
        let mut all = self.sets.old.iter_mut().chain(&mut self.sets.new);
        let (Some(set), Some((_, size))) = (all.find(|set| set.metadata.name.as_deref() == Some(name)), steps.last())
        else {
            return false;
        };
        let before = set.clone();
        sets::resize(set, spec, *size);
        if *set == before {
            return false;
        }
        self.plan.update(set);
        for (from, to) in steps.iter().filter(|(from, to)| from != to) {
            let way = if from < to { "up" } else { "down" };
            let note = format!("Scaled {way} replica set {name} from {from} to {to}");
            self.plan.event(self.deployment, "ScalingReplicaSet", note);
        }
        true
    }

    fn forget_history_if_complete(&mut self) {
        let status = self.deployment.status.clone().unwrap_or_default();
        if status::is_complete(self.deployment, self.spec, &status) {
            self.forget_history();
        }
    }

    /// Deletes the oldest sets that nobody needs any more.
    fn forget_history(&mut self) {
        let limit = usize::try_from(self.spec.revision_history_limit.unwrap_or(10)).unwrap_or_default();
        let mut old: Vec<_> = self.sets.old.iter().filter(|set| set.metadata.deletion_timestamp.is_none()).collect();
        old.sort_by_key(|set| sets::revision(set));
        let surplus = old.len().saturating_sub(limit);
        for set in old.into_iter().take(surplus) {
            let observed = set.status.as_ref().and_then(|status| status.observed_generation);
            if sizes::actual(set) == 0 && replicas(set) == 0 && set.metadata.generation <= observed {
                self.plan.delete(set, Propagation::Background);
            }
        }
    }

    fn tell_counts(&mut self) {
        let status = status::count(self.deployment, self.spec, &self.sets, self.moment.now);
        self.write(status);
    }

    fn tell_rollout(&mut self) {
        let (status, again) = status::of_rollout(self.deployment, self.spec, &self.sets, self.moment.now);
        again.into_iter().for_each(|at| self.plan.again_at(at));
        self.write(status);
    }

    fn write(&mut self, status: DeploymentStatus) {
        self.write_with(status, None);
    }

    /// The revision is an annotation. It comes with the status, for a change of annotations alone would count as a
    /// change of what is wanted.
    fn write_with(&mut self, mut status: DeploymentStatus, revision: Option<&str>) {
        status.conditions = status.conditions.filter(|all| !all.is_empty());
        if self.deployment.status.as_ref() != Some(&status) || revision.is_some() {
            let mut deployment = Deployment { status: Some(status), ..self.deployment.clone() };
            if let Some(revision) = revision {
                let annotations = deployment.metadata.annotations.get_or_insert_default();
                annotations.insert(REVISION.to_owned(), revision.to_owned());
            }
            self.plan.status(&deployment);
        }
    }
}
