// SPDX-License-Identifier: Apache-2.0
//! Numbers for things that come again and again.

use std::collections::HashMap;
use std::hash::Hash;

use foldhash::fast::FixedState;

/// Gives every different key a number, in the order in which they come.
pub struct Numbers<K> {
    known: HashMap<K, u32, FixedState>,
    keys: Vec<K>,
    /// Lists are sorted more often than not, so the next key is often the last one again.
    last: Option<(K, u32)>,
}

// === impl Numbers ===

impl<K: Copy + Eq + Hash + Ord> Numbers<K> {
    pub fn new() -> Self {
        Self { known: HashMap::default(), keys: Vec::new(), last: None }
    }

    pub fn of(&mut self, key: K) -> u32 {
        if let Some((last, number)) = self.last
            && last == key
        {
            return number;
        }
        let next = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        let number = *self.known.entry(key).or_insert(next);
        if number == next {
            self.keys.push(key);
        }
        self.last = Some((key, number));
        number
    }

    pub fn keys(&self) -> &[K] {
        &self.keys
    }
}

/// Puts things in order and says where each of them went.
pub fn sorted<T: Ord>(things: Vec<T>) -> (Vec<T>, Vec<u32>) {
    let mut numbered: Vec<(T, usize)> = things.into_iter().zip(0..).collect();
    numbered.sort_unstable();
    let mut places = vec![0; numbered.len()];
    for (place, (_, old)) in (0_u32..).zip(&numbered) {
        if let Some(slot) = places.get_mut(*old) {
            *slot = place;
        }
    }
    (numbered.into_iter().map(|(thing, _)| thing).collect(), places)
}
