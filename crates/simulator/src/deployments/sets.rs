// SPDX-License-Identifier: Apache-2.0
//! The ReplicaSets of a Deployment: which is the new one, and how it is made.

use std::sync::Arc;

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec, ReplicaSet, ReplicaSetSpec},
        core::v1::PodTemplateSpec,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use super::sizes::{self, replicas};
use crate::workload::{of_template, owned};

pub const HASH: &str = "pod-template-hash";
pub const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
pub const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
pub const MOST: &str = "deployment.kubernetes.io/max-replicas";
/// What belongs to one object alone is not copied to its ReplicaSets.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MOST,
    "deprecated.deployment.rollback.to",
];

/// The sets of a Deployment, each by itself so that it can be changed.
#[derive(Clone, Debug, Default)]
pub struct Sets {
    pub new: Option<ReplicaSet>,
    pub old: Vec<ReplicaSet>,
}

impl Sets {
    pub fn sort(spec: &DeploymentSpec, mut all: Vec<Arc<ReplicaSet>>) -> Self {
        all.sort_by_key(|set| (set.metadata.creation_timestamp.clone(), set.metadata.name.clone()));
        let new = all.iter().position(|set| has_template(set, &spec.template));
        let mut sets = Self::default();
        for (at, set) in all.into_iter().enumerate() {
            let set = ReplicaSet::clone(&set);
            if Some(at) == new { sets.new = Some(set) } else { sets.old.push(set) }
        }
        sets
    }

    pub fn all(&self) -> impl Iterator<Item = &ReplicaSet> {
        self.old.iter().chain(&self.new)
    }

    /// The number of the next revision.
    pub fn next_revision(&self) -> i64 {
        self.old.iter().map(revision).max().unwrap_or_default() + 1
    }
}

pub fn annotation<'a>(set: &'a ReplicaSet, name: &str) -> Option<&'a str> {
    set.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

pub fn revision(set: &ReplicaSet) -> i64 {
    annotation(set, REVISION).and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn has_template(set: &ReplicaSet, template: &PodTemplateSpec) -> bool {
    let plain = |template: &PodTemplateSpec| {
        let mut template = template.clone();
        let meta = template.metadata.get_or_insert_default();
        meta.labels.get_or_insert_default().remove(HASH);
        template
    };
    set.spec.as_ref().and_then(|spec| spec.template.as_ref()).is_some_and(|found| plain(found) == plain(template))
}

/// The set for a template that has none yet.
pub fn build(deployment: &Deployment, spec: &DeploymentSpec, sets: &Sets) -> ReplicaSet {
    let collisions = deployment.status.as_ref().and_then(|status| status.collision_count);
    let hash = of_template(&spec.template, collisions);
    let mut template = spec.template.clone();
    let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
    labels.insert(HASH.to_owned(), hash.clone());
    let labels = labels.clone();
    let mut selector = spec.selector.clone();
    selector.match_labels.get_or_insert_default().insert(HASH.to_owned(), hash.clone());
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    let mut set = ReplicaSet {
        metadata: ObjectMeta {
            name: Some(format!("{name}-{hash}")),
            namespace: deployment.metadata.namespace.clone(),
            labels: Some(labels),
            owner_references: Some(vec![owned(deployment)]),
            ..ObjectMeta::default()
        },
        spec: Some(ReplicaSetSpec {
            replicas: Some(0),
            min_ready_seconds: spec.min_ready_seconds,
            selector,
            template: Some(template),
        }),
        status: None,
    };
    let size = sizes::new_size(spec, sets, 0);
    resize(&mut set, spec, size);
    annotate(&mut set, deployment, sets.next_revision());
    set
}

/// Sets the size, and what it was decided by.
pub fn resize(set: &mut ReplicaSet, spec: &DeploymentSpec, size: i32) {
    if let Some(own) = set.spec.as_mut() {
        own.replicas = Some(size);
    }
    let wanted = sizes::wanted(spec);
    let annotations = set.metadata.annotations.get_or_insert_default();
    annotations.insert(DESIRED.to_owned(), wanted.to_string());
    annotations.insert(MOST.to_owned(), (wanted + sizes::surge(spec)).to_string());
}

/// Copies the Deployment's annotations and counts the revision up. A set that comes back remembers the revisions it was.
pub fn annotate(set: &mut ReplicaSet, deployment: &Deployment, next: i64) {
    let before = annotation(set, REVISION).map(ToOwned::to_owned);
    let annotations = set.metadata.annotations.get_or_insert_default();
    for (name, value) in deployment.metadata.annotations.iter().flatten() {
        if !NOT_COPIED.contains(&name.as_str()) {
            annotations.insert(name.clone(), value.clone());
        }
    }
    let number = before.as_deref().and_then(|text| text.parse::<i64>().ok()).unwrap_or_default();
    if number < next {
        annotations.insert(REVISION.to_owned(), next.to_string());
        if let Some(before) = before {
            let history = annotations.get(HISTORY).filter(|text| !text.is_empty());
            let history = history.map_or_else(|| before.clone(), |history| format!("{history},{before}"));
            annotations.insert(HISTORY.to_owned(), history);
        }
    }
}

/// Only those that have pods, or ought to.
pub fn is_active(set: &ReplicaSet) -> bool {
    replicas(set) > 0
}
