// SPDX-License-Identifier: Apache-2.0
//! The clock of a host in the simulation. It follows virtual time, and it can be set wrong.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use bivouac_apiserver::TokioClock;
use bivouac_core::Clock;
use jiff::{SignedDuration, Timestamp};

#[derive(Clone, Debug, Default)]
pub struct HostClock {
    time: TokioClock,
    /// Seconds by which this host is wrong.
    off: Arc<AtomicI64>,
}

impl HostClock {
    /// Sets the host's clock forward, or back.
    pub fn jump(&self, seconds: i64) {
        self.off.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for HostClock {
    fn now(&self) -> Timestamp {
        let off = SignedDuration::from_secs(self.off.load(Ordering::SeqCst));
        self.time.now().checked_add(off).unwrap_or(Timestamp::MAX)
    }
}
