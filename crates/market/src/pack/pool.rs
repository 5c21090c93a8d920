// SPDX-License-Identifier: Apache-2.0
//! The items of one or two nodes, to be bought for anew: as one machine, or as two.

use super::kind_set::{has, keep, ones};
use super::price_list::{Rank, Ranked};
use super::problem::{Place, Problem, Shape};
use super::work::{ASK_ALL, ASK_ONE, LOOK, Work};
use super::{Vector, fits_in, minus, plus};

pub(super) struct Pool<'a> {
    problem: &'a Problem,
    /// Largest first.
    items: Vec<(Place, &'a Shape)>,
    total: Vector,
    /// The ranks that some item fits, and those that every item fits.
    some: Vec<u64>,
    every: Vec<u64>,
}

/// A kind of machine for a part of a pool, and which part of it.
struct Division {
    kind: Rank,
    smallest_first: bool,
}

impl<'a> Pool<'a> {
    /// `None` when the sum of the needs cannot be counted.
    pub fn new(problem: &'a Problem, mut places: Vec<Place>) -> Option<Self> {
        places.sort_unstable();
        let items = places.into_iter().map(|place| Some((place, problem.shape(place)?))).collect::<Option<Vec<_>>>()?;
        let words = problem.prices.words();
        let mut pool =
            Self { problem, items, total: Vector::default(), some: vec![0; words], every: vec![u64::MAX; words] };
        for (_, shape) in &pool.items {
            pool.total = plus(&pool.total, &shape.needs)?;
            pool.some.iter_mut().zip(&shape.fits).for_each(|(some, fits)| *some |= fits);
            keep(&mut pool.every, &shape.fits);
        }
        Some(pool)
    }

    /// The parts of a cheaper way than `below`, if one is found.
    pub fn divide(&self, below: u64, work: &mut Work) -> Option<Vec<Vec<Place>>> {
        let whole = self.cheapest(&self.every, &self.total).map(|kind| kind.price).filter(|price| *price < below);
        let two = self.in_two(whole.unwrap_or(below), work);
        match (two, whole) {
            (Some(two), _) => Some(self.parts(&two)),
            (None, Some(_)) => Some(vec![self.items.iter().map(|(place, _)| *place).collect()]),
            (None, None) => None,
        }
    }

    fn cheapest(&self, ranks: &[u64], amounts: &Vector) -> Option<&Ranked> {
        let rank = self.problem.prices.cheapest(ranks, ranks, &Vector::default(), amounts)?;
        self.problem.prices.get(rank)
    }

    /// Tries each kind for the first machine: fills it, and looks for the cheapest machine for the rest.
    fn in_two(&self, mut below: u64, work: &mut Work) -> Option<Division> {
        let mut best = None;
        let mut others = self.some.clone();
        for rank in ones(&self.some) {
            let kind = self.problem.prices.get(rank)?;
            if kind.price >= below || work.is_spent() {
                break;
            }
            work.spend(ASK_ONE);
            if !self.can_pay_off(kind, below - kind.price) {
                continue;
            }
            for smallest_first in [false, true] {
                let division = Division { kind: rank, smallest_first };
                let rest = self.rest(&division, &mut others);
                work.spend(ASK_ALL + LOOK * self.items.len() as u64);
                let Some(other) = rest.and_then(|rest| self.cheapest(&others, &rest)) else { continue };
                if kind.price + other.price < below {
                    below = kind.price + other.price;
                    best = Some(division);
                }
            }
        }
        best
    }

    /// Whether what this kind leaves over may fit a machine below a price: a quick look at one dimension at a time.
    fn can_pay_off(&self, kind: &Ranked, below: u64) -> bool {
        let rest = minus(&self.total, &kind.holds);
        let least = |(dimension, rest)| self.problem.prices.least_price(dimension, rest);
        rest.into_iter()
            .enumerate()
            .filter(|(_, rest)| *rest > 0)
            .all(|one| least(one).is_some_and(|least| least < below))
    }

    /// The sum of what does not go on the first machine, with `others` set to the kinds that all of it fits; `None`
    /// when one of the two machines would be empty.
    fn rest(&self, division: &Division, others: &mut [u64]) -> Option<Vector> {
        others.fill(u64::MAX);
        let mut rest = Vector::default();
        let mut inside_count = 0;
        self.go_through(division, |_, shape, inside| {
            if inside {
                inside_count += 1;
            } else {
                // No overflow: it is part of a sum that has been counted.
                rest = plus(&rest, &shape.needs).unwrap_or(self.total);
                keep(others, &shape.fits);
            }
        });
        (0 < inside_count && inside_count < self.items.len()).then_some(rest)
    }

    fn parts(&self, division: &Division) -> Vec<Vec<Place>> {
        let (mut first, mut second) = (Vec::new(), Vec::new());
        self.go_through(division, |place, _, inside| if inside { first.push(place) } else { second.push(place) });
        vec![first, second]
    }

    /// Fills the first machine and tells for each item whether it is inside.
    fn go_through(&self, division: &Division, mut tell: impl FnMut(Place, &Shape, bool)) {
        let Some(kind) = self.problem.prices.get(division.kind) else { return };
        let mut room = kind.holds;
        let mut visit = |(place, shape): &(Place, &Shape)| {
            let inside = has(&shape.fits, division.kind) && fits_in(&shape.needs, &room);
            if inside {
                room = minus(&room, &shape.needs);
            }
            tell(*place, shape, inside);
        };
        if division.smallest_first {
            self.items.iter().rev().for_each(&mut visit)
        } else {
            self.items.iter().for_each(&mut visit)
        }
    }
}
