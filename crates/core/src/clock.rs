// SPDX-License-Identifier: Apache-2.0
//! Time as something that is handed in, so that tests and simulations can own it.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

/// Where "now" comes from.
pub trait Clock: Debug + Send + Sync {
    fn now(&self) -> Timestamp;
}

/// The clock of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// A clock that stands still until it is moved. Clones show the same time.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Mutex<Timestamp>>);

// === impl SystemClock ===

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

// === impl ManualClock ===

impl ManualClock {
    pub fn new(now: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(now)))
    }

    pub fn set(&self, now: Timestamp) {
        *self.lock() = now;
    }

    /// Moves the clock, forwards or back, and returns the new time. It stops at the ends of representable time.
    pub fn advance(&self, by: SignedDuration) -> Timestamp {
        let mut now = self.lock();
        let end = if by.is_negative() { Timestamp::MIN } else { Timestamp::MAX };
        *now = now.checked_add(by).unwrap_or(end);
        *now
    }

    fn lock(&self) -> MutexGuard<'_, Timestamp> {
        // A timestamp is whole at every moment, so a panic elsewhere cannot have broken it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts at the Unix epoch.
impl Default for ManualClock {
    fn default() -> Self {
        Self::new(Timestamp::UNIX_EPOCH)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.lock()
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn manual_clock_moves_only_by_hand() {
        let clock = ManualClock::default();
        let seen: Arc<dyn Clock> = Arc::new(clock.clone());
        assert_eq!(seen.now(), Timestamp::UNIX_EPOCH);
        clock.advance(SignedDuration::from_secs(90));
        assert_eq!(seen.now().as_second(), 90);
        clock.set(Timestamp::UNIX_EPOCH);
        assert_eq!(seen.now(), Timestamp::UNIX_EPOCH);
    }

    #[test]
    fn manual_clock_stops_at_the_ends() {
        let clock = ManualClock::new(Timestamp::MAX);
        assert_eq!(clock.advance(SignedDuration::from_secs(1)), Timestamp::MAX);
        clock.set(Timestamp::MIN);
        assert_eq!(clock.advance(SignedDuration::from_secs(-1)), Timestamp::MIN);
    }

    #[test]
    fn system_clock_is_not_a_constant() {
        assert!(SystemClock.now() > Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * 365 * 50));
    }

    proptest! {
        #[test]
        fn advancing_adds_up(steps in prop::collection::vec(-1_000_000..1_000_000i64, 0..20)) {
            let clock = ManualClock::default();
            for step in &steps {
                clock.advance(SignedDuration::from_millis(*step));
            }
            prop_assert_eq!(clock.now().as_millisecond(), steps.iter().sum::<i64>());
        }
    }
}
