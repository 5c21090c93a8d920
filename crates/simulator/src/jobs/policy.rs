// SPDX-License-Identifier: Apache-2.0
//! What a Job says about failures of its pods, and about which successes are enough.

use k8s_openapi::api::{
    batch::v1::{PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement, SuccessPolicy},
    core::v1::{ContainerStatus, Pod, PodStatus},
};

use super::indexes::Indexes;

/// What a failed pod means for its Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    Counts,
    Ignored,
    FailsIndex,
    FailsJob(String),
}

/// The first rule that fits decides.
pub fn judge(policy: Option<&PodFailurePolicy>, pod: &Pod) -> Failure {
    let status = pod.status.clone().unwrap_or_default();
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    for (at, rule) in policy.into_iter().flat_map(|policy| &policy.rules).enumerate() {
        let why = match (&rule.on_exit_codes, &rule.on_pod_conditions) {
            (Some(codes), _) => exit(&status, codes).map(|(container, code)| {
                let action = &rule.action;
                format!(
                    "Container {container} for pod {namespace}/{name} failed with exit code {code} matching {action} rule at index {at}"
                )
            }),
            (None, Some(patterns)) => {
                let conditions = status.conditions.as_deref().unwrap_or_default();
                let matching = conditions.iter().find(|condition| {
                    patterns.iter().any(|pattern| {
                        let asked = pattern.status.as_deref().unwrap_or("True");
                        pattern.type_ == condition.type_ && asked == condition.status
                    })
                });
                matching.map(|condition| {
                    let (kind, action) = (&condition.type_, &rule.action);
                    format!("Pod {namespace}/{name} has condition {kind} matching {action} rule at index {at}")
                })
            }
            (None, None) => None,
        };
        match (why, rule.action.as_str()) {
            (Some(why), "FailJob") => return Failure::FailsJob(why),
            (Some(_), "Ignore") => return Failure::Ignored,
            (Some(_), "FailIndex") => return Failure::FailsIndex,
            (Some(_), "Count") => return Failure::Counts,
            _ => {}
        }
    }
    Failure::Counts
}

/// The first container whose exit code the rule means.
fn exit(status: &PodStatus, rule: &PodFailurePolicyOnExitCodesRequirement) -> Option<(String, i32)> {
    let containers = status.container_statuses.iter().flatten();
    let code = |one: &ContainerStatus| Some(one.state.as_ref()?.terminated.as_ref()?.exit_code);
    containers.chain(status.init_container_statuses.iter().flatten()).find_map(|one| {
        let code = code(one).filter(|code| *code != 0)?;
        let named = rule.container_name.as_ref().is_none_or(|name| *name == one.name);
        let listed = rule.values.contains(&code);
        let asked = if rule.operator == "In" { listed } else { rule.operator == "NotIn" && !listed };
        (named && asked).then(|| (one.name.clone(), code))
    })
}

/// Which rule says that these successes are enough.
pub fn enough(policy: Option<&SuccessPolicy>, succeeded: &Indexes, completions: i32) -> Option<String> {
    if succeeded.is_empty() {
        return None;
    }
    let met = policy?.rules.iter().position(|rule| {
        let reached = |count: i32| rule.succeeded_count.is_some_and(|asked| count >= asked);
        match &rule.succeeded_indexes {
            Some(text) => {
                let asked = Indexes::parse(text, completions);
                let shared = asked.shared(succeeded);
                !asked.is_empty() && (shared == asked.total() || reached(shared))
            }
            None => reached(succeeded.total()),
        }
    })?;
    Some(format!("Matched rules at index {met}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(status: Value) -> Pod {
        serde_json::from_value(json!({ "metadata": { "name": "p", "namespace": "n" }, "status": status })).unwrap()
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let policy: PodFailurePolicy = serde_json::from_value(json!({ "rules": [
            { "action": "Ignore", "onPodConditions": [{ "type": "DisruptionTarget", "status": "True" }] },
            { "action": "FailJob", "onExitCodes": { "containerName": "main", "operator": "In", "values": [42] } },
            { "action": "FailIndex", "onExitCodes": { "operator": "NotIn", "values": [1, 42] } },
        ] }))
        .unwrap();
        let exits = |name: &str, code: i32| {
            pod(json!({ "containerStatuses": [{ "name": name, "image": "", "imageID": "", "ready": false,
                "restartCount": 0, "state": { "terminated": { "exitCode": code } } }] }))
        };
        let message = "Container main for pod n/p failed with exit code 42 matching FailJob rule at index 1";
        let disrupted = pod(json!({ "conditions": [{ "type": "DisruptionTarget", "status": "True" }] }));
        let cases = [
            (disrupted, Failure::Ignored),
            (exits("main", 42), Failure::FailsJob(message.to_owned())),
            (exits("other", 42), Failure::Counts),
            (exits("other", 1), Failure::Counts),
            (exits("other", 7), Failure::FailsIndex),
            (exits("other", 0), Failure::Counts),
        ];
        for (pod, expected) in cases {
            assert_eq!(judge(Some(&policy), &pod), expected, "{:?}", pod.status);
        }
    }

    #[test]
    fn some_successes_can_be_enough() {
        let policy: SuccessPolicy = serde_json::from_value(json!({ "rules": [
            { "succeededIndexes": "0,4-6", "succeededCount": 3 }, { "succeededCount": 5 }, { "succeededIndexes": "8" },
        ] }))
        .unwrap();
        let cases = [
            ("", None),
            ("0,4", None),
            ("0,4,5", Some(0)),
            ("1-4", None),
            ("1-5", Some(1)),
            ("8", Some(2)),
            ("7", None),
        ];
        for (succeeded, rule) in cases {
            let expected = rule.map(|rule: i32| format!("Matched rules at index {rule}"));
            assert_eq!(enough(Some(&policy), &Indexes::parse(succeeded, 10), 10), expected, "{succeeded}");
        }
    }
}
