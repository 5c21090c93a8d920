// SPDX-License-Identifier: Apache-2.0
//! DaemonSets: one pod on every node that fits.

mod fit;
mod rollout;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        apps::v1::{ControllerRevision, DaemonSet, DaemonSetSpec, DaemonSetStatus},
        core::v1::{Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use crate::{
    controller::{Controller, Moment, Plan},
    kinds::{Object, View},
    labels,
    shelf::Key,
    workload::{
        REVISION_HASH, Revisions, available_at, claim, concerned, from_template, hash_of, is_available, is_ready,
        node_of, phase, some, whole,
    },
};

const GENERATION: &str = "deprecated.daemonset.template.generation";
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(15 * 60);

#[derive(Debug, Default)]
pub struct DaemonSets {
    /// Failed pods are replaced less and less often, by set and node: when the last one was, and how long to wait.
    pauses: BTreeMap<(Key, String), (Timestamp, Duration)>,
}

impl Controller for DaemonSets {
    fn name(&self) -> &'static str {
        "daemonset-controller"
    }

    fn concerns(&self, object: &Object, view: &View) -> Vec<Key> {
        match object {
            Object::DaemonSet(set) => vec![Key::of(&set.metadata)],
            Object::Pod(_) | Object::ControllerRevision(_) => {
                concerned(object.meta(), &view.daemon_sets, |set| Some(&set.spec.as_ref()?.selector))
            }
            Object::Node(_) => view.daemon_sets.iter().map(|set| Key::of(&set.metadata)).collect(),
            _ => Vec::new(),
        }
    }

    fn plan(&mut self, key: &Key, view: &View, moment: &Moment<'_>) -> Plan {
        let mut plan = Plan::default();
        let found = view.daemon_sets.get(key).and_then(|set| Some((set, set.spec.as_ref()?)));
        let Some((set, spec)) = found.filter(|(set, _)| set.metadata.deletion_timestamp.is_none()) else {
            self.pauses.retain(|(of, _), _| of != key);
            return plan;
        };
        let selected = |meta: &ObjectMeta| labels::selects(Some(&spec.selector), meta.labels.as_ref());
        let pods = claim(&mut plan, &**set, |one: &Pod| selected(&one.metadata), &view.pods, None);
        let history =
            claim(&mut plan, &**set, |one: &ControllerRevision| selected(&one.metadata), &view.revisions, None);
        if pods.changed || history.changed {
            return plan;
        }
        let history = Revisions::sort(history.objects);
        let collisions = set.status.as_ref().and_then(|status| status.collision_count);
        let Some(newest) = history.newest(&mut plan, &**set, &spec.template, collisions, REVISION_HASH) else {
            return plan;
        };
        let look = Look::new(set, spec, view, pods.objects, hash_of(&newest.metadata).to_owned(), moment);
        look.take(&mut plan, &mut self.pauses);
        let used = |one: &ControllerRevision| {
            let hash = hash_of(&one.metadata);
            hash == look.hash || look.on.values().flatten().any(|pod| hash_of(&pod.metadata) == hash)
        };
        history.prune(&mut plan, spec.revision_history_limit, used);
        plan
    }
}

/// One look at one set.
struct Look<'a> {
    set: &'a DaemonSet,
    spec: &'a DaemonSetSpec,
    nodes: Vec<&'a Arc<Node>>,
    /// By the name of the node, those that were there first come first.
    on: BTreeMap<String, Vec<Arc<Pod>>>,
    hash: String,
    moment: &'a Moment<'a>,
    /// What the pods are, with what they endure.
    wish: PodSpec,
}

