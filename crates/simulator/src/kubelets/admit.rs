// SPDX-License-Identifier: Apache-2.0
//! Whether a node takes a pod that was given to it.

use k8s_openapi::api::core::v1::{Node, Pod};

use crate::{
    kinds::View,
    room::{self, Amounts},
    workload::phase,
};

/// Why a node does not take a pod: the reason and the message. Only pods that it has taken before count.
pub fn refusal(pod: &Pod, node: &Node, view: &View) -> Option<(String, String)> {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let taken = |other: &Pod| {
        other.status.as_ref().is_some_and(|status| status.start_time.is_some())
            && !matches!(phase(other), "Succeeded" | "Failed")
    };
    let (has, needs) = (room::of_node(node), room::needs(pod));
    let mut used = Amounts::new();
    view.pods_on(name).filter(|other| taken(other)).for_each(|other| room::add(&mut used, &room::needs(other)));
    let missing = room::lacks(&needs, &used, &has).into_iter().next()?;
    let of = |all: &Amounts| all.get(&missing).copied().unwrap_or_default();
    let message = format!(
        "Pod was rejected: Node didn't have enough resource: {missing}, requested: {}, used: {}, capacity: {}",
        of(&needs),
        of(&used),
        of(&has)
    );
    Some((format!("OutOf{missing}"), message))
}
