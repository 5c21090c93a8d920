// SPDX-License-Identifier: Apache-2.0
//! Whose place a pod may take that matters more.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use k8s_openapi::api::{core::v1::Pod, policy::v1::PodDisruptionBudget};

use super::{
    board::{Board, Guest, priority},
    look::{Look, Refusal},
    words,
};
use crate::{labels, room::Amounts, shelf::Key};

/// A node, and those who have to leave it.
#[derive(Debug)]
pub struct Choice {
    pub node: String,
    pub victims: Vec<Arc<Pod>>,
    /// How many of them a disruption budget would rather keep.
    missed: usize,
}

/// The node where the least is lost; or in words, why there is none.
pub fn choose(pod: &Pod, needs: &Amounts, board: &Board, refusals: &[Refusal]) -> Result<Choice, String> {
    let spec = pod.spec.as_ref();
    if spec.and_then(|spec| spec.preemption_policy.as_deref()) == Some("Never") {
        return Err("preemption: not eligible due to preemptionPolicy=Never.".to_owned());
    }
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for (at, (spot, refusal)) in board.spots.iter().zip(refusals).enumerate() {
        let outcome = if refusal.helpless {
            Err(vec!["Preemption is not helpful for scheduling".into()])
        } else {
            victims(pod, needs, board, at)
        };
        match outcome {
            Ok((victims, missed)) => found.push(Choice { node: spot.name().to_owned(), victims, missed }),
            Err(all) => all.into_iter().for_each(|one| *reasons.entry(one.into_owned()).or_default() += 1),
        }
    }
    let best = found.into_iter().min_by_key(loss);
    best.ok_or_else(|| format!("preemption: {}", words::none_of(board.spots.len(), &reasons)))
}

type Reasons = Vec<std::borrow::Cow<'static, str>>;

/// Those who must go from a node: the least important ones, and no more than it takes. Those that a budget keeps may
/// stay before others do.
fn victims(pod: &Pod, needs: &Amounts, board: &Board, at: usize) -> Result<(Vec<Arc<Pod>>, usize), Reasons> {
    let guests = board.spots.get(at).map(|spot| spot.guests.clone()).unwrap_or_default();
    let mut lesser: Vec<Guest> = guests.into_iter().filter(|guest| priority(&guest.pod) < priority(pod)).collect();
    if lesser.is_empty() {
        return Err(vec!["No preemption victims found for incoming pod".into()]);
    }
    lesser.sort_by_key(|guest| (Reverse(priority(&guest.pod)), started(&guest.pod), Key::of(&guest.pod.metadata)));
    let mut gone: BTreeSet<Key> = lesser.iter().map(|guest| Key::of(&guest.pod.metadata)).collect();
    let refusal = |gone: &BTreeSet<Key>| {
        let board = board.without(gone);
        let spot = board.spots.get(at)?;
        Look::new(pod, needs, &board)?.refusal(spot)
    };
    if let Some(refusal) = refusal(&gone) {
        return Err(refusal.reasons);
    }
    let mut kept = kept_by_budgets(&lesser, board);
    lesser.sort_by_key(|guest| !kept.contains(&Key::of(&guest.pod.metadata)));
    lesser.retain(|guest| {
        let key = Key::of(&guest.pod.metadata);
        gone.remove(&key);
        let needed = refusal(&gone).is_some();
        if needed {
            gone.insert(key);
        }
        needed
    });
    kept.retain(|key| gone.contains(key));
    Ok((lesser.into_iter().map(|guest| guest.pod).collect(), kept.len()))
}

/// Those whose going a disruption budget does not allow, if all of them go in this order.
fn kept_by_budgets(guests: &[Guest], board: &Board) -> BTreeSet<Key> {
    let allowed = |budget: &PodDisruptionBudget| {
        budget.status.as_ref().and_then(|status| status.disruptions_allowed).unwrap_or(0)
    };
    let mut left: Vec<_> = board.budgets.iter().map(|budget| (budget, allowed(budget))).collect();
    let mut kept = BTreeSet::new();
    for Guest { pod, .. } in guests {
        for (budget, left) in &mut left {
            let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
            let nothing = selector.is_none_or(|all| all.match_labels.is_none() && all.match_expressions.is_none());
            let meant = budget.metadata.namespace == pod.metadata.namespace
                && !nothing
                && labels::selects(selector, pod.metadata.labels.as_ref());
            *left -= i32::from(meant);
            if meant && *left < 0 {
                kept.insert(Key::of(&pod.metadata));
            }
        }
    }
    kept
}

fn started(pod: &Pod) -> Option<Timestamp> {
    pod.status.as_ref()?.start_time.as_ref().map(|time| time.0)
}

/// What budgets would keep counts first, then the loss of important pods, then that of many, then that of those who have run for long.
fn loss(choice: &Choice) -> (usize, i32, i64, usize, Reverse<Option<Timestamp>>, String) {
    let worth = |pod: &Arc<Pod>| i64::from(priority(pod)) - i64::from(i32::MIN);
    let most = choice.victims.iter().map(|pod| priority(pod)).max().unwrap_or(i32::MIN);
    let sum = choice.victims.iter().map(worth).sum();
    let top = choice.victims.iter().filter(|pod| priority(pod) == most);
    let since = top.filter_map(|pod| started(pod)).min();
    (choice.missed, most, sum, choice.victims.len(), Reverse(since), choice.node.clone())
}
