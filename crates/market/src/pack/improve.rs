// SPDX-License-Identifier: Apache-2.0
//! Making a packing cheaper step by step. No step makes it dearer or gives it more nodes than it may have.

use super::exact;
use super::node::Filled;
use super::pool::Pool;
use super::problem::{Place, Problem};
use super::work::{ASK_ONE, Work};

pub(super) struct Improver<'a> {
    pub problem: &'a Problem,
    pub nodes: Vec<Filled>,
    pub most_nodes: usize,
    pub work: &'a mut Work,
    pub round: u64,
}

/// What matters, lower is better: the cost, then the number of nodes.
pub(super) fn value(nodes: &[Filled]) -> (u128, usize) {
    (nodes.iter().map(|node| u128::from(node.load.price)).sum(), nodes.len())
}

impl Improver<'_> {
    /// Goes on until a whole round finds nothing or the work is spent; `None` when there are too many nodes to begin
    /// with, and no way to have fewer.
    pub fn run(mut self) -> Option<Vec<Filled>> {
        self.shrink()?;
        self.improve();
        Some(self.nodes)
    }

    /// The same with a closer look, which takes long for what it finds.
    pub fn polish(mut self) -> Vec<Filled> {
        loop {
            let before = value(&self.nodes);
            self.rebuild_groups();
            if value(&self.nodes) == before || self.work.is_spent() {
                return self.nodes;
            }
            self.improve();
        }
    }

    fn improve(&mut self) {
        loop {
            self.round += 1;
            let before = value(&self.nodes);
            self.each(Self::drain);
            self.each(Self::split);
            self.rebuild_pairs();
            self.each(Self::give_up);
            if value(&self.nodes) == before || self.work.is_spent() {
                return;
            }
        }
    }

    /// Gives up nodes at any price until there are few enough, the cheapest first.
    fn shrink(&mut self) -> Option<()> {
        while self.nodes.len() > self.most_nodes {
            let mut order: Vec<usize> = (0..self.nodes.len()).collect();
            order.sort_by_key(|at| self.nodes.get(*at).map(|node| node.load.price));
            self.work.spend(ASK_ONE * order.len() as u64);
            order.into_iter().find(|at| self.dissolve(*at, u64::MAX))?;
        }
        Some(())
    }

    /// Takes a step at every node, and once more where the step says that another node is there now.
    fn each(&mut self, mut step: impl FnMut(&mut Self, usize) -> bool) {
        let mut at = 0;
        while at < self.nodes.len() && !self.work.is_spent() {
            if !step(self, at) {
                at += 1;
            }
        }
    }

    fn give_up(&mut self, at: usize) -> bool {
        self.nodes.get(at).map(|node| node.load.price).is_some_and(|price| self.dissolve(at, price))
    }

    fn split(&mut self, at: usize) -> bool {
        self.nodes.len() < self.most_nodes && self.rebuild_new(&[at])
    }

    /// Looks at every two nodes, those with similar prices first: that is as far as it gets when there are many.
    fn rebuild_pairs(&mut self) {
        self.nodes.sort_by_key(|node| node.load.kind);
        for distance in 1..self.nodes.len() {
            self.each(|all, at| {
                all.rebuild_new(&[at, at + distance]);
                false
            });
        }
    }

    /// Looks at as many nodes at once as have few items together, and finds the best way for those.
    fn rebuild_groups(&mut self) {
        for distance in 1..=self.nodes.len() {
            self.each(|all, at| {
                all.rebuild_group(at, distance);
                false
            });
        }
    }

    fn rebuild_group(&mut self, at: usize, distance: usize) -> bool {
        let (mut group, mut items) = (Vec::new(), Vec::new());
        for (at, node) in self.nodes.iter().enumerate().skip(at).step_by(distance) {
            if items.len() + node.items.len() > exact::FEW {
                break;
            }
            group.push(at);
            items.extend(&node.items);
        }
        self.work.spend(exact::steps(items.len()));
        let most_nodes = self.most_nodes.saturating_sub(self.nodes.len()).saturating_add(group.len());
        exact::divide(self.problem, &items, most_nodes).is_some_and(|parts| self.replace(&group, parts))
    }

    /// Whether the node has changed since the round before looked at it.
    fn is_new(&self, at: usize) -> bool {
        self.nodes.get(at).is_some_and(|node| node.load.changed + 1 >= self.round)
    }

    /// Buys anew for the items of one node or two, if one of them is new.
    fn rebuild_new(&mut self, group: &[usize]) -> bool {
        if !group.iter().any(|at| self.is_new(*at)) || group.last().is_none_or(|last| *last >= self.nodes.len()) {
            return false;
        }
        let nodes = || group.iter().filter_map(|at| self.nodes.get(*at));
        let items = nodes().flat_map(|node| &node.items).copied().collect();
        let price = nodes().fold(0, |sum: u64, node| sum.saturating_add(node.load.price));
        let parts = Pool::new(self.problem, items).and_then(|pool| pool.divide(price, self.work));
        parts.is_some_and(|parts| self.replace(group, parts))
    }

    /// Has these parts instead of those nodes, whose places are ascending, if that costs less.
    fn replace(&mut self, group: &[usize], parts: Vec<Vec<Place>>) -> bool {
        let new = parts.into_iter().map(|items| Filled::new(self.problem, items, self.round));
        let Some(new) = new.collect::<Option<Vec<_>>>() else { return false };
        let old = group.iter().filter_map(|at| self.nodes.get(*at)).map(|node| u128::from(node.load.price));
        if new.is_empty() || value(&new).0 >= old.sum() {
            return false;
        }
        let mut new = new.into_iter();
        let mut empty = Vec::new();
        for at in group {
            match (self.nodes.get_mut(*at), new.next()) {
                (Some(node), Some(new)) => *node = new,
                _ => empty.push(*at),
            }
        }
        self.nodes.extend(new);
        for at in empty.into_iter().rev() {
            self.nodes.remove(at);
        }
        true
    }
}

#[cfg(test)]
#[path = "improve_tests.rs"]
mod tests;
