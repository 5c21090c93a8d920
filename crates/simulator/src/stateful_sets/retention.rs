// SPDX-License-Identifier: Apache-2.0
//! Whether volume claims go with their set or with their pod.

use k8s_openapi::{
    api::{
        apps::v1::{StatefulSet, StatefulSetSpec},
        core::v1::{PersistentVolumeClaim, Pod},
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use serde_json::json;

use crate::{controller::Plan, workload::owned};

/// Who owns the claims of a pod, by the set's policy.
pub fn owners(
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    pod: Option<&Pod>,
    is_member: bool,
) -> Option<Vec<OwnerReference>> {
    let policy = spec.persistent_volume_claim_retention_policy.as_ref()?;
    let with_set = policy.when_deleted.as_deref() == Some("Delete");
    let with_pod = policy.when_scaled.as_deref() == Some("Delete") && !is_member;
    match (with_set, with_pod, pod) {
        (_, true, Some(pod)) => Some(vec![owned(pod)]),
        (true, false, _) => Some(vec![owned(set)]),
        _ => None,
    }
}

/// Leaves owners alone that are neither the set nor the pod.
pub fn fix(
    plan: &mut Plan,
    set: &StatefulSet,
    spec: &StatefulSetSpec,
    pod: Option<&Pod>,
    is_member: bool,
    claim: &PersistentVolumeClaim,
) {
    let ours = |owner: &&OwnerReference| {
        let uid = Some(&owner.uid);
        uid == set.metadata.uid.as_ref() || pod.is_some_and(|pod| uid == pod.metadata.uid.as_ref())
    };
    let before = claim.metadata.owner_references.clone().unwrap_or_default();
    let strangers = before.iter().filter(|owner| !ours(owner));
    let wanted = owners(set, spec, pod, is_member).unwrap_or_default();
    let after: Vec<_> = strangers.cloned().chain(wanted).collect();
    if after != before {
        plan.patch_metadata(claim, json!({ "ownerReferences": after }));
    }
}
