// SPDX-License-Identifier: Apache-2.0
//! Which machines to buy for what waits for a machine.
//!
//! First fit, largest item first, is the yardstick: an answer is never worse than that, neither in cost nor in the
//! number of nodes. Few items are divided in the best way there is. For more of them, several starts are improved step
//! by step as long as there is work left to spend, and the best result counts.

mod exact;
mod fill;
mod improve;
mod kind_set;
mod node;
mod pool;
mod price_list;
mod problem;
mod spread;
mod thrift;
mod work;

use bivouac_core::Money;

use fill::{Choice, Manner, fill};
use improve::{Improver, value};
pub use kind_set::KindSet;
use node::Filled;
use problem::{Place, Problem};
use thrift::Thrift;
use work::{LOOK, Work};

/// The most steps, each of about a nanosecond, that are taken for all other starts, to improve them, and for a closer
/// look at the best of them.
const START_STEPS: u64 = 250_000_000;
const IMPROVE_STEPS: u64 = 100_000_000;
const POLISH_STEPS: u64 = 20_000_000;

/// What a start may pay for an item's share of a machine, in tenths of the least price of such a share; anything if
/// there is no number. With many items there is work for one start only, so the most promising is the first: cheap
/// shares for a low price, large machines for few nodes.
const FOR_PRICE: [Option<u64>; 6] = [Some(12), None, Some(10), Some(15), Some(20), Some(40)];
const FOR_FEW_NODES: [Option<u64>; 6] = [None, Some(12), Some(10), Some(15), Some(20), Some(40)];

const DIMENSIONS: usize = 5;

/// The same as [`Amounts`], in the order in which sizes are compared.
type Vector = [u64; DIMENSIONS];

/// What there is of a machine, or what an item needs of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// In thousandths.
    pub cpu: u64,
    /// In MiB.
    pub memory: u64,
    /// Whole ones: Kubernetes hands out nothing less, and free parts of two GPUs are not one free GPU.
    pub gpus: u64,
    /// In MiB.
    pub disk: u64,
    pub pods: u64,
}

/// What must run on one machine, like a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub needs: Amounts,
    /// Where requirements, taints and pools let it run.
    pub allowed: KindSet,
}

/// A kind of machine, of which any number can be bought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// What a fresh machine has for items: without the system, and without what runs on every machine.
    pub holds: Amounts,
    /// Per hour. Without a positive price it is not bought.
    pub price: Money,
}

/// A machine to buy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node {
    /// The places of its items, ascending.
    pub items: Vec<usize>,
    /// The place of its kind.
    pub kind: usize,
}

/// What to buy, and what goes where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packing {
    /// In the order of their first items.
    pub nodes: Vec<Node>,
    /// The places of the items that no kind may run or can hold, ascending.
    pub unplaceable: Vec<usize>,
    /// Per hour, or the most that can be counted.
    pub cost: Money,
}

/// Buys for all items that can be placed, on no more nodes than first fit needs.
pub fn pack(items: &[Item], kinds: &[Kind]) -> Packing {
    let problem = Problem::new(items, kinds);
    let first = first_fit(&problem);
    let most_nodes = first.len();
    packing(items, kinds, &problem, &best(&problem, first, most_nodes))
}

/// Buys for all items that can be placed, on as many nodes as is cheapest. That is often a lot cheaper: the largest
/// machines make for few nodes, and cost the most for what they hold.
pub fn pack_by_price(items: &[Item], kinds: &[Kind]) -> Packing {
    let problem = Problem::new(items, kinds);
    let first = first_fit(&problem);
    packing(items, kinds, &problem, &best(&problem, first, usize::MAX))
}

fn first_fit(problem: &Problem) -> Vec<Filled> {
    let mut work = Work::at_most(u64::MAX);
    let order: Vec<Place> = (0..problem.len()).collect();
    let manner = Manner { order: &order, choice: Choice::First, only: None, most_nodes: usize::MAX };
    fill(problem, &manner, &mut work).and_then(|parts| filled(problem, parts)).unwrap_or_default()
}

fn filled(problem: &Problem, parts: Vec<Vec<Place>>) -> Option<Vec<Filled>> {
    parts.into_iter().map(|items| Filled::new(problem, items, 0)).collect()
}

