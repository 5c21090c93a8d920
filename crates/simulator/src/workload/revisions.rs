// SPDX-License-Identifier: Apache-2.0
//! The history of templates that StatefulSets and DaemonSets keep as objects.

use std::sync::Arc;

use k8s_openapi::{
    Metadata,
    api::{apps::v1::ControllerRevision, core::v1::PodTemplateSpec},
    apimachinery::pkg::{apis::meta::v1::ObjectMeta, runtime::RawExtension},
};
use serde_json::{Value, json};

use super::{claim::owned, hash::of_template};
use crate::{controller::Plan, request::Propagation};

/// Of a pod: the template it was made of.
pub const REVISION_HASH: &str = "controller-revision-hash";

/// The revisions of one owner, the newest last.
#[derive(Debug)]
pub struct Revisions(pub Vec<Arc<ControllerRevision>>);

/// What a revision records: the whole template, as a patch that puts it back.
fn data(template: &PodTemplateSpec) -> Value {
    let mut template = serde_json::to_value(template).unwrap_or_default();
    if let Some(fields) = template.as_object_mut() {
        fields.insert("$patch".to_owned(), json!("replace"));
    }
    json!({ "spec": { "template": template } })
}

/// The template that a revision records.
pub fn template_of(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let mut template = revision.data.as_ref()?.0.pointer("/spec/template")?.clone();
    template.as_object_mut()?.remove("$patch");
    serde_json::from_value(template).ok()
}

pub fn name_of(revision: &ControllerRevision) -> &str {
    revision.metadata.name.as_deref().unwrap_or_default()
}

pub fn hash_of(meta: &ObjectMeta) -> &str {
    meta.labels.as_ref().and_then(|labels| labels.get(REVISION_HASH)).map(String::as_str).unwrap_or_default()
}

impl Revisions {
    pub fn sort(mut all: Vec<Arc<ControllerRevision>>) -> Self {
        all.sort_by_key(|one| (one.revision, one.metadata.creation_timestamp.clone(), one.metadata.name.clone()));
        Self(all)
    }

    /// The newest revision, if it has this template. Else one is planned: a new one, or an old one that comes back. It
    /// has its hash in a label.
    pub fn newest<O: Metadata<Ty = ObjectMeta>>(
        &self,
        plan: &mut Plan,
        owner: &O,
        template: &PodTemplateSpec,
        collisions: Option<i32>,
        label: &str,
    ) -> Option<Arc<ControllerRevision>> {
        let data = data(template);
        let same = self.0.iter().rfind(|one| one.data.as_ref().is_some_and(|found| found.0 == data));
        let next = self.0.last().map_or(1, |last| last.revision + 1);
        match same {
            Some(same) if same.revision + 1 == next => return Some(same.clone()),
            Some(same) => plan.update(&ControllerRevision { revision: next, ..ControllerRevision::clone(same) }),
            None => {
                let hash = of_template(&data, collisions);
                plan.create(&build(owner, template, data, next, (label, &hash)));
            }
        }
        None
    }

    /// Deletes the oldest that nobody uses, beyond so many.
    pub fn prune(&self, plan: &mut Plan, limit: Option<i32>, used: impl Fn(&ControllerRevision) -> bool) {
        let limit = usize::try_from(limit.unwrap_or(10)).unwrap_or_default();
        let unused: Vec<_> = self.0.iter().filter(|one| !used(one)).collect();
        for revision in unused.iter().take(unused.len().saturating_sub(limit)) {
            plan.delete(&***revision, Propagation::Background);
        }
    }
}

fn build<O: Metadata<Ty = ObjectMeta>>(
    owner: &O,
    template: &PodTemplateSpec,
    data: Value,
    revision: i64,
    (label, hash): (&str, &str),
) -> ControllerRevision {
    let meta = owner.metadata();
    let mut labels = template.metadata.as_ref().and_then(|meta| meta.labels.clone()).unwrap_or_default();
    labels.insert(label.to_owned(), hash.to_owned());
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(format!("{}-{hash}", meta.name.as_deref().unwrap_or_default())),
            namespace: meta.namespace.clone(),
            labels: Some(labels),
            annotations: meta.annotations.clone(),
            owner_references: Some(vec![owned(owner)]),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(data)),
        revision,
    }
}
