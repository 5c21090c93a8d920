// SPDX-License-Identifier: Apache-2.0
//! What sellers did when they were asked: whoever refused is left alone for a while, and how often it worked is kept.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::offer::{Capacity, Offer};

/// Why a seller did not sell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// None left, at least here and now.
    Capacity,
    /// Not so many for this account.
    Quota,
    /// The account has no money.
    Payment,
    /// The key is not accepted.
    Unauthorized,
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Asked {
    cloud: String,
    region: String,
    machine: String,
    capacity: Capacity,
}

/// What rests after a refusal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Scope {
    /// Without money or rights nothing of that cloud can be had.
    Cloud(String),
    /// A quota is for a region.
    Region(Asked),
    Zone(Asked, String),
}

/// A pause, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    pub until: Timestamp,
    pub why: Refusal,
}

/// The last answers, newest in the lowest bit: one for a machine, zero for a refusal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    answers: u32,
    count: u32,
}

/// What is remembered of all sellers. Names and not numbers, so that it outlives every catalogue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    resting: BTreeMap<Scope, Rest>,
    tallies: BTreeMap<Asked, Tally>,
}

// === impl Refusal ===

impl Refusal {
    pub fn rest(self) -> SignedDuration {
        SignedDuration::from_mins(match self {
            Self::Capacity => 3,
            Self::Quota => 15,
            Self::Payment | Self::Unauthorized => 10,
        })
    }

    /// Completes "it rests, because …".
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Capacity => "there was none left",
            Self::Quota => "the account may not have more",
            Self::Payment => "the account has no money",
            Self::Unauthorized => "the credential is not accepted",
        }
    }
}

// === impl Tally ===

impl Tally {
    /// Older answers are forgotten.
    const KEPT: u32 = u32::BITS;

    fn add(&mut self, got_it: bool) {
        self.answers = self.answers << 1 | u32::from(got_it);
        self.count = (self.count + 1).min(Self::KEPT);
    }

    pub fn asked(&self) -> u32 {
        self.count
    }

    pub fn got(&self) -> u32 {
        self.answers.count_ones()
    }

    /// How likely the next answer is a machine, in thousandths; one half before anything is known.
    pub fn chance(&self) -> u32 {
        (self.got() + 1) * 1000 / (self.count + 2)
    }
}

// === impl Memory ===

impl Memory {
    /// The seller gave a machine: no reason to rest is left.
    pub fn sold(&mut self, offer: &Offer<'_>) {
        let asked = Asked::of(offer);
        self.resting.remove(&Scope::Cloud(asked.cloud.clone()));
        self.resting.remove(&Scope::Region(asked.clone()));
        self.resting.remove(&Scope::Zone(asked.clone(), offer.zone.to_owned()));
        self.tallies.entry(asked).or_default().add(true);
    }

    pub fn refused(&mut self, offer: &Offer<'_>, why: Refusal, now: Timestamp) {
        let asked = Asked::of(offer);
        let scope = match why {
            Refusal::Payment | Refusal::Unauthorized => Scope::Cloud(asked.cloud.clone()),
            Refusal::Quota => Scope::Region(asked.clone()),
            Refusal::Capacity => Scope::Zone(asked.clone(), offer.zone.to_owned()),
        };
        let until = now.checked_add(why.rest()).unwrap_or(Timestamp::MAX);
        self.resting.insert(scope, Rest { until, why });
        if why == Refusal::Capacity {
            self.tallies.entry(asked).or_default().add(false);
        }
    }

    /// Forgets pauses that are over.
    pub fn wake(&mut self, now: Timestamp) {
        self.resting.retain(|_, rest| rest.until > now);
    }

    pub fn rest_of(&self, offer: &Offer<'_>, now: Timestamp) -> Option<Rest> {
        if self.resting.is_empty() {
            return None;
        }
        let asked = Asked::of(offer);
        let region = self.resting.get(&Scope::Region(asked.clone()));
        let zone = self.resting.get(&Scope::Zone(asked, offer.zone.to_owned()));
        let all = [self.rest_of_cloud(offer.cloud, now), region.copied(), zone.copied()];
        all.into_iter().flatten().filter(|rest| rest.until > now).max_by_key(|rest| rest.until)
    }

    pub fn rest_of_cloud(&self, cloud: &str, now: Timestamp) -> Option<Rest> {
        self.resting.get(&Scope::Cloud(cloud.to_owned())).copied().filter(|rest| rest.until > now)
    }

    /// What came of asking for this machine in this region, in any zone.
    pub fn tally(&self, offer: &Offer<'_>) -> Tally {
        self.tallies.get(&Asked::of(offer)).copied().unwrap_or_default()
    }

    /// When the next pause ends, for whoever waits for it.
    pub fn next_wake(&self, now: Timestamp) -> Option<Timestamp> {
        self.resting.values().map(|rest| rest.until).filter(|until| *until > now).min()
    }
}

impl Asked {
    fn of(offer: &Offer<'_>) -> Self {
        Self {
            cloud: offer.cloud.to_owned(),
            region: offer.region.to_owned(),
            machine: offer.machine.to_owned(),
            capacity: offer.capacity,
        }
    }
}
