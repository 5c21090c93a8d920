// SPDX-License-Identifier: Apache-2.0
//! What somebody wants to buy, from whom, and when one offer is better than another.

use std::collections::BTreeMap;

use bivouac_core::Money;
use jiff::{SignedDuration, Timestamp};

use crate::memory::Memory;
use crate::requirement::Requirements;

/// What a machine must be and may cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Labels of the machine. Keys that no offer has are the pool's own, and it puts them on the node itself.
    pub requirements: Requirements,
    pub least: Least,
    /// Per hour, for the whole machine.
    pub max_price: Option<Money>,
    /// Whether the cloud may take the machine back.
    pub spot: Spot,
    /// Who may sell; `None` means everybody.
    pub sellers: Option<BTreeMap<String, Seller>>,
    pub policy: Policy,
}

/// The smallest machine that will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Least {
    /// In thousandths.
    pub gpus: u32,
    /// Of one GPU. A GPU of unknown memory has too little.
    pub gpu_memory_gib: u16,
    /// In thousandths.
    pub vcpus: u32,
    pub memory_mib: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spot {
    Never,
    #[default]
    Allowed,
    Only,
}

/// A cloud that may be bought from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seller {
    /// 0 is the most liked; every step makes it look a tenth dearer.
    pub priority: u32,
    /// Where; empty means everywhere.
    pub regions: Vec<String>,
}

/// When one offer is better than another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The lowest price × (1 + priority / 10).
    #[default]
    Score,
    /// The most liked cloud that has any, then the lowest price.
    Strict,
}

/// How good an offer is: lower is better. Scores of different policies cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Score(pub(crate) u128);

/// What is known besides prices.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    pub now: Timestamp,
    pub memory: &'a Memory,
    pub readings: &'a Readings,
}

/// When the price lists were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readings(BTreeMap<String, Reading>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    pub read_at: Timestamp,
    /// Afterwards nobody buys by it any more.
    pub good_for: SignedDuration,
}

// === impl Policy ===

impl Policy {
    pub fn score(self, price: Money, priority: u32) -> Score {
        let (price, priority) = (u128::try_from(price.micros()).unwrap_or_default(), u128::from(priority));
        Score(match self {
            Self::Score => price * (10 + priority),
            Self::Strict => priority << 64 | price,
        })
    }
}

// === impl Readings ===

impl Readings {
    pub fn set(&mut self, cloud: impl Into<String>, reading: Reading) {
        self.0.insert(cloud.into(), reading);
    }

    pub fn forget(&mut self, cloud: &str) {
        self.0.remove(cloud);
    }

    pub fn get(&self, cloud: &str) -> Option<Reading> {
        self.0.get(cloud).copied()
    }

    /// Old, or never read at all.
    pub fn is_stale(&self, cloud: &str, now: Timestamp) -> bool {
        self.get(cloud).is_none_or(|reading| now.duration_since(reading.read_at) > reading.good_for)
    }
}
