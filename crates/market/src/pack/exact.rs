// SPDX-License-Identifier: Apache-2.0
//! The best answer for few items, by looking at every way to divide them.

use super::kind_set::{keep, lowest};
use super::problem::{Place, Problem};
use super::work::{ASK_ALL, LOOK};
use super::{Vector, plus};

/// So many items are few. Each one more takes three times as long, and these take a millisecond.
pub(super) const FEW: usize = 10;

/// About what it takes to divide so many.
pub(super) fn steps(items: usize) -> u64 {
    3_u64.saturating_pow(items.min(FEW) as u32).saturating_mul(LOOK) + (ASK_ALL << items.min(FEW)) * 3
}

/// Some of the items, as bits: the lowest bit is the first item.
type Group = usize;

/// The cheapest way for a group: what it costs, and which part of it is on the first machine.
type Way = Option<(u128, Group)>;

/// A group on one machine.
struct Machine {
    used: Vector,
    possible: Vec<u64>,
    /// Of the cheapest kind; `None` when no kind holds the group.
    price: Option<u64>,
}

/// The parts of the cheapest way to have the items on at most so many nodes; on fewer nodes if that costs the same.
pub(super) fn divide(problem: &Problem, places: &[Place], most_nodes: usize) -> Option<Vec<Vec<Place>>> {
    let machines = machines(problem, places)?;
    let everything = machines.len() - 1;
    let alone = |(group, machine): (Group, &Machine)| machine.price.map(|price| (u128::from(price), group));
    let mut best: Vec<Way> = machines.iter().enumerate().map(alone).collect();
    // The ways with at most one node, at most two, and so on.
    let mut layers = vec![best.clone()];
    for _ in 1..most_nodes.min(places.len()) {
        best = with_one_more(&machines, &best);
        layers.push(best.clone());
    }
    let cost = |layer: &Vec<Way>| layer.get(everything).copied().flatten().map(|(cost, _)| cost);
    let least = cost(&best)?;
    let enough = layers.iter().take_while(|layer| cost(layer) != Some(least)).count();
    let mut rest = everything;
    let mut parts = Vec::new();
    for layer in layers.iter().take(enough + 1).rev() {
        if rest == 0 {
            break;
        }
        let (_, part) = layer.get(rest).copied().flatten()?;
        parts
            .push(places.iter().enumerate().filter(|(at, _)| (part >> at) & 1 == 1).map(|(_, place)| *place).collect());
        rest ^= part;
    }
    Some(parts)
}

/// Every group on one machine, by its bits.
fn machines(problem: &Problem, places: &[Place]) -> Option<Vec<Machine>> {
    let every_kind = vec![u64::MAX; problem.prices.words()];
    let mut machines = vec![Machine { used: Vector::default(), possible: every_kind, price: Some(0) }];
    for group in 1..1 << places.len() {
        let shape = problem.shape(*places.get(lowest([group as u64])?)?)?;
        let without = machines.get(group & (group - 1))?;
        let (mut possible, mut used) = (without.possible.clone(), without.used);
        keep(&mut possible, &shape.fits);
        match plus(&used, &shape.needs) {
            Some(sum) => used = sum,
            // More than can be counted is more than any machine holds.
            None => possible.fill(0),
        }
        problem.prices.narrow(&mut possible, &used);
        let kind = lowest(possible.iter().copied()).and_then(|rank| problem.prices.get(rank));
        let price = kind.map(|kind| kind.price);
        machines.push(Machine { used, possible, price });
    }
    Some(machines)
}

/// The cheapest ways with one machine more than in `fewer`, or as they are there.
fn with_one_more(machines: &[Machine], fewer: &[Way]) -> Vec<Way> {
    let cheapest = |(group, way): (Group, &Way)| {
        let mut best = *way;
        // The first item is on the first machine: no way is seen twice.
        let others = group & group.wrapping_sub(1);
        let mut rest = others;
        while rest != 0 {
            let price = machines.get(group ^ rest).and_then(|machine| machine.price);
            if let (Some(price), Some((cost, _))) = (price, fewer.get(rest).copied().flatten()) {
                let cost = cost + u128::from(price);
                if best.is_none_or(|(least, _)| cost < least) {
                    best = Some((cost, group ^ rest));
                }
            }
            rest = (rest - 1) & others;
        }
        best
    };
    fewer.iter().enumerate().map(cheapest).collect()
}
