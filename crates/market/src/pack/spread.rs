// SPDX-License-Identifier: Apache-2.0
//! Emptying a node into the others: as far as they have room, or wholly where their prices rise least.

use super::improve::Improver;
use super::node::{Filled, Load};
use super::problem::Place;
use super::work::{ASK_ALL, ASK_ONE, LOOK, MOVE};

/// Nodes that got an item, and their loads before, in the order of the moves.
type Moves = Vec<(usize, Load)>;

impl Improver<'_> {
    /// Moves items to nodes that have room for them, as far as this node gets cheaper by it.
    /// Whether the node is gone.
    pub(super) fn drain(&mut self, at: usize) -> bool {
        let Some(node) = self.nodes.get(at) else { return false };
        let mut left = node.items.clone();
        left.sort_unstable();
        // Turn and turn about: small items find room more often, large ones make more of a difference.
        let order = if self.round.is_multiple_of(2) { left.clone() } else { left.iter().rev().copied().collect() };
        let mut moves = Moves::new();
        let mut best = (node.load.price, 0, None);
        for place in order {
            if self.work.is_spent() {
                break;
            }
            let Some(other) = self.room_elsewhere(place, at) else { continue };
            if !self.move_to(other, place, &mut moves) {
                continue;
            }
            left.retain(|there| *there != place);
            if left.is_empty() {
                self.nodes.remove(at);
                return true;
            }
            self.work.spend(ASK_ONE * left.len() as u64);
            let load = Load::new(self.problem, &left, self.round);
            if let Some(load) = load.filter(|load| load.price < best.0) {
                best = (load.price, moves.len(), Some(Filled { items: left.clone(), load }));
            }
        }
        self.undo(moves, best.1);
        if let (Some(rest), Some(node)) = (best.2, self.nodes.get_mut(at)) {
            *node = rest;
        }
        false
    }

    /// Spreads a node's items over the others, if their prices rise by less than `below` in all.
    /// Whether that was done.
    pub(super) fn dissolve(&mut self, at: usize, below: u64) -> bool {
        let Some(node) = self.nodes.get(at) else { return false };
        let mut items = node.items.clone();
        items.sort_unstable();
        let mut moves = Moves::new();
        let mut left = below;
        for place in items {
            let to = self.least_rise(place, at).filter(|(rise, _)| *rise < left && !self.work.is_spent());
            if !to.is_some_and(|(_, other)| self.move_to(other, place, &mut moves)) {
                self.undo(moves, 0);
                return false;
            }
            left -= to.map_or(0, |(rise, _)| rise);
        }
        self.nodes.remove(at);
        true
    }

    fn room_elsewhere(&mut self, place: Place, here: usize) -> Option<usize> {
        let shape = self.problem.shape(place)?;
        let found = self.nodes.iter().enumerate().position(|(at, node)| at != here && node.load.has_room(shape));
        self.work.spend(LOOK * found.unwrap_or(self.nodes.len()) as u64);
        found
    }

    /// The other node whose price rises least with this item, and by how much.
    fn least_rise(&mut self, place: Place, here: usize) -> Option<(u64, usize)> {
        if let Some(other) = self.room_elsewhere(place, here) {
            return Some((0, other));
        }
        let shape = self.problem.shape(place)?;
        self.work.spend(ASK_ALL * self.nodes.len() as u64);
        let others = self.nodes.iter().enumerate().filter(|(at, _)| *at != here);
        others.filter_map(|(at, node)| Some((node.load.rise(self.problem, shape)?, at))).min()
    }

    fn move_to(&mut self, other: usize, place: Place, moves: &mut Moves) -> bool {
        self.work.spend(MOVE);
        let before = self.nodes.get_mut(other).and_then(|node| node.take(self.problem, place, self.round));
        let moved = before.is_some();
        moves.extend(before.map(|before| (other, before)));
        moved
    }

    /// Takes all moves back but the first so many.
    fn undo(&mut self, mut moves: Moves, but: usize) {
        for (other, before) in moves.drain(but..).rev() {
            if let Some(node) = self.nodes.get_mut(other) {
                node.give_back(before);
            }
        }
    }
}
