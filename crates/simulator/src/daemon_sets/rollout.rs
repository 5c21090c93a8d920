// SPDX-License-Identifier: Apache-2.0
//! From one template to the next: a few nodes at a time.

use std::sync::Arc;

use k8s_openapi::api::{apps::v1::RollingUpdateDaemonSet, core::v1::Pod};

use super::Look;
use crate::workload::{Round, is_ready, share};

fn strategy<'a>(look: &'a Look<'_>) -> Option<&'a RollingUpdateDaemonSet> {
    let strategy = look.spec.update_strategy.as_ref()?;
    strategy.rolling_update.as_ref().filter(|_| strategy.type_.as_deref() != Some("OnDelete"))
}

/// How many nodes may have a second pod.
pub fn surge(look: &Look<'_>, wanted: i32) -> i32 {
    share(strategy(look).and_then(|rolling| rolling.max_surge.as_ref()), wanted, Round::Up)
}

/// The pods that are too many on one node, where an old and a new one may run side by side for a while.
pub fn beyond_surge(look: &Look<'_>, running: &[Arc<Pod>]) -> Vec<Arc<Pod>> {
    let (new, old): (Vec<_>, Vec<_>) = running.iter().cloned().partition(|pod| look.is_updated(pod));
    let mut gone: Vec<_> = new.iter().skip(1).chain(old.iter().skip(1)).cloned().collect();
    if let (Some(new), Some(old)) = (new.first(), old.first())
        && (look.is_available(new) || !is_ready(old))
    {
        gone.push(old.clone());
    }
    gone
}

/// Nodes that get a new pod, and old pods that go.
pub fn step(look: &Look<'_>) -> (Vec<String>, Vec<Arc<Pod>>) {
    let Some(rolling) = strategy(look) else { return Default::default() };
    let wanted = look.wanted();
    match surge(look, wanted) {
        0 => {
            let missing = share(rolling.max_unavailable.as_ref(), wanted, Round::Up).max(1);
            (Vec::new(), replace(look, missing))
        }
        surge => (side_by_side(look, surge), Vec::new()),
    }
}

/// Old pods that go: those that are not available anyway, and as many others as may be missing.
fn replace(look: &Look<'_>, may_be_missing: i32) -> Vec<Arc<Pod>> {
    let (mut missing, mut down, mut up) = (0, Vec::new(), Vec::new());
    for pods in look.on.values() {
        let (new, old) = living(look, pods);
        match (new.as_slice(), old.as_slice()) {
            ([new], []) if look.is_available(new) => {}
            ([], [old]) if look.is_available(old) => up.push(old.clone()),
            ([], [old]) => {
                missing += 1;
                down.push(old.clone());
            }
            _ => missing += 1,
        }
    }
    let room = usize::try_from(may_be_missing - missing).unwrap_or_default();
    down.into_iter().chain(up.into_iter().take(room)).collect()
}

/// Nodes whose old pod gets a new one beside it.
fn side_by_side(look: &Look<'_>, surge: i32) -> Vec<String> {
    let (mut busy, mut down, mut up) = (0, Vec::new(), Vec::new());
    for (node, pods) in &look.on {
        let (new, old) = living(look, pods);
        match (new.as_slice(), old.as_slice()) {
            ([], [old]) if look.is_available(old) => up.push(node.clone()),
            ([], [_]) => down.push(node.clone()),
            ([new], [_]) if !look.is_available(new) => busy += 1,
            (new, old) if new.len() > 1 || old.len() > 1 => busy += 1,
            _ => {}
        }
    }
    let room = usize::try_from(surge - busy).unwrap_or_default();
    down.into_iter().chain(up.into_iter().take(room)).collect()
}

fn living(look: &Look<'_>, pods: &[Arc<Pod>]) -> (Vec<Arc<Pod>>, Vec<Arc<Pod>>) {
    let living = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    living.cloned().partition(|pod| look.is_updated(pod))
}
