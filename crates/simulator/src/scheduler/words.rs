// SPDX-License-Identifier: Apache-2.0
//! Why no node is right for a pod, in the words that people know.

use std::collections::BTreeMap;

use super::look::Refusal;

pub const NO_NODES: &str = "no nodes available to schedule pods";

/// `0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.`
pub fn none_of(nodes: usize, reasons: &BTreeMap<String, usize>) -> String {
    let mut all: Vec<_> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    all.sort();
    format!("0/{nodes} nodes are available: {}.", all.join(", "))
}

pub fn refused(refusals: &[Refusal]) -> String {
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for reason in refusals.iter().flat_map(|refusal| &refusal.reasons) {
        *reasons.entry(reason.clone().into_owned()).or_default() += 1;
    }
    none_of(refusals.len(), &reasons)
}

/// The real scheduler has asked those who hand out devices first.
pub fn in_vain(refused: &str, preemption: &str) -> String {
    format!("{refused} no new claims to deallocate, {preemption}")
}