/// The best that is found on at most so many nodes.
fn best(problem: &Problem, first: Vec<Filled>, most_nodes: usize) -> Vec<Filled> {
    if problem.len() <= exact::FEW {
        let places: Vec<Place> = (0..problem.len()).collect();
        return exact::divide(problem, &places, most_nodes).and_then(|parts| filled(problem, parts)).unwrap_or(first);
    }
    let thrift = Thrift::new(problem);
    let (mut for_starts, mut work) = (Work::at_most(START_STEPS), Work::at_most(IMPROVE_STEPS));
    let mut best = first.clone();
    let mut improve = |nodes: Vec<Filled>, work: &mut Work| {
        let improved = Improver { problem, nodes, most_nodes, work, round: 0 }.run();
        if let Some(nodes) = improved.filter(|nodes| value(nodes) < value(&best)) {
            best = nodes;
        }
    };
    for tenths in if most_nodes == usize::MAX { FOR_PRICE } else { FOR_FEW_NODES } {
        if work.is_spent() {
            break;
        }
        if let Some(nodes) = most_worth_first(problem, &thrift, tenths, most_nodes, &mut for_starts) {
            improve(nodes, &mut work);
        }
    }
    improve(first, &mut work);
    let mut work = Work::at_most(POLISH_STEPS);
    Improver { problem, nodes: best, most_nodes, work: &mut work, round: 0 }.polish()
}

/// Dear items first, each where the price rises least: on any kind, or only on kinds that are good deals for it.
fn most_worth_first(
    problem: &Problem,
    thrift: &Thrift,
    tenths: Option<u64>,
    most_nodes: usize,
    work: &mut Work,
) -> Option<Vec<Filled>> {
    work.spend(LOOK * problem.shapes().len() as u64 * problem.prices.all().len() as u64);
    let deals = tenths.map(|tenths| thrift.good_deals(problem, tenths));
    // Good deals take many nodes; the improver gets rid of some.
    let (choice, most_nodes) =
        if deals.is_some() { (Choice::First, usize::MAX) } else { (Choice::LeastRise, most_nodes) };
    let manner = Manner { order: thrift.order(), choice, only: deals.as_deref(), most_nodes };
    // What takes too long must leave something for the next.
    let mut share = work.share();
    let parts = fill(problem, &manner, &mut share);
    work.spend(share.done());
    filled(problem, parts?)
}

fn packing(items: &[Item], kinds: &[Kind], problem: &Problem, filled: &[Filled]) -> Packing {
    let node = |filled: &Filled| {
        let mut items: Vec<usize> = filled.items.iter().filter_map(|place| problem.index(*place)).collect();
        items.sort_unstable();
        problem.prices.get(filled.load.kind).map(|kind| Node { items, kind: kind.index })
    };
    let mut nodes: Vec<Node> = filled.iter().filter_map(node).collect();
    nodes.sort_unstable();
    let mut placed = vec![false; items.len()];
    for item in nodes.iter().flat_map(|node| &node.items) {
        if let Some(placed) = placed.get_mut(*item) {
            *placed = true;
        }
    }
    let unplaceable = placed.iter().enumerate().filter(|(_, placed)| !**placed).map(|(item, _)| item).collect();
    let prices = nodes.iter().filter_map(|node| kinds.get(node.kind)).map(|kind| kind.price);
    let cost = Money::checked_sum(prices).unwrap_or(Money::MAX);
    Packing { nodes, unplaceable, cost }
}

// === impl Amounts ===

impl Amounts {
    fn vector(&self) -> Vector {
        [self.gpus, self.cpu, self.memory, self.disk, self.pods]
    }
}

/// `None` when the sum cannot be counted.
fn plus(one: &Vector, two: &Vector) -> Option<Vector> {
    let mut sum = *one;
    for (sum, two) in sum.iter_mut().zip(two) {
        *sum = sum.checked_add(*two)?;
    }
    Some(sum)
}

/// What is left, or nothing.
fn minus(one: &Vector, two: &Vector) -> Vector {
    let mut left = *one;
    left.iter_mut().zip(two).for_each(|(left, two)| *left = left.saturating_sub(*two));
    left
}

fn fits_in(needs: &Vector, room: &Vector) -> bool {
    needs.iter().zip(room).all(|(need, room)| need <= room)
}
