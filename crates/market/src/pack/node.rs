// SPDX-License-Identifier: Apache-2.0
//! One machine with its items, always of the cheapest kind that holds them.

use super::kind_set::{has, keep, lowest};
use super::price_list::Rank;
use super::problem::{Place, Problem, Shape};
use super::{Vector, fits_in, minus, plus};

#[derive(Clone)]
pub(super) struct Filled {
    pub items: Vec<Place>,
    pub load: Load,
}

/// All about a machine but the names of its items.
#[derive(Clone)]
pub(super) struct Load {
    pub kind: Rank,
    pub price: u64,
    /// The round of improvement in which the items last changed.
    pub changed: u64,
    used: Vector,
    /// What the kind has left.
    slack: Vector,
    /// All kinds that would hold the items.
    possible: Vec<u64>,
}

// === impl Filled ===

impl Filled {
    /// `None` when no kind holds the items.
    pub fn new(problem: &Problem, items: Vec<Place>, changed: u64) -> Option<Self> {
        let load = Load::new(problem, &items, changed)?;
        Some(Self { items, load })
    }

    /// Takes one more, and returns the load of before; does nothing when no kind would hold it.
    pub fn take(&mut self, problem: &Problem, place: Place, changed: u64) -> Option<Load> {
        let load = self.load.with(problem, problem.shape(place)?, changed)?;
        self.items.push(place);
        Some(std::mem::replace(&mut self.load, load))
    }

    /// Gives the last one back.
    pub fn give_back(&mut self, before: Load) {
        self.items.pop();
        self.load = before;
    }
}

// === impl Load ===

impl Load {
    pub fn new(problem: &Problem, items: &[Place], changed: u64) -> Option<Self> {
        let mut used = Vector::default();
        let mut possible = vec![u64::MAX; problem.prices.words()];
        for place in items {
            let shape = problem.shape(*place)?;
            used = plus(&used, &shape.needs)?;
            keep(&mut possible, &shape.fits);
        }
        Self::settled(problem, used, possible, changed)
    }

    fn with(&self, problem: &Problem, shape: &Shape, changed: u64) -> Option<Self> {
        let mut possible = self.possible.clone();
        keep(&mut possible, &shape.fits);
        Self::settled(problem, plus(&self.used, &shape.needs)?, possible, changed)
    }

    fn settled(problem: &Problem, used: Vector, mut possible: Vec<u64>, changed: u64) -> Option<Self> {
        problem.prices.narrow(&mut possible, &used);
        let kind = lowest(possible.iter().copied())?;
        let ranked = problem.prices.get(kind)?;
        Some(Self { kind, price: ranked.price, changed, used, slack: minus(&ranked.holds, &used), possible })
    }

    /// Whether one more fits without another kind.
    pub fn has_room(&self, shape: &Shape) -> bool {
        fits_in(&shape.needs, &self.slack) && has(&shape.fits, self.kind)
    }

    /// By how much the price rises with one more; `None` when no kind would hold it.
    pub fn rise(&self, problem: &Problem, shape: &Shape) -> Option<u64> {
        let kind = problem.prices.cheapest(&self.possible, &shape.fits, &self.used, &shape.needs)?;
        problem.prices.get(kind).map(|kind| kind.price.saturating_sub(self.price))
    }
}
