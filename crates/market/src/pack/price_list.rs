// SPDX-License-Identifier: Apache-2.0
//! The machine kinds that can be bought, prepared for quick questions.
//!
//! Kinds are ranked by price, so the cheapest of a set of ranks is its lowest bit. For each dimension and each amount
//! that any kind has, the kinds with at least that much are known: who holds a whole machine's needs is an
//! intersection of such sets.

use super::kind_set::{KindSet, lowest, ones, words_for};
use super::{DIMENSIONS, Kind, Vector};

/// The place of a kind in the order of prices, equal prices in the order of the caller's list.
pub(super) type Rank = usize;

/// A kind that can be bought.
pub(super) struct Ranked {
    pub holds: Vector,
    pub price: u64,
    /// Its place in the caller's list.
    pub index: usize,
}

pub(super) struct PriceList {
    ranked: Vec<Ranked>,
    levels: Vec<Levels>,
    words: usize,
}

/// For one dimension: which kinds hold at least so much.
struct Levels {
    /// All amounts that a kind has, ascending.
    amounts: Vec<u64>,
    /// The ranks that hold at least the amount at the same place.
    ranks: Vec<Vec<u64>>,
    /// The least price of those.
    prices: Vec<u64>,
}

// === impl PriceList ===

impl PriceList {
    /// A kind without a positive price is not for sale: nobody knows what it would cost.
    pub fn new(kinds: &[Kind]) -> Self {
        let for_sale = |(index, kind): (usize, &Kind)| {
            let price = u64::try_from(kind.price.micros()).ok().filter(|price| *price > 0)?;
            Some(Ranked { holds: kind.holds.vector(), price, index })
        };
        let mut ranked: Vec<Ranked> = kinds.iter().enumerate().filter_map(for_sale).collect();
        ranked.sort_by_key(|kind| (kind.price, kind.index));
        let words = words_for(ranked.len());
        let levels = (0..DIMENSIONS).map(|dimension| Levels::new(&ranked, dimension, words)).collect();
        Self { ranked, levels, words }
    }

    pub fn get(&self, rank: Rank) -> Option<&Ranked> {
        self.ranked.get(rank)
    }

    pub fn all(&self) -> &[Ranked] {
        &self.ranked
    }

    /// How long all sets of ranks are.
    pub fn words(&self) -> usize {
        self.words
    }

    /// The same kinds as ranks.
    pub fn ranks_of(&self, kinds: &KindSet) -> Vec<u64> {
        let ranks = self.ranked.iter().enumerate().filter(|(_, kind)| kinds.has(kind.index)).map(|(rank, _)| rank);
        ranks.collect::<KindSet>().into_words(self.words)
    }

    /// Takes those out of `ranks` that do not hold `amounts`.
    pub fn narrow(&self, ranks: &mut [u64], amounts: &Vector) {
        for (levels, amount) in self.levels.iter().zip(amounts) {
            match levels.at_least(*amount) {
                Some(enough) => ranks.iter_mut().zip(enough).for_each(|(word, enough)| *word &= enough),
                None => ranks.fill(0),
            }
        }
    }

    /// The cheapest kind in both sets that holds `before` and `more` together, where all of `one` hold `before`.
    pub fn cheapest(&self, one: &[u64], two: &[u64], before: &Vector, more: &Vector) -> Option<Rank> {
        // What nothing is added to holds still, so a set that says nothing new may stand in.
        let mut rows = [one; DIMENSIONS];
        for (((row, levels), before), more) in rows.iter_mut().zip(&self.levels).zip(before).zip(more) {
            if *more > 0 {
                *row = levels.at_least(before.checked_add(*more)?)?;
            }
        }
        let [a, b, c, d, e] = rows;
        let rows = a.iter().zip(b).zip(c).zip(d).zip(e).map(|((((a, b), c), d), e)| a & b & c & d & e);
        lowest(one.iter().zip(two).zip(rows).map(|((one, two), row)| one & two & row))
    }

    /// No machine that holds so much of one dimension costs less; `None` when there is no such machine.
    pub fn least_price(&self, dimension: usize, amount: u64) -> Option<u64> {
        let levels = self.levels.get(dimension)?;
        levels.prices.get(levels.place(amount)).copied()
    }

    /// The most of each dimension that any of these kinds holds.
    pub fn most(&self, ranks: &[u64]) -> Vector {
        let mut most = Vector::default();
        for kind in ones(ranks).filter_map(|rank| self.ranked.get(rank)) {
            most.iter_mut().zip(kind.holds).for_each(|(most, holds)| *most = holds.max(*most));
        }
        most
    }
}

// === impl Levels ===

impl Levels {
    fn new(ranked: &[Ranked], dimension: usize, words: usize) -> Self {
        let held = |kind: &Ranked| kind.holds.get(dimension).copied().unwrap_or_default();
        let mut amounts: Vec<u64> = ranked.iter().map(held).collect();
        amounts.sort_unstable();
        amounts.dedup();
        let (mut ranks, mut prices) = (Vec::new(), Vec::new());
        for least in &amounts {
            let enough = || ranked.iter().enumerate().filter(|(_, kind)| held(kind) >= *least);
            ranks.push(enough().map(|(rank, _)| rank).collect::<KindSet>().into_words(words));
            prices.push(enough().map(|(_, kind)| kind.price).min().unwrap_or(u64::MAX));
        }
        Self { amounts, ranks, prices }
    }

    /// The place of the lowest amount that is enough.
    fn place(&self, amount: u64) -> usize {
        self.amounts.partition_point(|there| *there < amount)
    }

    fn at_least(&self, amount: u64) -> Option<&[u64]> {
        self.ranks.get(self.place(amount)).map(Vec::as_slice)
    }
}