impl<'a> Look<'a> {
    fn new(
        set: &'a DaemonSet,
        spec: &'a DaemonSetSpec,
        view: &'a View,
        pods: Vec<Arc<Pod>>,
        hash: String,
        moment: &'a Moment<'a>,
    ) -> Self {
        let mut on: BTreeMap<String, Vec<Arc<Pod>>> = BTreeMap::new();
        for pod in pods {
            let over = matches!(phase(&pod), "Failed" | "Succeeded") && pod.metadata.deletion_timestamp.is_some();
            if let (Some(node), false) = (target_of(&pod), over) {
                on.entry(node.to_owned()).or_default().push(pod);
            }
        }
        let first = |pod: &Arc<Pod>| {
            (node_of(pod).is_none(), pod.metadata.creation_timestamp.clone(), pod.metadata.name.clone())
        };
        on.values_mut().for_each(|pods| pods.sort_by_key(first));
        let mut wish = spec.template.spec.clone().unwrap_or_default();
        fit::endure(&mut wish);
        Self { set, spec, nodes: view.nodes.iter().collect(), on, hash, moment, wish }
    }

    fn take(&self, plan: &mut Plan, pauses: &mut BTreeMap<(Key, String), (Timestamp, Duration)>) {
        let (mut missing, mut surplus) = (Vec::new(), Vec::new());
        for node in &self.nodes {
            self.look_at(node, plan, pauses, &mut missing, &mut surplus);
        }
        let gone = |node: &str| self.nodes.iter().all(|one| one.metadata.name.as_deref() != Some(node));
        let lost = self.on.iter().filter(|(node, _)| gone(node)).flat_map(|(_, pods)| pods);
        surplus.extend(lost.filter(|pod| node_of(pod).is_none()).cloned());
        if missing.is_empty() && surplus.is_empty() {
            (missing, surplus) = rollout::step(self);
        }
        if let Some(refusal) = self.moment.refusal.filter(|_| !missing.is_empty()) {
            plan.warning(self.set, "FailedCreate", format!("Error creating: {}", refusal.message));
        }
        missing.iter().for_each(|node| plan.create_pod(&self.build(node), self.set));
        surplus.iter().for_each(|pod| plan.delete_pod(pod, self.set));
        let status = self.count();
        if self.set.status.as_ref() != Some(&status) {
            plan.status(&DaemonSet { status: Some(status), ..self.set.clone() });
        }
        let pods = self.on.values().flatten().filter_map(|pod| available_at(pod, self.min_ready()));
        pods.filter(|at| *at > self.moment.now).for_each(|at| plan.again_at(at));
    }

    fn min_ready(&self) -> i32 {
        self.spec.min_ready_seconds.unwrap_or_default()
    }

    fn is_available(&self, pod: &Pod) -> bool {
        is_available(pod, self.min_ready(), self.moment.now)
    }

    fn should_run(&self, node: &Node) -> (bool, bool) {
        fit::fit(&self.wish, node)
    }

    /// Whether a pod is of the newest template.
    fn is_updated(&self, pod: &Pod) -> bool {
        hash_of(&pod.metadata) == self.hash
    }

