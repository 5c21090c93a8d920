// SPDX-License-Identifier: Apache-2.0
//! Which of the nodes that a pod could have is the best.

use k8s_openapi::api::core::v1::Pod;

use super::{
    board::{Board, Spot, usual},
    look::Look,
};
use crate::{
    placement,
    room::{CPU, MEMORY},
    workload::controller_of,
};

const FULL: i64 = 100;

/// The place of the best node on the board. Among equals, the first.
pub fn best(pod: &Pod, look: &Look<'_>, board: &Board, fit: &[usize]) -> Option<usize> {
    let spots: Vec<_> = fit.iter().filter_map(|at| Some((*at, board.spots.get(*at)?))).collect();
    if let [(only, _)] = spots.as_slice() {
        return Some(*only);
    }
    let each = |score: &dyn Fn(&Spot) -> i64| spots.iter().map(|(_, spot)| score(spot)).collect::<Vec<_>>();
    let marks = [
        (1, each(&|spot| free(look, spot))),
        (1, each(&|spot| balance(look, spot))),
        (3, fewest(&each(&|spot| unwelcome(look, spot)))),
        (2, most(&each(&|spot| preferred(look, spot)))),
        (2, fewest(&each(&|spot| siblings(pod, spot) + look.spread.crowd(spot)))),
        (2, most(&each(&|spot| look.company.score(spot)))),
    ];
    let total = |index: usize| marks.iter().filter_map(|(weight, all)| Some(weight * all.get(index)?)).sum::<i64>();
    let ranked = spots.iter().enumerate().map(|(index, (at, _))| (total(index), std::cmp::Reverse(*at)));
    ranked.max().map(|(_, at)| at.0)
}

/// How much of the node is free with the pod on it.
fn free(look: &Look<'_>, spot: &Spot) -> i64 {
    let (mut sum, mut count) = (0, 0);
    for ((name, taken), more) in [CPU, MEMORY].into_iter().zip(spot.taken).zip(usual(look.needs)) {
        let has = spot.has.get(name).copied().unwrap_or_default();
        if has > 0 {
            sum += (has - taken - more).max(0).saturating_mul(FULL) / has;
            count += 1;
        }
    }
    if count == 0 { 0 } else { sum / count }
}

/// How even the use of its resources is.
fn balance(look: &Look<'_>, spot: &Spot) -> i64 {
    let share = |name: &str| {
        let of = |all: &crate::room::Amounts| all.get(name).copied().unwrap_or_default();
        let used = of(&spot.used) + of(look.needs);
        (of(&spot.has) > 0).then(|| (used.saturating_mul(FULL) / of(&spot.has)).min(FULL))
    };
    match (share(CPU), share(MEMORY)) {
        (Some(cpu), Some(memory)) => FULL - (cpu - memory).abs() / 2,
        _ => FULL,
    }
}

fn unwelcome(look: &Look<'_>, spot: &Spot) -> i64 {
    let soft = placement::taints(&spot.node).iter().filter(|taint| taint.effect == "PreferNoSchedule");
    i64::try_from(soft.filter(|taint| !placement::is_tolerated(look.spec, taint)).count()).unwrap_or_default()
}

fn preferred(look: &Look<'_>, spot: &Spot) -> i64 {
    let affinity = look.spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let terms = affinity.and_then(|one| one.preferred_during_scheduling_ignored_during_execution.as_deref());
    let here = terms.unwrap_or_default().iter().filter(|term| placement::matches(&term.preference, &spot.node));
    here.map(|term| i64::from(term.weight)).sum()
}

/// Pods of the same controller.
fn siblings(pod: &Pod, spot: &Spot) -> i64 {
    let Some(owner) = controller_of(&pod.metadata).map(|owner| owner.uid.clone()) else { return 0 };
    let same = |other: &Pod| controller_of(&other.metadata).is_some_and(|other| other.uid == owner);
    i64::try_from(spot.guests.iter().filter(|guest| same(&guest.pod)).count()).unwrap_or_default()
}

/// Full marks for the highest, none for the lowest.
fn most(all: &[i64]) -> Vec<i64> {
    let (low, high) = (all.iter().min().copied().unwrap_or(0).min(0), all.iter().max().copied().unwrap_or(0));
    all.iter().map(|one| if high == low { 0 } else { (one - low) * FULL / (high - low) }).collect()
}

/// Full marks for none.
fn fewest(all: &[i64]) -> Vec<i64> {
    let high = all.iter().max().copied().unwrap_or(0).max(1);
    all.iter().map(|one| (high - one) * FULL / high).collect()
}
