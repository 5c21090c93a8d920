// SPDX-License-Identifier: Apache-2.0

use bivouac_core::names;
use k8s_openapi::api::batch::v1::{
    Job, JobSpec, PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyOnPodConditionsPattern,
    PodFailurePolicyRule, SuccessPolicy, SuccessPolicyRule,
};

use super::pod::{pod_template, restart_policy};
use crate::cluster::Cluster;

/// The hash of the pod template that we asked for. Kubernetes never lets a template change.
pub const TEMPLATE_ANNOTATION: &str = "bivouac.dev/template";
const RETRIES: i32 = 100;
/// What a pod that Kubernetes or the kernel killed ends with. A runner never ends so by itself.
const KILLED: [i32; 2] = [137, 143];

/// One pod for every broker. `suspend` only while we hold it back: else the field is somebody else's.
pub fn job(cluster: &Cluster<'_>, suspend: bool) -> Job {
    let template = pod_template(cluster);
    let mut metadata = cluster.meta(&cluster.name, &cluster.spec.job_labels);
    let text = serde_json::to_string(&template).unwrap_or_default();
    metadata.annotations = Some([(TEMPLATE_ANNOTATION.to_owned(), names::hash(&[&text], 16))].into());
    let limit = cluster.spec.backoff_limit;
    let lead = SuccessPolicyRule { succeeded_indexes: Some("0".to_owned()), ..SuccessPolicyRule::default() };
    Job {
        metadata,
        spec: Some(JobSpec {
            completion_mode: Some("Indexed".to_owned()),
            completions: Some(cluster.size),
            parallelism: Some(cluster.size),
            backoff_limit: Some(if limit == 0 { RETRIES } else { limit }),
            active_deadline_seconds: Some(cluster.spec.deadline_seconds),
            // What the lead says counts. In a cluster that joins another one there is no lead.
            success_policy: cluster.leader().is_none().then(|| SuccessPolicy { rules: vec![lead] }),
            pod_failure_policy: (restart_policy(cluster) == "Never").then(|| failure_policy(cluster)),
            suspend: suspend.then_some(true),
            template,
            ..JobSpec::default()
        }),
        ..Job::default()
    }
}

/// A lost machine does not count; a failure of the work is final; anything else is tried again. An interactive cluster
/// has no work of its own: whatever ends in it comes back.
fn failure_policy(cluster: &Cluster<'_>) -> PodFailurePolicy {
    let disrupted = PodFailurePolicyOnPodConditionsPattern {
        type_: "DisruptionTarget".to_owned(),
        status: Some("True".to_owned()),
    };
    let lost = PodFailurePolicyRule {
        action: "Ignore".to_owned(),
        on_pod_conditions: Some(vec![disrupted]),
        ..PodFailurePolicyRule::default()
    };
    let ended = |name: &String| PodFailurePolicyRule {
        action: "FailJob".to_owned(),
        on_exit_codes: Some(PodFailurePolicyOnExitCodesRequirement {
            container_name: Some(name.clone()),
            operator: "NotIn".to_owned(),
            values: KILLED.to_vec(),
        }),
        ..PodFailurePolicyRule::default()
    };
    let containers = cluster.sidecars.iter().map(|placed| &placed.container.name);
    let works = std::iter::once(&cluster.name).chain(containers).filter(|_| !cluster.spec.interactive);
    // Kubernetes takes no more than 20 rules.
    PodFailurePolicy { rules: std::iter::once(lost).chain(works.map(ended)).take(20).collect() }
}
