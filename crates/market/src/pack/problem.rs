// SPDX-License-Identifier: Apache-2.0
//! The question, prepared: the items that can be placed, largest first, and equal items known as equal.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::price_list::PriceList;
use super::{Item, Kind, KindSet, Vector};

/// The place of an item in the order of size.
pub(super) type Place = usize;

pub(super) struct Problem {
    pub prices: PriceList,
    shapes: Vec<Shape>,
    /// The placeable items, largest first: the place of the shape, and the place in the caller's list.
    items: Vec<(usize, usize)>,
}

/// What all equal items share.
pub(super) struct Shape {
    /// Its place among all shapes.
    pub id: usize,
    pub needs: Vector,
    /// The ranks of the kinds that may run such an item and hold at least one.
    pub fits: Vec<u64>,
}

impl Problem {
    pub fn new(items: &[Item], kinds: &[Kind]) -> Self {
        let numbered = items.iter().enumerate();
        let mut order: Vec<_> =
            numbered.map(|(index, item)| (Reverse(item.needs.vector()), index, &item.allowed)).collect();
        order.sort_unstable();
        let prices = PriceList::new(kinds);
        let mut ranks: BTreeMap<&KindSet, Vec<u64>> = BTreeMap::new();
        let mut known: BTreeMap<(Vector, &KindSet), Option<usize>> = BTreeMap::new();
        let (mut shapes, mut placeable) = (Vec::new(), Vec::new());
        for (Reverse(needs), index, allowed) in order {
            let shape = *known.entry((needs, allowed)).or_insert_with(|| {
                let mut fits = ranks.entry(allowed).or_insert_with(|| prices.ranks_of(allowed)).clone();
                prices.narrow(&mut fits, &needs);
                fits.iter().any(|word| *word != 0).then(|| {
                    shapes.push(Shape { id: shapes.len(), needs, fits });
                    shapes.len() - 1
                })
            });
            placeable.extend(shape.map(|shape| (shape, index)));
        }
        Self { prices, shapes, items: placeable }
    }

    /// How many items can be placed.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    pub fn shape(&self, place: Place) -> Option<&Shape> {
        self.items.get(place).and_then(|(shape, _)| self.shapes.get(*shape))
    }

    /// Where the caller's list has it.
    pub fn index(&self, place: Place) -> Option<usize> {
        self.items.get(place).map(|(_, index)| *index)
    }
}
