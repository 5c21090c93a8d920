// SPDX-License-Identifier: Apache-2.0
//! Placing items one after the other: each goes to an open node that can still take it, or opens a new one.
//!
//! A node has no kind until the end. It keeps the kinds that are still possible, and is worth the cheapest of them.

use super::kind_set::{has, keep, lowest, ones};
use super::price_list::{PriceList, Rank};
use super::problem::{Place, Problem, Shape};
use super::work::{ASK_ALL, ASK_ONE, LOOK, Work};
use super::{DIMENSIONS, Vector, fits_in, minus, plus};

/// Which of the nodes that can take an item gets it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// The one that was opened first.
    First,
    /// The one whose price rises least.
    LeastRise,
}

/// How to place.
pub(super) struct Manner<'a> {
    pub order: &'a [Place],
    pub choice: Choice,
    /// The kinds that each shape may use, if not all that fit; by the place of the shape.
    pub only: Option<&'a [Vec<u64>]>,
    /// More nodes than this are no answer.
    pub most_nodes: usize,
}

/// A node that can take more.
struct Open {
    items: Vec<Place>,
    used: Vector,
    possible: Vec<u64>,
    kind: Rank,
    price: u64,
}

/// What a glance at a node shows.
#[derive(Default)]
struct Glance {
    node: usize,
    /// No possible kind has more left of any dimension.
    room: Vector,
    /// What the node's cheapest kind has left.
    slack: Vector,
    kind: Rank,
    /// The node's price rises by this at least when its kind must change.
    least_rise: u64,
}

/// Items by node, or nothing when there would be too many nodes or too much work.
pub(super) fn fill(problem: &Problem, manner: &Manner<'_>, work: &mut Work) -> Option<Vec<Vec<Place>>> {
    let mut nodes: Vec<Open> = Vec::new();
    let mut open: Vec<Glance> = Vec::new();
    // Nodes only get fuller: where an item did not fit, an equal one does not fit later.
    let mut starts = vec![0; problem.shapes().len()];
    for (place, needed_later) in manner.order.iter().zip(least_needs_after(problem, manner.order)) {
        work.spend(LOOK * problem.prices.all().len() as u64);
        let shape = problem.shape(*place)?;
        let fits = manner.only.and_then(|only| only.get(shape.id)).unwrap_or(&shape.fits);
        let from = starts.get(shape.id).map_or(0, |start| open.partition_point(|glance| glance.node < *start));
        let mut seek = Seek { prices: &problem.prices, shape, fits, choice: manner.choice, work };
        let at = match seek.find(&nodes, open.get(from..).unwrap_or_default()) {
            Some((found, kind)) => {
                let glance = open.get(from + found)?;
                nodes.get_mut(glance.node)?.take(&problem.prices, *place, shape, fits, kind)?;
                from + found
            }
            None => {
                if nodes.len() == manner.most_nodes || work.is_spent() {
                    return None;
                }
                nodes.push(Open::new(&problem.prices, *place, shape, fits)?);
                open.push(Glance { node: nodes.len() - 1, ..Glance::default() });
                open.len() - 1
            }
        };
        let glance = open.get_mut(at)?;
        if let (Choice::First, Some(start)) = (manner.choice, starts.get_mut(shape.id)) {
            *start = glance.node;
        }
        *glance = nodes.get(glance.node)?.glance(&problem.prices, glance.node)?;
        if !fits_in(&needed_later, &glance.room) {
            open.remove(at);
        }
    }
    Some(nodes.into_iter().map(|node| node.items).collect())
}

/// For each item, the least that any item after it needs of each dimension.
fn least_needs_after(problem: &Problem, order: &[Place]) -> Vec<Vector> {
    let mut least = [u64::MAX; DIMENSIONS];
    let mut all: Vec<Vector> = order
        .iter()
        .rev()
        .map(|place| {
            let after = least;
            if let Some(shape) = problem.shape(*place) {
                least.iter_mut().zip(shape.needs).for_each(|(least, need)| *least = need.min(*least));
            }
            after
        })
        .collect();
    all.reverse();
    all
}

/// The search for a node for one item.
struct Seek<'a> {
    prices: &'a PriceList,
    shape: &'a Shape,
    fits: &'a [u64],
    choice: Choice,
    work: &'a mut Work,
}

impl Seek<'_> {
    /// The place of the node in `open`, and the kind that it then is.
    fn find(&mut self, nodes: &[Open], open: &[Glance]) -> Option<(usize, Rank)> {
        let needs = &self.shape.needs;
        let mut best: Option<(u64, usize, Rank)> = None;
        for (at, glance) in open.iter().enumerate() {
            self.work.spend(LOOK);
            if !fits_in(needs, &glance.room) {
                continue;
            }
            if fits_in(needs, &glance.slack) && has(self.fits, glance.kind) {
                return Some((at, glance.kind));
            }
            if best.is_some_and(|(rise, ..)| rise <= glance.least_rise) {
                continue;
            }
            self.work.spend(ASK_ONE);
            let node = nodes.get(glance.node)?;
            if node.possible.iter().zip(self.fits).all(|(possible, fits)| possible & fits == 0) {
                continue;
            }
            self.work.spend(ASK_ALL);
            let Some(kind) = self.prices.cheapest(&node.possible, self.fits, &node.used, needs) else { continue };
            if self.choice == Choice::First {
                return Some((at, kind));
            }
            let rise = self.prices.get(kind)?.price.saturating_sub(node.price);
            if best.is_none_or(|(least, ..)| rise < least) {
                best = Some((rise, at, kind));
            }
        }
        best.map(|(_, at, kind)| (at, kind))
    }
}

// === impl Open ===

impl Open {
    fn new(prices: &PriceList, place: Place, shape: &Shape, fits: &[u64]) -> Option<Self> {
        let kind = lowest(fits.iter().copied())?;
        let price = prices.get(kind)?.price;
        Some(Self { items: vec![place], used: shape.needs, possible: fits.to_vec(), kind, price })
    }

    fn take(&mut self, prices: &PriceList, place: Place, shape: &Shape, fits: &[u64], kind: Rank) -> Option<()> {
        self.used = plus(&self.used, &shape.needs)?;
        keep(&mut self.possible, fits);
        prices.narrow(&mut self.possible, &self.used);
        self.items.push(place);
        (self.kind, self.price) = (kind, prices.get(kind)?.price);
        Some(())
    }

    fn glance(&self, prices: &PriceList, node: usize) -> Option<Glance> {
        let next = ones(&self.possible).nth(1).and_then(|rank| prices.get(rank));
        Some(Glance {
            node,
            room: minus(&prices.most(&self.possible), &self.used),
            slack: minus(&prices.get(self.kind)?.holds, &self.used),
            kind: self.kind,
            least_rise: next.map_or(u64::MAX, |next| next.price.saturating_sub(self.price)),
        })
    }
}
