// SPDX-License-Identifier: Apache-2.0
//! A clock that follows tokio's, for tests and simulations that pause it.

use bivouac_core::Clock;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Begins at a given time when it is made, and goes as tokio's clock goes: paused with it, and forward with it.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    epoch: Timestamp,
    start: Instant,
}

impl TokioClock {
    pub fn new(epoch: Timestamp) -> Self {
        Self { epoch, start: Instant::now() }
    }
}

/// Begins at noon of the first day of 2026, UTC.
impl Default for TokioClock {
    fn default() -> Self {
        Self::new(Timestamp::from_second(1_767_268_800).unwrap_or(Timestamp::UNIX_EPOCH))
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.start.elapsed()).unwrap_or(SignedDuration::MAX);
        self.epoch.checked_add(passed).unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_follows_the_paused_clock() {
        let clock = TokioClock::default();
        assert_eq!(clock.now().to_string(), "2026-01-01T12:00:00Z");
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        assert_eq!(clock.now().to_string(), "2026-01-01T13:00:00Z");
    }
}
