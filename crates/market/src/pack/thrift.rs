// SPDX-License-Identifier: Apache-2.0
//! What an item is worth, and which kinds are a good deal for it.
//!
//! An item's share of a machine is that of the dimension it takes most of: such a part of the price it pays if the
//! machine is filled with its like. Its worth is the least that it would pay on any kind.

use std::cmp::Reverse;

use super::Vector;
use super::kind_set::{KindSet, ones};
use super::price_list::{Rank, Ranked};
use super::problem::{Place, Problem, Shape};

/// Prices of single units are held in this many parts of a micro-dollar: a MiB of disk is far below one.
const PARTS: u128 = 1 << 12;

pub(super) struct Thrift {
    /// By rank: what one unit of each dimension costs if the machine is sold by that dimension alone.
    unit_prices: Vec<Vector>,
    /// By the place of the shape.
    worth: Vec<u64>,
    order: Vec<Place>,
}

impl Thrift {
    pub fn new(problem: &Problem) -> Self {
        let unit_prices = problem.prices.all().iter().map(unit_prices).collect();
        let mut thrift = Self { unit_prices, worth: Vec::new(), order: (0..problem.len()).collect() };
        let worth = problem.shapes().iter().map(|shape| thrift.shares(shape).map(|(_, share)| share).min());
        thrift.worth = worth.map(Option::unwrap_or_default).collect();
        let worth = |place: &Place| problem.shape(*place).and_then(|shape| thrift.worth.get(shape.id));
        thrift.order.sort_by_key(|place| Reverse(worth(place)));
        thrift
    }

    /// The items, those with the most worth first.
    pub fn order(&self) -> &[Place] {
        &self.order
    }

    /// For each shape the kinds where its share costs at most `tenths` tenths of its worth.
    pub fn good_deals(&self, problem: &Problem, tenths: u64) -> Vec<Vec<u64>> {
        let good = |(shape, worth): (&Shape, &u64)| {
            let most = (worth / 10).saturating_mul(tenths).max(*worth);
            let ranks = self.shares(shape).filter(|(_, share)| *share <= most).map(|(rank, _)| rank);
            ranks.collect::<KindSet>().into_words(problem.prices.words())
        };
        problem.shapes().iter().zip(&self.worth).map(good).collect()
    }

    /// The kinds that fit, and what the share costs there.
    fn shares(&self, shape: &Shape) -> impl Iterator<Item = (Rank, u64)> {
        ones(&shape.fits).filter_map(|rank| {
            let units = self.unit_prices.get(rank)?;
            Some((rank, share(&shape.needs, units)))
        })
    }
}

fn unit_prices(kind: &Ranked) -> Vector {
    kind.holds.map(|holds| {
        let price = u128::from(kind.price).saturating_mul(PARTS).checked_div(u128::from(holds));
        price.and_then(|price| u64::try_from(price).ok()).unwrap_or(u64::MAX)
    })
}

fn share(needs: &Vector, units: &Vector) -> u64 {
    needs.iter().zip(units).map(|(need, price)| need.saturating_mul(*price)).max().unwrap_or_default()
}
