// SPDX-License-Identifier: Apache-2.0
//! A bound on the work, counted and not timed: a slow machine gives the same answer, only later.

/// A look at one node or one item. This and the others are what the step takes, in about as many nanoseconds.
pub(super) const LOOK: u64 = 3;
/// A question to the price list about one dimension at a time, and about all of them.
pub(super) const ASK_ONE: u64 = 9;
pub(super) const ASK_ALL: u64 = 40;
/// The move of an item to another node.
pub(super) const MOVE: u64 = 100;

/// What has been done, and what may be done.
pub(super) struct Work {
    done: u64,
    most: u64,
}

impl Work {
    pub fn at_most(most: u64) -> Self {
        Self { done: 0, most }
    }

    /// A large part of what is left.
    pub fn share(&self) -> Self {
        Self::at_most(self.most.saturating_sub(self.done) / 3 * 2)
    }

    pub fn spend(&mut self, steps: u64) {
        self.done = self.done.saturating_add(steps);
    }

    pub fn done(&self) -> u64 {
        self.done
    }

    pub fn is_spent(&self) -> bool {
        self.done >= self.most
    }
}
