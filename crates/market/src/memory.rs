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

/// What is remembered of all sellers. Names and not numbers, so that it outlives every catalogue. Clouds come first,
/// then machines: most offers have no memory, and that is found out without making a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory(BTreeMap<String, Cloud>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Cloud {
    /// Without money or rights nothing of that cloud can be had.
    rest: Option<Rest>,
    /// By machine, region and way to pay.
    asked: BTreeMap<String, BTreeMap<String, BTreeMap<Capacity, Asked>>>,
}

/// What came of asking for a machine in a region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Asked {
    /// A quota is for a region.
    rest: Option<Rest>,
    zones: BTreeMap<String, Rest>,
    tally: Tally,
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
        let cloud = self.0.entry(offer.cloud.to_owned()).or_default();
        cloud.rest = None;
        let asked = cloud.asked_for(offer);
        asked.rest = None;
        asked.zones.remove(offer.zone);
        asked.tally.add(true);
    }

    pub fn refused(&mut self, offer: &Offer<'_>, why: Refusal, now: Timestamp) {
        let cloud = self.0.entry(offer.cloud.to_owned()).or_default();
        let rest = Rest { until: now.checked_add(why.rest()).unwrap_or(Timestamp::MAX), why };
        match why {
            Refusal::Payment | Refusal::Unauthorized => cloud.rest = Some(rest),
            Refusal::Quota => cloud.asked_for(offer).rest = Some(rest),
            Refusal::Capacity => {
                let asked = cloud.asked_for(offer);
                asked.zones.insert(offer.zone.to_owned(), rest);
                asked.tally.add(false);
            }
        }
    }

    /// Forgets pauses that are over.
    pub fn wake(&mut self, now: Timestamp) {
        let is_over = |rest: &mut Rest| rest.until <= now;
        for cloud in self.0.values_mut() {
            cloud.rest.take_if(is_over);
            for asked in cloud.asked.values_mut().flat_map(BTreeMap::values_mut).flat_map(BTreeMap::values_mut) {
                asked.rest.take_if(is_over);
                asked.zones.retain(|_, rest| rest.until > now);
            }
        }
    }

    pub fn rest_of(&self, offer: &Offer<'_>, now: Timestamp) -> Option<Rest> {
        let cloud = self.0.get(offer.cloud)?;
        let asked = cloud.of(offer);
        let region = asked.and_then(|asked| asked.rest);
        let zone = asked.and_then(|asked| asked.zones.get(offer.zone).copied());
        let all = [cloud.rest, region, zone].into_iter().flatten();
        all.filter(|rest| rest.until > now).max_by_key(|rest| rest.until)
    }

    pub fn rest_of_cloud(&self, cloud: &str, now: Timestamp) -> Option<Rest> {
        self.0.get(cloud)?.rest.filter(|rest| rest.until > now)
    }

    /// What came of asking for this machine in this region, in any zone.
    pub fn tally(&self, offer: &Offer<'_>) -> Tally {
        let asked = self.0.get(offer.cloud).and_then(|cloud| cloud.of(offer));
        asked.map(|asked| asked.tally).unwrap_or_default()
    }

    /// When the next pause ends, for whoever waits for it.
    pub fn next_wake(&self, now: Timestamp) -> Option<Timestamp> {
        let rests = self.0.values().flat_map(|cloud| {
            let asked = cloud.asked.values().flat_map(BTreeMap::values).flat_map(BTreeMap::values);
            cloud.rest.iter().chain(asked.flat_map(|asked| asked.rest.iter().chain(asked.zones.values())))
        });
        rests.map(|rest| rest.until).filter(|until| *until > now).min()
    }
}

// === impl Cloud ===

impl Cloud {
    fn of(&self, offer: &Offer<'_>) -> Option<&Asked> {
        self.asked.get(offer.machine)?.get(offer.region)?.get(&offer.capacity)
    }

    fn asked_for(&mut self, offer: &Offer<'_>) -> &mut Asked {
        let regions = self.asked.entry(offer.machine.to_owned()).or_default();
        regions.entry(offer.region.to_owned()).or_default().entry(offer.capacity).or_default()
    }
}
