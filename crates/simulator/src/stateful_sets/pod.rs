// SPDX-License-Identifier: Apache-2.0
//! The pods of a StatefulSet and their volume claims: each has a name and keeps it.

use k8s_openapi::{
    api::{
        apps::v1::{ControllerRevision, StatefulSet, StatefulSetSpec},
        core::v1::{PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, Volume},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use crate::workload::{REVISION_HASH, from_template, name_of, template_of};

const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
const ORDINAL: &str = "apps.kubernetes.io/pod-index";

fn name(set: &StatefulSet) -> &str {
    set.metadata.name.as_deref().unwrap_or_default()
}

/// The ordinal of a pod that has a name of this set.
pub fn ordinal(set: &StatefulSet, pod: &Pod) -> Option<i32> {
    let rest = pod.metadata.name.as_deref()?.strip_prefix(name(set))?.strip_prefix('-')?;
    rest.parse().ok().filter(|ordinal: &i32| ordinal.to_string() == rest)
}

pub fn build(set: &StatefulSet, spec: &StatefulSetSpec, revision: &ControllerRevision, ordinal: i32) -> Pod {
    let template = template_of(revision).unwrap_or_else(|| spec.template.clone());
    let mut pod = from_template(&template, set);
    let own = format!("{}-{ordinal}", name(set));
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(POD_NAME.to_owned(), own.clone());
    labels.insert(ORDINAL.to_owned(), ordinal.to_string());
    labels.insert(REVISION_HASH.to_owned(), name_of(revision).to_owned());
    if let Some(spec_of_pod) = pod.spec.as_mut() {
        spec_of_pod.hostname = Some(own.clone());
        spec_of_pod.subdomain = spec.service_name.clone().filter(|name| !name.is_empty());
        let claimed = claims(set, spec, ordinal).into_iter().map(|(volume, claim)| Volume {
            name: volume,
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: claim.metadata.name.unwrap_or_default(),
                read_only: None,
            }),
            ..Volume::default()
        });
        let claimed: Vec<_> = claimed.collect();
        let others = spec_of_pod.volumes.take().unwrap_or_default();
        let others = others.into_iter().filter(|volume| claimed.iter().all(|one| one.name != volume.name));
        let all: Vec<_> = claimed.iter().cloned().chain(others).collect();
        spec_of_pod.volumes = Some(all).filter(|all| !all.is_empty());
    }
    pod.metadata.name = Some(own);
    pod
}

/// The claims of one ordinal, by the names of their volumes.
pub fn claims(set: &StatefulSet, spec: &StatefulSetSpec, ordinal: i32) -> Vec<(String, PersistentVolumeClaim)> {
    let templates = spec.volume_claim_templates.iter().flatten();
    templates
        .map(|template| {
            let volume = template.metadata.name.clone().unwrap_or_default();
            let mut labels = template.metadata.labels.clone().unwrap_or_default();
            labels.extend(spec.selector.match_labels.clone().unwrap_or_default());
            let metadata = ObjectMeta {
                name: Some(format!("{volume}-{}-{ordinal}", name(set))),
                namespace: set.metadata.namespace.clone(),
                labels: Some(labels).filter(|labels| !labels.is_empty()),
                ..template.metadata.clone()
            };
            (volume, PersistentVolumeClaim { metadata, ..template.clone() })
        })
        .collect()
}
