// SPDX-License-Identifier: Apache-2.0
//! Delays after failures, counted per object, with jitter, reset by success.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use super::error::{Category, Error};
use crate::mirror::Key;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(300);

/// How often each object failed in a row.
#[derive(Debug, Default)]
pub struct Backoff(Mutex<HashMap<Key, u32>>);

impl Backoff {
    pub fn succeeded(&self, key: &Key) {
        self.counts().remove(key);
    }

    /// The time to wait before the next pass of this object.
    pub fn failed(&self, key: &Key, error: &Error) -> Duration {
        let failures = {
            let mut counts = self.counts();
            let count = counts.entry(key.clone()).or_insert(0);
            *count = count.saturating_add(1);
            *count
        };
        let delay = match error.category() {
            // Somebody else was faster once: look again at once. Always losing is a fight, and slows down.
            Category::Conflict if failures == 1 => Duration::ZERO,
            _ => FIRST.saturating_mul(1 << (failures - 1).min(16)).min(LONGEST),
        };
        jittered(delay).max(error.retry_after().unwrap_or_default())
    }

    fn counts(&self) -> std::sync::MutexGuard<'_, HashMap<Key, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Between 80 and 120 percent, so that many failures do not come back as one wave.
pub fn jittered(delay: Duration) -> Duration {
    delay.mul_f64(rand::random_range(0.8..1.2))
}

#[cfg(test)]
mod tests {
    use super::{Backoff, LONGEST};
    use crate::{mirror::Key, reconcile::Error};
    use std::time::Duration;

    #[test]
    fn delays_grow_to_a_bound_and_success_resets_them() {
        let (backoff, key, error) = (Backoff::default(), Key::new("", "a"), Error::Restless(4));
        let delays: Vec<Duration> = (0..40).map(|_| backoff.failed(&key, &error)).collect();
        assert!(delays[0] < Duration::from_secs(1), "{:?}", delays[0]);
        assert!(delays[4] > delays[0] * 4, "{delays:?}");
        assert!(delays.iter().all(|delay| *delay <= LONGEST.mul_f64(1.2)));
        assert!(backoff.failed(&Key::new("", "b"), &error) < Duration::from_secs(1), "objects are independent");
        backoff.succeeded(&key);
        assert!(backoff.failed(&key, &error) < Duration::from_secs(1));
    }

    #[test]
    fn the_delay_the_server_asks_for_is_kept() {
        let (backoff, key) = (Backoff::default(), Key::new("", "a"));
        let status: kube::core::Status =
            serde_json::from_value(serde_json::json!({"code": 429, "details": {"retryAfterSeconds": 40}})).unwrap();
        let error = Error::api("list", kube::Error::Api(Box::new(status)));
        assert!(backoff.failed(&key, &error) >= Duration::from_secs(40));
    }

    #[test]
    fn one_conflict_is_retried_at_once_but_a_fight_is_not() {
        let (backoff, key) = (Backoff::default(), Key::new("", "a"));
        let status: kube::core::Status = serde_json::from_value(serde_json::json!({"code": 409})).unwrap();
        let error = Error::api("apply", kube::Error::Api(Box::new(status)));
        assert_eq!(backoff.failed(&key, &error), Duration::ZERO);
        assert!(backoff.failed(&key, &error) > Duration::from_millis(500));
    }
}
