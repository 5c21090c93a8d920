// SPDX-License-Identifier: Apache-2.0
//! The pods that a Job makes.

use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod},
};

use super::{
    facts::{Facts, INDEX, INDEX_FAILURES, INDEX_IGNORED, TRACKING, failures_before},
    policy::Failure,
};
use crate::workload::{from_template, generate_name};

const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";

pub fn build(facts: &Facts<'_>, job: &Job, index: Option<i32>) -> Pod {
    let mut pod = from_template(&facts.spec.template, job);
    let finalizers = pod.metadata.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|one| one == TRACKING) {
        finalizers.push(TRACKING.to_owned());
    }
    if let Some(index) = index {
        give_index(facts, job, &mut pod, index);
    }
    pod
}

fn give_index(facts: &Facts<'_>, job: &Job, pod: &mut Pod, index: i32) {
    let name = job.metadata.name.as_deref().unwrap_or_default();
    pod.metadata.generate_name = Some(generate_name(name, &format!("-{index}-")));
    pod.metadata.labels.get_or_insert_default().insert(INDEX.to_owned(), index.to_string());
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(INDEX.to_owned(), index.to_string());
    let before = facts.indexes.as_ref().filter(|indexes| indexes.failed.is_some());
    if let Some(indexes) = before {
        let (failures, ignored) = indexes.to_replace.get(&index).map_or((0, 0), |replaced| {
            let (failures, ignored) = failures_before(replaced);
            if facts.judge(replaced) == Failure::Ignored { (failures, ignored + 1) } else { (failures + 1, ignored) }
        });
        annotations.insert(INDEX_FAILURES.to_owned(), failures.to_string());
        if ignored > 0 {
            annotations.insert(INDEX_IGNORED.to_owned(), ignored.to_string());
        }
    }
    let Some(spec) = pod.spec.as_mut() else { return };
    spec.hostname = Some(format!("{name}-{index}"));
    spec.init_containers.iter_mut().flatten().chain(&mut spec.containers).for_each(tell_index);
}

fn tell_index(container: &mut Container) {
    let variables = container.env.get_or_insert_default();
    if variables.iter().all(|variable| variable.name != INDEX_VARIABLE) {
        variables.push(EnvVar {
            name: INDEX_VARIABLE.to_owned(),
            value_from: Some(EnvVarSource {
                field_ref: Some(ObjectFieldSelector {
                    field_path: format!("metadata.labels['{INDEX}']"),
                    ..ObjectFieldSelector::default()
                }),
                ..EnvVarSource::default()
            }),
            ..EnvVar::default()
        });
    }
}
