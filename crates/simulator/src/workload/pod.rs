// SPDX-License-Identifier: Apache-2.0
//! The state of a pod, and pods out of templates.

use std::{cmp::Ordering, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    Metadata,
    api::core::v1::{Pod, PodCondition, PodTemplateSpec},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};

use super::claim::owned;

/// The longest start of a name that still leaves room for the part that the server chooses.
const LONGEST_PREFIX: usize = 58;

pub fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Neither stopped nor about to go.
pub fn is_active(pod: &Pod) -> bool {
    !is_stopped(pod) && pod.metadata.deletion_timestamp.is_none()
}

/// About to go, but not yet stopped.
pub fn is_terminating(pod: &Pod) -> bool {
    !is_stopped(pod) && pod.metadata.deletion_timestamp.is_some()
}

fn is_stopped(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

pub fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.as_ref()?.iter().find(|one| one.type_ == kind)
}

pub fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready.status == "True")
}

/// Since when it is ready, if it is.
pub fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let ready = condition(pod, "Ready").filter(|ready| ready.status == "True")?;
    ready.last_transition_time.as_ref().map(|time| time.0)
}

/// When a ready pod has been ready for long enough.
pub fn available_at(pod: &Pod, min_ready_seconds: i32) -> Option<Timestamp> {
    if !is_ready(pod) {
        return None;
    }
    match u64::try_from(min_ready_seconds) {
        Ok(0) | Err(_) => Some(Timestamp::MIN),
        Ok(seconds) => ready_since(pod)?.checked_add(Duration::from_secs(seconds)).ok(),
    }
}

pub fn is_available(pod: &Pod, min_ready_seconds: i32, now: Timestamp) -> bool {
    available_at(pod, min_ready_seconds).is_some_and(|at| at <= now)
}

/// The time of now, as objects tell time.
pub fn time(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

/// Those that are missed least come first.
pub fn by_dispensability(a: &Pod, b: &Pod) -> Ordering {
    let bound = |pod: &Pod| node_of(pod).is_some();
    let stage = |pod: &Pod| match phase(pod) {
        "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    };
    let newest = |pod: &Pod| std::cmp::Reverse(pod.metadata.creation_timestamp.as_ref().map(|time| time.0));
    bound(a)
        .cmp(&bound(b))
        .then_with(|| stage(a).cmp(&stage(b)))
        .then_with(|| is_ready(a).cmp(&is_ready(b)))
        .then_with(|| ready_since(b).cmp(&ready_since(a)))
        .then_with(|| restarts(b).cmp(&restarts(a)))
        .then_with(|| newest(a).cmp(&newest(b)))
        .then_with(|| a.metadata.name.cmp(&b.metadata.name))
}

/// The node that a pod is bound to.
pub fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|node| !node.is_empty())
}

/// Counts of pods are far below the limit of the type.
pub fn whole(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// A status tells most counts of zero by leaving them out.
pub fn some(count: i32) -> Option<i32> {
    Some(count).filter(|count| *count != 0)
}

/// How often the container that restarted most did so.
fn restarts(pod: &Pod) -> i32 {
    let containers = pod.status.as_ref().and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    containers.iter().map(|one| one.restart_count).max().unwrap_or_default()
}

/// A pod as its controller makes it: it gets its name from the server.
pub fn from_template<K: Metadata<Ty = ObjectMeta>>(template: &PodTemplateSpec, owner: &K) -> Pod {
    let wanted = template.metadata.clone().unwrap_or_default();
    let name = owner.metadata().name.as_deref().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            generate_name: Some(generate_name(name, "-")),
            namespace: owner.metadata().namespace.clone(),
            labels: wanted.labels,
            annotations: wanted.annotations,
            finalizers: wanted.finalizers,
            owner_references: Some(vec![owned(owner)]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}

/// What a name begins with. A long name is cut, its end is kept.
pub fn generate_name(name: &str, end: &str) -> String {
    let room = LONGEST_PREFIX.saturating_sub(end.len());
    let kept: String = name.chars().take(room).collect();
    format!("{kept}{end}")
}
