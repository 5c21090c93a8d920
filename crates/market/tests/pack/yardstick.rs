// SPDX-License-Identifier: Apache-2.0
//! What a packing is judged by, written as plainly as can be: first fit, every way there is, and the rules.

use bivouac_core::Money;
use bivouac_market::Packing;
use bivouac_market::pack::{Amounts, Item, Kind};

/// A packing without the names of the items.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub cost: i128,
    pub nodes: usize,
    pub unplaceable: Vec<usize>,
}

fn dimensions(amounts: &Amounts) -> [u128; 5] {
    [amounts.gpus, amounts.cpu, amounts.memory, amounts.disk, amounts.pods].map(u128::from)
}

/// The cheapest kind for all of these on one machine, the first of equals.
fn cheapest(group: &[usize], items: &[Item], kinds: &[Kind]) -> Option<usize> {
    let holds = |(at, kind): &(usize, &Kind)| {
        let room = dimensions(&kind.holds);
        let enough = |dimension: usize| {
            group.iter().map(|item| dimensions(&items[*item].needs)[dimension]).sum::<u128>() <= room[dimension]
        };
        kind.price > Money::ZERO && group.iter().all(|item| items[*item].allowed.has(*at)) && (0..5).all(enough)
    };
    let fitting = kinds.iter().enumerate().filter(holds);
    fitting.min_by_key(|(at, kind)| (kind.price, *at)).map(|(at, _)| at)
}

fn price(group: &[usize], items: &[Item], kinds: &[Kind]) -> Option<i128> {
    cheapest(group, items, kinds).map(|kind| i128::from(kinds[kind].price.micros()))
}

/// Largest item first, each on the first node that can take it.
pub fn first_fit(items: &[Item], kinds: &[Kind]) -> Outcome {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by(|one, two| dimensions(&items[*two].needs).cmp(&dimensions(&items[*one].needs)).then(one.cmp(two)));
    let (mut nodes, mut unplaceable): (Vec<Vec<usize>>, Vec<usize>) = Default::default();
    for item in order {
        let with = |node: &Vec<usize>| [node.as_slice(), &[item]].concat();
        if let Some(node) = nodes.iter_mut().find(|node| cheapest(&with(node), items, kinds).is_some()) {
            node.push(item);
        } else if cheapest(&[item], items, kinds).is_some() {
            nodes.push(vec![item]);
        } else {
            unplaceable.push(item);
        }
    }
    unplaceable.sort_unstable();
    let cost = nodes.iter().filter_map(|node| price(node, items, kinds)).sum();
    Outcome { cost, nodes: nodes.len(), unplaceable }
}

/// The least cost on at most so many nodes, by trying every way to divide the items.
pub fn least_cost(items: &[Item], kinds: &[Kind], most_nodes: usize) -> Option<i128> {
    let mut search = Search { items, kinds, most_nodes, best: None };
    let placeable = (0..items.len()).filter(|item| cheapest(&[*item], items, kinds).is_some());
    let placeable: Vec<usize> = placeable.collect();
    search.divide(&placeable, &mut Vec::new());
    search.best
}

struct Search<'a> {
    items: &'a [Item],
    kinds: &'a [Kind],
    most_nodes: usize,
    best: Option<i128>,
}

impl Search<'_> {
    fn divide(&mut self, left: &[usize], groups: &mut Vec<(Vec<usize>, i128)>) {
        let cost = groups.iter().map(|(_, price)| price).sum();
        // More items never make a group cheaper.
        if self.best.is_some_and(|best| cost >= best) {
            return;
        }
        let Some((item, left)) = left.split_first() else {
            self.best = Some(cost);
            return;
        };
        for at in 0..groups.len() {
            let before = groups[at].clone();
            groups[at].0.push(*item);
            if let Some(price) = price(&groups[at].0, self.items, self.kinds) {
                groups[at].1 = price;
                self.divide(left, groups);
            }
            groups[at] = before;
        }
        if groups.len() < self.most_nodes
            && let Some(price) = price(&[*item], self.items, self.kinds)
        {
            groups.push((vec![*item], price));
            self.divide(left, groups);
            groups.pop();
        }
    }
}

/// What is wrong with a packing by its own rules.
pub fn check(packing: &Packing, items: &[Item], kinds: &[Kind]) -> Result<Outcome, String> {
    let mut seen = packing.unplaceable.clone();
    let mut cost = 0;
    for (at, node) in packing.nodes.iter().enumerate() {
        if node.items.is_empty() || !node.items.is_sorted() {
            return Err(format!("node {at} has the items {:?}", node.items));
        }
        match cheapest(&node.items, items, kinds) {
            // That it is the cheapest says that it holds them and that they may run there.
            Some(kind) if kind == node.kind => cost += i128::from(kinds[kind].price.micros()),
            other => return Err(format!("node {at} is of kind {}, and the cheapest is {other:?}", node.kind)),
        }
        seen.extend(&node.items);
    }
    seen.sort_unstable();
    if seen != (0..items.len()).collect::<Vec<_>>() {
        return Err(format!("not every item is there once: {seen:?}"));
    }
    if let Some(item) = packing.unplaceable.iter().find(|item| cheapest(&[**item], items, kinds).is_some()) {
        return Err(format!("item {item} can be placed"));
    }
    if !packing.nodes.is_sorted_by_key(|node| node.items.first()) || !packing.unplaceable.is_sorted() {
        return Err("not in order".to_owned());
    }
    if i128::from(packing.cost.micros()) != cost.min(i128::from(Money::MAX.micros())) {
        return Err(format!("the cost is {}, not {cost}", packing.cost));
    }
    Ok(Outcome { cost, nodes: packing.nodes.len(), unplaceable: packing.unplaceable.clone() })
}
