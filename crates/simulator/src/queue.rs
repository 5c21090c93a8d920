// SPDX-License-Identifier: Apache-2.0
//! Which keys of a controller to look at, and when.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;

use crate::{controller::Refusal, shelf::Key};

/// After a first failure. It doubles with each further one.
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub struct Queue {
    now: BTreeSet<Key>,
    later: BTreeMap<Key, Timestamp>,
    /// The same as `later`, the earliest first.
    order: BTreeSet<(Timestamp, Key)>,
    failures: BTreeMap<Key, (u32, Refusal)>,
}

impl Queue {
    pub fn add(&mut self, key: Key) {
        self.now.insert(key);
    }

    /// The next key that is due: what changed in the order of keys, then what has waited in the order of time.
    pub fn take(&mut self, now: Timestamp) -> Option<Key> {
        let waited = || self.order.first().filter(|(at, _)| *at <= now).map(|(_, key)| key.clone());
        let key = self.now.pop_first().or_else(waited)?;
        // A change makes the wait for it pointless: the new plan says how long to wait, if at all.
        if let Some(at) = self.later.remove(&key) {
            self.order.remove(&(at, key.clone()));
        }
        Some(key)
    }

    pub fn later(&mut self, key: &Key, at: Timestamp) {
        match self.later.get(key).copied() {
            Some(known) if known <= at => return,
            Some(known) => self.order.remove(&(known, key.clone())),
            None => true,
        };
        self.later.insert(key.clone(), at);
        self.order.insert((at, key.clone()));
    }

    pub fn refusal(&self, key: &Key) -> Option<&Refusal> {
        self.failures.get(key).map(|(_, refusal)| refusal)
    }

    pub fn succeeded(&mut self, key: &Key) {
        self.failures.remove(key);
    }

    /// Tries again after a while that grows.
    pub fn failed(&mut self, key: &Key, refusal: Refusal, now: Timestamp) {
        let (count, last) = self.failures.entry(key.clone()).or_default();
        let wait = FIRST_RETRY.saturating_mul(1 << (*count).min(12)).min(LAST_RETRY);
        *count += 1;
        *last = refusal;
        self.later(key, now.checked_add(wait).unwrap_or(Timestamp::MAX));
    }

    /// When the next key is due.
    pub fn due(&self) -> Option<Timestamp> {
        if self.now.is_empty() { self.order.first().map(|(at, _)| *at) } else { Some(Timestamp::MIN) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn what_changed_comes_first_and_what_waits_comes_in_time() {
        let mut queue = Queue::default();
        queue.later(&Key::bare("late"), at(9));
        queue.later(&Key::bare("late"), at(20));
        queue.add(Key::bare("b"));
        queue.add(Key::bare("a"));
        assert_eq!(queue.take(at(1)), Some(Key::bare("a")));
        assert_eq!(queue.take(at(1)), Some(Key::bare("b")));
        assert_eq!((queue.take(at(1)), queue.due()), (None, Some(at(9))));
        assert_eq!((queue.take(at(9)), queue.due()), (Some(Key::bare("late")), None));
    }

    #[test]
    fn retries_wait_longer_each_time_and_a_success_forgets_them() {
        let (mut queue, key) = (Queue::default(), Key::bare("a"));
        let refusal = Refusal { code: 403, ..Refusal::default() };
        let mut waits = Vec::new();
        for _ in 0..11 {
            queue.failed(&key, refusal.clone(), at(0));
            waits.push(queue.due().unwrap().as_millisecond());
            assert_eq!(queue.take(queue.due().unwrap()), Some(key.clone()));
        }
        assert_eq!(waits, [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]);
        assert_eq!(queue.refusal(&key), Some(&refusal));
        queue.succeeded(&key);
        assert_eq!(queue.refusal(&key), None);
    }
}
