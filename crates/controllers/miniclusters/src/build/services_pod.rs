// SPDX-License-Identifier: Apache-2.0

use k8s_openapi::api::core::v1::{Pod, PodSpec};

use super::{JOB_INDEX, TEMPLATE_ANNOTATION, container, pod, volume};
use crate::cluster::Cluster;
use bivouac_core::names;

/// One pod with all services of the cluster. It has the Job's name as a label, so that the headless Service names it.
pub fn services_pod(cluster: &Cluster<'_>) -> Pod {
    let name = cluster.services_name();
    let mut labels = pod::labels(cluster);
    labels.insert("job-name".to_owned(), cluster.name.clone());
    labels.insert(JOB_INDEX.to_owned(), "services".to_owned());
    let wish = &cluster.pod;
    let spec = PodSpec {
        containers: cluster.spec.services.iter().map(container::service).collect(),
        volumes: Some(volume::of_containers(&cluster.spec.services)),
        hostname: Some(name.clone()),
        subdomain: Some(cluster.headless_name.clone()),
        // Services have no Job that would make them anew.
        restart_policy: Some(
            if wish.restart_policy.is_empty() { "OnFailure" } else { &wish.restart_policy }.to_owned(),
        ),
        service_account_name: (!wish.service_account_name.is_empty()).then(|| wish.service_account_name.clone()),
        automount_service_account_token: Some(wish.automount_service_account_token),
        node_selector: (!wish.node_selector.is_empty()).then(|| wish.node_selector.clone()),
        image_pull_secrets: pod::pull_secrets(pod::secrets(&cluster.spec.services)),
        ..PodSpec::default()
    };
    let text = serde_json::to_string(&spec).unwrap_or_default();
    let mut metadata = cluster.meta(&name, &labels);
    metadata.annotations = Some([(TEMPLATE_ANNOTATION.to_owned(), names::hash(&[&text], 16))].into());
    Pod { metadata, spec: Some(spec), ..Pod::default() }
}
