// SPDX-License-Identifier: Apache-2.0

use std::collections::{BTreeMap, BTreeSet};

use bivouac_api::flux;
use k8s_openapi::{
    api::core::v1::{
        Affinity, LocalObjectReference, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
        PodAffinity, PodAffinityTerm, PodAntiAffinity, PodSpec, PodTemplateSpec, ResourceRequirements,
        WeightedPodAffinityTerm,
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
};

use super::{container, volume};
use crate::cluster::Cluster;

/// A label of all pods of all MiniClusters.
pub const APP: (&str, &str) = ("app", "flux-operator");
/// The rank of a pod as users' Services select it; `services` for the pod beside them.
pub const JOB_INDEX: &str = "job-index";

/// The pods of the Job: one broker in each.
pub fn pod_template(cluster: &Cluster<'_>) -> PodTemplateSpec {
    let mut labels = labels(cluster);
    labels.insert("hpa-selector".to_owned(), cluster.name.clone());
    let annotations = &cluster.pod.annotations;
    PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels),
            annotations: (!annotations.is_empty()).then(|| annotations.clone()),
            ..ObjectMeta::default()
        }),
        spec: Some(spec(cluster)),
    }
}

/// Labels of all pods of the cluster. Ours win over the user's: Services and autoscalers lean on them.
pub fn labels(cluster: &Cluster<'_>) -> BTreeMap<String, String> {
    let mut labels = cluster.pod.labels.clone();
    let ours = [APP, ("app.kubernetes.io/name", &cluster.name), ("namespace", &cluster.namespace)];
    labels.extend(ours.map(|(key, value)| (key.to_owned(), value.to_owned())));
    labels
}

fn spec(cluster: &Cluster<'_>) -> PodSpec {
    let pod = &cluster.pod;
    let some = |text: &String| (!text.is_empty()).then(|| text.clone());
    let mut containers: Vec<_> = cluster.sidecars.iter().map(|one| container::sidecar(cluster, *one)).collect();
    containers.insert(cluster.runner.index.min(containers.len()), container::runner(cluster));
    // Only a runtime class has overhead; else the user means what the pod needs as a whole.
    let (overhead, resources) = match () {
        () if pod.resources.is_empty() => (None, None),
        () if !pod.runtime_class_name.is_empty() => (Some(pod.resources.clone()), None),
        () => {
            let requests = Some(pod.resources.clone());
            (None, Some(ResourceRequirements { requests, ..ResourceRequirements::default() }))
        }
    };
    let view = std::iter::once(&cluster.view.image_pull_secret);
    PodSpec {
        init_containers: Some(vec![container::init(cluster)]),
        containers,
        volumes: Some(volume::of_pod(cluster)),
        subdomain: Some(cluster.headless_name.clone()),
        set_hostname_as_fqdn: Some(false),
        restart_policy: Some(restart_policy(cluster)),
        service_account_name: some(&pod.service_account_name),
        automount_service_account_token: Some(pod.automount_service_account_token),
        runtime_class_name: some(&pod.runtime_class_name),
        scheduler_name: some(&pod.scheduler_name),
        node_selector: (!pod.node_selector.is_empty()).then(|| pod.node_selector.clone()),
        tolerations: (!pod.tolerations.is_empty()).then(|| pod.tolerations.clone()),
        affinity: affinity(cluster),
        dns_policy: some(&pod.dns_policy),
        host_ipc: pod.host_ipc.then_some(true),
        host_pid: pod.host_pid.then_some(true),
        share_process_namespace: cluster.spec.share_process_namespace.then_some(true),
        security_context: pod.security_context.clone(),
        image_pull_secrets: pull_secrets(view.chain(secrets(&cluster.spec.containers))),
        overhead,
        resources,
        ..PodSpec::default()
    }
}

/// Without a wish, pods are not restarted in place: the Job tells a failure of the work from one of the machine.
pub fn restart_policy(cluster: &Cluster<'_>) -> String {
    match cluster.pod.restart_policy.as_str() {
        "" => "Never".to_owned(),
        wish => wish.to_owned(),
    }
}

pub fn secrets(containers: &[flux::Container]) -> impl Iterator<Item = &String> {
    containers.iter().map(|container| &container.image_pull_secret)
}

pub fn pull_secrets<'a>(names: impl Iterator<Item = &'a String>) -> Option<Vec<LocalObjectReference>> {
    let names: BTreeSet<_> = names.filter(|name| !name.is_empty()).collect();
    let references = names.into_iter().map(|name| LocalObjectReference { name: name.clone() });
    Some(references.collect::<Vec<_>>()).filter(|all| !all.is_empty())
}

/// Rather one pod per node, rather all in one zone; only what the user requires is required.
fn affinity(cluster: &Cluster<'_>) -> Option<Affinity> {
    let nodes = node_affinity(cluster);
    if cluster.spec.network.as_ref().is_some_and(|network| network.disable_affinity) {
        return nodes.map(|nodes| Affinity { node_affinity: Some(nodes), ..Affinity::default() });
    }
    let rather = |topology: &str| {
        let own = BTreeMap::from([("app.kubernetes.io/name".to_owned(), cluster.name.clone())]);
        let selector = LabelSelector { match_labels: Some(own), ..LabelSelector::default() };
        let term = PodAffinityTerm {
            topology_key: topology.to_owned(),
            label_selector: Some(selector),
            ..PodAffinityTerm::default()
        };
        Some(vec![WeightedPodAffinityTerm { weight: 100, pod_affinity_term: term }])
    };
    Some(Affinity {
        node_affinity: nodes,
        pod_affinity: Some(PodAffinity {
            preferred_during_scheduling_ignored_during_execution: rather("topology.kubernetes.io/zone"),
            ..PodAffinity::default()
        }),
        pod_anti_affinity: Some(PodAntiAffinity {
            preferred_during_scheduling_ignored_during_execution: rather("kubernetes.io/hostname"),
            ..PodAntiAffinity::default()
        }),
    })
}

fn node_affinity(cluster: &Cluster<'_>) -> Option<NodeAffinity> {
    let one = |(key, values): (&String, &Vec<String>)| NodeSelectorRequirement {
        key: key.clone(),
        operator: "In".to_owned(),
        values: Some(values.clone()),
    };
    let wishes: Vec<_> = cluster.pod.node_affinity.iter().map(one).collect();
    let term = NodeSelectorTerm { match_expressions: Some(wishes), ..NodeSelectorTerm::default() };
    (!cluster.pod.node_affinity.is_empty()).then(|| NodeAffinity {
        required_during_scheduling_ignored_during_execution: Some(NodeSelector { node_selector_terms: vec![term] }),
        ..NodeAffinity::default()
    })
}