    fn look_at(
        &self,
        node: &Node,
        plan: &mut Plan,
        pauses: &mut BTreeMap<(Key, String), (Timestamp, Duration)>,
        missing: &mut Vec<String>,
        surplus: &mut Vec<Arc<Pod>>,
    ) {
        let name = node.metadata.name.clone().unwrap_or_default();
        let (should_run, may_stay) = self.should_run(node);
        let Some(pods) = self.on.get(&name) else {
            missing.extend(should_run.then_some(name));
            return;
        };
        if !may_stay {
            surplus.extend(pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).cloned());
            return;
        }
        let mut running = Vec::new();
        for pod in pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
            match phase(pod) {
                "Failed" => match self.pause(pauses, &name) {
                    Some(until) => plan.again_at(until),
                    None => {
                        plan.warning(self.set, "FailedDaemonPod", self.found("failed", pod, &name, "kill"));
                        surplus.push(pod.clone());
                    }
                },
                "Succeeded" => {
                    plan.event(self.set, "SucceededDaemonPod", self.found("succeeded", pod, &name, "delete"));
                    surplus.push(pod.clone());
                }
                _ => running.push(pod.clone()),
            }
        }
        if rollout::surge(self, 1) == 0 {
            surplus.extend(running.into_iter().skip(1));
        } else if running.is_empty() {
            missing.extend(should_run.then_some(name));
        } else {
            surplus.extend(rollout::beyond_surge(self, &running));
        }
    }

    fn found(&self, how: &str, pod: &Pod, node: &str, what: &str) -> String {
        let key = Key::of(&pod.metadata);
        format!("Found {how} daemon pod {key} on node {node}, will try to {what} it")
    }

    /// Until when a failed pod has to stay. If it may go, the next one has to stay longer.
    fn pause(&self, pauses: &mut BTreeMap<(Key, String), (Timestamp, Duration)>, node: &str) -> Option<Timestamp> {
        let now = self.moment.now;
        let place = (Key::of(&self.set.metadata), node.to_owned());
        if let Some((last, wait)) = pauses.get(&place) {
            let until = last.checked_add(*wait).unwrap_or(Timestamp::MAX);
            if until > now {
                return Some(until);
            }
        }
        let wait = pauses.get(&place).map_or(FIRST_PAUSE, |(_, wait)| wait.saturating_mul(2).min(LONGEST_PAUSE));
        pauses.insert(place, (now, wait));
        None
    }

    fn build(&self, node: &str) -> Pod {
        let mut pod = from_template(&self.spec.template, self.set);
        let labels = pod.metadata.labels.get_or_insert_default();
        let generation = self.set.metadata.annotations.as_ref().and_then(|all| all.get(GENERATION));
        labels.extend(generation.map(|generation| ("pod-template-generation".to_owned(), generation.clone())));
        labels.insert(REVISION_HASH.to_owned(), self.hash.clone());
        let mut spec = self.wish.clone();
        let affinity = spec.affinity.get_or_insert_default().node_affinity.get_or_insert_default();
        affinity.required_during_scheduling_ignored_during_execution = Some(NodeSelector {
            node_selector_terms: vec![NodeSelectorTerm {
                match_fields: Some(vec![NodeSelectorRequirement {
                    key: "metadata.name".to_owned(),
                    operator: "In".to_owned(),
                    values: Some(vec![node.to_owned()]),
                }]),
                match_expressions: None,
            }],
        });
        pod.spec = Some(spec);
        pod
    }

    fn count(&self) -> DaemonSetStatus {
        let mut status = DaemonSetStatus {
            observed_generation: self.set.metadata.generation,
            collision_count: self.set.status.as_ref().and_then(|status| status.collision_count),
            conditions: self.set.status.as_ref().and_then(|status| status.conditions.clone()),
            ..DaemonSetStatus::default()
        };
        let (mut updated, mut available) = (0, 0);
        for node in &self.nodes {
            let first = self.on.get(node.metadata.name.as_deref().unwrap_or_default()).and_then(|pods| pods.first());
            match (self.should_run(node).0, first) {
                (true, None) => status.desired_number_scheduled += 1,
                (true, Some(pod)) => {
                    status.desired_number_scheduled += 1;
                    status.current_number_scheduled += 1;
                    status.number_ready += i32::from(is_ready(pod));
                    available += i32::from(self.is_available(pod));
                    updated += i32::from(self.is_updated(pod));
                }
                (false, first) => status.number_misscheduled += i32::from(first.is_some()),
            }
        }
        status.updated_number_scheduled = some(updated);
        status.number_available = some(available);
        status.number_unavailable = some(status.desired_number_scheduled - available);
        status
    }

    /// How many nodes want a pod.
    fn wanted(&self) -> i32 {
        whole(self.nodes.iter().filter(|node| self.should_run(node).0).count())
    }
}

/// The node that a pod is for: before it is bound, only the affinity tells.
fn target_of(pod: &Pod) -> Option<&str> {
    node_of(pod).or_else(|| {
        let affinity = pod.spec.as_ref()?.affinity.as_ref()?.node_affinity.as_ref()?;
        let required = affinity.required_during_scheduling_ignored_during_execution.as_ref()?;
        let mut fields = required.node_selector_terms.iter().flat_map(|term| term.match_fields.iter().flatten());
        let named = fields.find(|one| one.key == "metadata.name" && one.operator == "In")?;
        named.values.as_ref()?.first().map(String::as_str)
    })
}
