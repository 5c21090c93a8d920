// SPDX-License-Identifier: Apache-2.0
//! StatefulSets: pods with names of their own, one after the other.

mod pod;
mod retention;

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{ControllerRevision, StatefulSet, StatefulSetSpec, StatefulSetStatus},
    core::v1::Pod,
};

use crate::{
    controller::{Controller, Moment, Plan},
    kinds::{Object, View},
    labels,
    request::Propagation,
    shelf::Key,
    workload::{
        Revisions, available_at, claim, concerned, controller_of, hash_of, is_available, is_ready, name_of, phase,
        some, whole,
    },
};

/// Of a revision.
const HASH: &str = "controller.kubernetes.io/hash";

#[derive(Debug)]
pub struct StatefulSets;

impl Controller for StatefulSets {
    fn name(&self) -> &'static str {
        "statefulset-controller"
    }

    fn concerns(&self, object: &Object, view: &View) -> Vec<Key> {
        match object {
            Object::StatefulSet(set) => vec![Key::of(&set.metadata)],
            Object::Pod(_) | Object::ControllerRevision(_) => {
                concerned(object.meta(), &view.stateful_sets, |set| Some(&set.spec.as_ref()?.selector))
            }
            Object::PersistentVolumeClaim(claim) => {
                let owner = controller_of(&claim.metadata).filter(|owner| owner.kind == "StatefulSet");
                let namespace = claim.metadata.namespace.as_deref().unwrap_or_default();
                owner.map(|owner| Key::new(namespace, &owner.name)).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn plan(&mut self, key: &Key, view: &View, moment: &Moment<'_>) -> Plan {
        let mut plan = Plan::default();
        let Some((set, spec)) = view.stateful_sets.get(key).and_then(|set| Some((set, set.spec.as_ref()?))) else {
            return plan;
        };
        let selected = |meta: &_| labels::selects(Some(&spec.selector), labels_of(meta));
        let pods = claim(
            &mut plan,
            &**set,
            |one: &Pod| selected(&one.metadata) && pod::ordinal(set, one).is_some(),
            &view.pods,
            None,
        );
        let history =
            claim(&mut plan, &**set, |one: &ControllerRevision| selected(&one.metadata), &view.revisions, None);
        if pods.changed || history.changed {
            return plan;
        }
        let history = Revisions::sort(history.objects);
        let before = set.status.clone().unwrap_or_default();
        let collisions = Some(before.collision_count.unwrap_or_default());
        let update = history.newest(&mut plan, &**set, &spec.template, collisions, HASH);
        let Some(update) = update else { return plan };
        let current = history.0.iter().find(|one| before.current_revision.as_deref() == Some(name_of(one)));
        let current = current.cloned().unwrap_or_else(|| update.clone());
        let look = Look { set, spec, view, now: moment.now, moment, pods: pods.objects, current, update };
        look.take(&mut plan);
        let used = |one: &ControllerRevision| {
            let name = name_of(one);
            [name_of(&look.current), name_of(&look.update)].contains(&name)
                || look.pods.iter().any(|pod| hash_of(&pod.metadata) == name)
        };
        history.prune(&mut plan, spec.revision_history_limit, used);
        plan
    }
}

fn labels_of(meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> Option<&labels::Labels> {
    meta.labels.as_ref()
}

/// One look at one set.
struct Look<'a> {
    set: &'a StatefulSet,
    spec: &'a StatefulSetSpec,
    view: &'a View,
    now: Timestamp,
    moment: &'a Moment<'a>,
    pods: Vec<Arc<Pod>>,
    current: Arc<ControllerRevision>,
    update: Arc<ControllerRevision>,
}

impl Look<'_> {
    fn take(&self, plan: &mut Plan) {
        let mut status = self.count();
        if self.set.metadata.deletion_timestamp.is_none() && !self.fix_members(plan) {
            self.roll(plan, &mut status);
        }
        self.write(plan, status);
        let later = self.pods.iter().filter_map(|pod| available_at(pod, self.min_ready()));
        later.filter(|at| *at > self.now).for_each(|at| plan.again_at(at));
    }

    fn min_ready(&self) -> i32 {
        self.spec.min_ready_seconds.unwrap_or_default()
    }

    fn start(&self) -> i32 {
        self.spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).unwrap_or_default()
    }

    fn wanted(&self) -> i32 {
        self.spec.replicas.unwrap_or(1)
    }

    fn is_member(&self, ordinal: i32) -> bool {
        (self.start()..self.start() + self.wanted()).contains(&ordinal)
    }

    fn partition(&self) -> Option<i32> {
        let rolling = self.spec.update_strategy.as_ref()?.rolling_update.as_ref()?;
        Some(rolling.partition.unwrap_or_default())
    }

    fn is_rolling(&self) -> bool {
        self.spec.update_strategy.as_ref().and_then(|strategy| strategy.type_.as_deref()) != Some("OnDelete")
    }

    /// Ready in the sense of a set: also running, and for long enough.
    fn is_up(&self, pod: &Pod) -> bool {
        phase(pod) == "Running" && is_ready(pod) && is_available(pod, self.min_ready(), self.now)
    }

    fn is_unavailable(&self, pod: &Pod) -> bool {
        !is_available(pod, self.min_ready(), self.now) || pod.metadata.deletion_timestamp.is_some()
    }

    /// Creates what is missing and deletes what is too much. Whether it must be waited for.
    fn fix_members(&self, plan: &mut Plan) -> bool {
        let ordered = self.spec.pod_management_policy.as_deref() != Some("Parallel");
        let by_ordinal: BTreeMap<i32, &Arc<Pod>> =
            self.pods.iter().filter_map(|pod| Some((pod::ordinal(self.set, pod)?, pod))).collect();
        for ordinal in self.start()..self.start() + self.wanted() {
            let stop = match by_ordinal.get(&ordinal) {
                None => self.create(plan, ordinal),
                Some(pod) => self.keep(plan, pod, ordinal),
            };
            if stop && ordered {
                return true;
            }
        }
        let surplus: Vec<_> = by_ordinal.iter().rev().filter(|(ordinal, _)| !self.is_member(**ordinal)).collect();
        for (ordinal, pod) in &surplus {
            self.fix_claims(plan, **ordinal, Some(pod));
        }
        // One that is not available may go even though others must wait for it.
        let members = by_ordinal.iter().filter(|(ordinal, _)| self.is_member(**ordinal));
        let first_down = members.chain(surplus.iter().rev().copied()).find(|(_, pod)| self.is_unavailable(pod));
        for (ordinal, pod) in surplus {
            let going = pod.metadata.deletion_timestamp.is_some();
            let blocked = !self.is_up(pod) && first_down.map(|(first, _)| first) != Some(ordinal);
            if !going && (!ordered || !blocked) {
                self.delete(plan, pod);
            }
            if ordered {
                return true;
            }
        }
        false
    }

    /// Creates the pod of an ordinal and the claims that it needs.
    fn create(&self, plan: &mut Plan, ordinal: i32) -> bool {
        let started = self.start();
        let old = self.is_rolling()
            && match self.partition() {
                Some(partition) => ordinal < started + partition,
                None => {
                    ordinal
                        < started + self.set.status.as_ref().and_then(|one| one.current_replicas).unwrap_or_default()
                }
            };
        let pod = pod::build(self.set, self.spec, if old { &self.current } else { &self.update }, ordinal);
        let (own, set) = (pod.metadata.name.as_deref().unwrap_or_default(), self.name());
        if let Some(refusal) = self.moment.refusal {
            let note = format!("Create Pod {own} in StatefulSet {set} failed error: {}", refusal.message);
            plan.warning(self.set, "FailedCreate", note);
        }
        self.create_claims(plan, ordinal, own);
        plan.create(&pod);
        plan.event(self.set, "SuccessfulCreate", format!("Create Pod {own} in StatefulSet {set} successful"));
        true
    }

    fn name(&self) -> &str {
        self.set.metadata.name.as_deref().unwrap_or_default()
    }

    fn create_claims(&self, plan: &mut Plan, ordinal: i32, pod: &str) {
        for (_, mut claim) in pod::claims(self.set, self.spec, ordinal) {
            let key = Key::of(&claim.metadata);
            if self.view.volume_claims.get(&key).is_none() {
                claim.metadata.owner_references = retention::owners(self.set, self.spec, None, true);
                plan.create(&claim);
                let note = format!("Create Claim {} Pod {pod} in StatefulSet {} success", key.name, self.name());
                plan.event(self.set, "SuccessfulCreate", note);
            }
        }
    }

    /// Brings the owners of the claims in line with how long they should be kept.
    fn fix_claims(&self, plan: &mut Plan, ordinal: i32, pod: Option<&Pod>) {
        for (_, claim) in pod::claims(self.set, self.spec, ordinal) {
            if let Some(found) = self.view.volume_claims.get(&Key::of(&claim.metadata)) {
                retention::fix(plan, self.set, self.spec, pod, self.is_member(ordinal), found);
            }
        }
    }

    /// A pod that should be there. Whether the next one has to wait for it.
    fn keep(&self, plan: &mut Plan, pod: &Pod, ordinal: i32) -> bool {
        if matches!(phase(pod), "Failed" | "Succeeded") {
            if pod.metadata.deletion_timestamp.is_none() {
                self.delete(plan, pod);
            }
            return true;
        }
        if phase(pod) == "Pending" {
            self.create_claims(plan, ordinal, pod.metadata.name.as_deref().unwrap_or_default());
        }
        if pod.metadata.deletion_timestamp.is_some() || !self.is_up(pod) {
            return true;
        }
        self.fix_claims(plan, ordinal, Some(pod));
        false
    }

    fn delete(&self, plan: &mut Plan, pod: &Pod) {
        plan.delete(pod, Propagation::Background);
        let (own, set) = (pod.metadata.name.as_deref().unwrap_or_default(), self.name());
        plan.event(self.set, "SuccessfulDelete", format!("Delete Pod {own} in StatefulSet {set} successful"));
    }

    /// Deletes one pod of an old template, the highest ordinal first.
    fn roll(&self, plan: &mut Plan, status: &mut StatefulSetStatus) {
        if !self.is_rolling() {
            return;
        }
        let lowest = self.start() + self.partition().unwrap_or_default();
        for ordinal in (lowest..self.start() + self.wanted()).rev() {
            let pod = self.pods.iter().find(|pod| pod::ordinal(self.set, pod) == Some(ordinal));
            // One that was only just created is not yet available.
            let Some(pod) = pod else { return };
            let going = pod.metadata.deletion_timestamp.is_some();
            if hash_of(&pod.metadata) != name_of(&self.update) && !going {
                self.delete(plan, pod);
                status.current_replicas = status.current_replicas.and_then(|count| some(count - 1));
                return;
            }
            if self.is_unavailable(pod) {
                return;
            }
        }
    }

    fn count(&self) -> StatefulSetStatus {
        let count = |fits: &dyn Fn(&Pod) -> bool| whole(self.pods.iter().filter(|pod| fits(pod)).count());
        let up = |pod: &Pod| phase(pod) == "Running" && is_ready(pod);
        let of = |revision: &ControllerRevision| {
            let name = name_of(revision).to_owned();
            count(&|pod| pod.metadata.deletion_timestamp.is_none() && hash_of(&pod.metadata) == name)
        };
        let before = self.set.status.clone().unwrap_or_default();
        StatefulSetStatus {
            observed_generation: self.set.metadata.generation,
            replicas: whole(self.pods.len()),
            ready_replicas: some(count(&up)),
            available_replicas: Some(count(&|pod| up(pod) && is_available(pod, self.min_ready(), self.now))),
            current_replicas: some(of(&self.current)),
            updated_replicas: some(of(&self.update)),
            current_revision: Some(name_of(&self.current).to_owned()),
            update_revision: Some(name_of(&self.update).to_owned()),
            collision_count: Some(before.collision_count.unwrap_or_default()),
            conditions: before.conditions,
        }
    }

    /// When all pods are of the new template, it is the current one.
    fn write(&self, plan: &mut Plan, mut status: StatefulSetStatus) {
        let all = |count: Option<i32>| count.unwrap_or_default() == self.wanted();
        if self.is_rolling()
            && all(status.updated_replicas)
            && all(status.ready_replicas)
            && status.replicas == self.wanted()
        {
            status.current_replicas = status.updated_replicas;
            status.current_revision = status.update_revision.clone();
        }
        if self.set.status.as_ref() != Some(&status) {
            plan.status(&StatefulSet { status: Some(status), ..self.set.clone() });
        }
    }
}
