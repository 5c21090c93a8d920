// SPDX-License-Identifier: Apache-2.0
//! Which offer to take.
//!
//! Kinds and places are looked at first, for they are few. In each list that is left the cheapest come first, so the
//! search leaves it as soon as what follows cannot be better than what it has.

use std::collections::{BTreeMap, BTreeSet};

use bivouac_core::Money;

use crate::catalogue::{Catalogue, Kind, List, Snapshot, at};
use crate::labels;
use crate::memory::Rest;
use crate::offer::{Capacity, Flaw, Offer, OfferId};
use crate::requirement::Allowed;
use crate::survey::Survey;
use crate::wish::{Score, Situation, Spot, Wish};

/// What to buy, and by which prices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Best first; the others are for when it cannot be had.
    pub choices: Vec<Choice>,
    pub snapshot: Snapshot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    pub offer: OfferId,
    pub price: Money,
    pub score: Score,
}

/// What a wish makes of the tables of a catalogue.
pub(crate) struct Sieve<'a> {
    pub catalogue: &'a Catalogue,
    pub wish: &'a Wish,
    situation: Situation<'a>,
    /// Priority of each cloud that may sell.
    clouds: Vec<Option<u32>>,
    /// Clouds whose prices are too old.
    stale: Vec<bool>,
    chips: Vec<bool>,
    places: Vec<bool>,
    /// What is left of all lists.
    pub lists: Vec<Found<'a>>,
}

/// A list that has the right machines from a cloud that may sell.
pub(crate) struct Found<'a> {
    kind: &'a Kind,
    capacity: Capacity,
    /// Of the cloud.
    pub priority: u32,
    /// Its prices are too old.
    is_stale: bool,
    list: List<'a>,
}

/// Whether an offer of the right machine can be bought now. The first that is true counts, in this order.
pub(crate) enum Standing<'a> {
    Flawed(Flaw),
    Elsewhere,
    Stale,
    TooDear(Money),
    Resting(Rest),
    Open(Offer<'a>),
}

/// The order of choices: better score, then the seller that more often keeps its word, then the catalogue's order.
type Rank = (Score, std::cmp::Reverse<u32>, OfferId);

// === impl Catalogue ===

impl Catalogue {
    /// The best offers for a wish, at most `most` of them, or why there are none.
    pub fn choose(&self, wish: &Wish, situation: Situation<'_>, most: usize) -> Result<Decision, Box<Survey>> {
        let sieve = Sieve::new(self, wish, situation);
        let choices = sieve.best(most.max(1));
        if choices.is_empty() || !sieve.lacks().is_empty() {
            return Err(Box::new(Survey::of(&sieve)));
        }
        Ok(Decision { choices, snapshot: self.snapshot() })
    }
}

// === impl Sieve ===

impl<'a> Sieve<'a> {
    pub fn new(catalogue: &'a Catalogue, wish: &'a Wish, situation: Situation<'a>) -> Self {
        let cloud_is_right = |name: &String| {
            let seller = wish.sellers.as_ref().map(|sellers| sellers.get(name));
            let named = wish.requirements.get(labels::CLOUD).is_none_or(|allowed| allowed.has(name));
            match seller {
                Some(seller) => seller.filter(|_| named).map(|seller| seller.priority),
                None => named.then_some(0),
            }
        };
        let clouds = catalogue.clouds.iter().map(cloud_is_right).collect();
        let gpus = wish.requirements.gpus();
        let least = wish.least.gpu_memory_gib;
        let chip_is_right = |chip: &crate::catalogue::Chip| {
            (least == 0 || chip.memory_gib.is_some_and(|memory| memory >= least))
                && gpus.iter().all(|allowed| allowed.has_gpu(&chip.gpu))
                && admits(wish, labels::GPU_MEMORY, chip.memory_gib.map(|memory| memory.to_string()).as_deref())
                && admits(wish, labels::GPU_VENDOR, chip.gpu.vendor().map(|vendor| vendor.name()))
        };
        let chips = catalogue.chips.iter().map(chip_is_right).collect();
        let is_stale = |cloud: &String| situation.readings.is_stale(cloud, situation.now);
        let stale = catalogue.clouds.iter().map(is_stale).collect();
        let mut sieve =
            Self { catalogue, wish, situation, clouds, stale, chips, places: Vec::new(), lists: Vec::new() };
        sieve.places = catalogue.places.iter().map(|place| sieve.place_is_right(place)).collect();
        sieve.lists = sieve.found().collect();
        sieve
    }

    fn place_is_right(&self, place: &crate::catalogue::Place) -> bool {
        let requirements = &self.wish.requirements;
        let right = |key: &str, value: &str| requirements.get(key).is_none_or(|allowed| allowed.admits(some(value)));
        let cloud = at(&self.catalogue.clouds, place.cloud).map(String::as_str).unwrap_or_default();
        let seller = self.wish.sellers.as_ref().and_then(|sellers| sellers.get(cloud));
        let sold_here = |region: &str| {
            seller.is_none_or(|seller| seller.regions.is_empty() || seller.regions.iter().any(|one| one == region))
        };
        right(labels::REGION, &place.region)
            && right(labels::TOPOLOGY_REGION, &place.region)
            && right(labels::ZONE, &place.zone)
            && sold_here(&place.region)
    }

    fn found(&self) -> impl Iterator<Item = Found<'a>> {
        let capacities = Capacity::ALL.map(|capacity| self.capacity_is_right(capacity));
        let mut counts = Memo::new(self.wish.requirements.get(labels::GPU_COUNT));
        let lists = self.catalogue.lists().filter(move |(_, capacity, list)| {
            let [on_demand, spot] = capacities;
            !list.prices.is_empty() && if *capacity == Capacity::Spot { spot } else { on_demand }
        });
        lists.filter_map(move |(kind, capacity, list)| {
            let priority = at(&self.clouds, kind.cloud).copied().flatten()?;
            let is_stale = at(&self.stale, kind.cloud).copied().unwrap_or(true);
            let is_right = self.kind_is_right(kind) && counts.admits(kind.gpus);
            is_right.then_some(Found { kind, capacity, priority, is_stale, list })
        })
    }

    /// All offers of a list, and how each stands.
    pub fn standings(&self, found: &Found<'a>) -> impl Iterator<Item = Standing<'a>> {
        let Found { kind, capacity, is_stale, list, .. } = *found;
        list.offers().filter_map(move |(id, price, site, flaw)| {
            Some(match flaw {
                Some(flaw) => Standing::Flawed(flaw),
                None if !self.place_of(site) => Standing::Elsewhere,
                None if is_stale => Standing::Stale,
                None if self.is_too_dear(price) => Standing::TooDear(price),
                None => {
                    let offer = self.catalogue.offer(kind, capacity, id, price, site, flaw)?;
                    self.rest_of(&offer).map_or(Standing::Open(offer), Standing::Resting)
                }
            })
        })
    }

    fn kind_is_right(&self, kind: &Kind) -> bool {
        let least = &self.wish.least;
        let chip_is_right = match kind.chip {
            Some(chip) => at(&self.chips, chip).copied().unwrap_or_default(),
            None => {
                let without = |allowed: &Allowed| allowed.may_be_absent();
                least.gpu_memory_gib == 0
                    && self.wish.requirements.gpus().iter().all(without)
                    && admits(self.wish, labels::GPU_MEMORY, None)
                    && admits(self.wish, labels::GPU_VENDOR, None)
            }
        };
        chip_is_right
            && kind.gpus >= least.gpus
            && kind.vcpus >= least.vcpus
            && kind.memory_mib >= least.memory_mib
            && admits(self.wish, labels::MACHINE, some(&kind.machine))
            && admits(self.wish, labels::ARCH, Some(kind.arch.name()))
            && admits(self.wish, labels::OS, Some("linux"))
    }

    fn capacity_is_right(&self, capacity: Capacity) -> bool {
        let is_spot = capacity == Capacity::Spot;
        let wanted = match self.wish.spot {
            Spot::Never => !is_spot,
            Spot::Allowed => true,
            Spot::Only => is_spot,
        };
        wanted
            && admits(self.wish, labels::CAPACITY, Some(capacity.name()))
            && admits(self.wish, labels::SPOT, Some(if is_spot { "true" } else { "false" }))
    }

    fn place_of(&self, site: u32) -> bool {
        at(&self.places, site).copied().unwrap_or_default()
    }

    fn is_too_dear(&self, price: Money) -> bool {
        self.wish.max_price.is_some_and(|max| price > max)
    }

    fn rest_of(&self, offer: &Offer<'_>) -> Option<Rest> {
        self.situation.memory.rest_of(offer, self.situation.now)
    }

    fn best(&self, most: usize) -> Vec<Choice> {
        let mut best: Vec<(Rank, Money)> = Vec::with_capacity(most + 1);
        for found in self.lists.iter().filter(|found| !found.is_stale) {
            for (id, price, site, flaw) in found.list.offers() {
                let score = self.wish.policy.score(price, found.priority);
                let worse = best.len() == most && best.last().is_some_and(|((worst, ..), _)| score > *worst);
                if worse || self.is_too_dear(price) {
                    break;
                }
                if flaw.is_some() || !self.place_of(site) {
                    continue;
                }
                let offer = self.catalogue.offer(found.kind, found.capacity, id, price, site, flaw);
                if let Some(offer) = offer.filter(|offer| self.rest_of(offer).is_none()) {
                    let rank = (score, std::cmp::Reverse(self.situation.memory.tally(&offer).chance()), id);
                    let place = best.partition_point(|(other, _)| *other < rank);
                    best.insert(place, (rank, price));
                    best.truncate(most);
                }
            }
        }
        let choice = |((score, _, offer), price)| Choice { offer, price, score };
        best.into_iter().map(choice).collect()
    }

    /// Keys that have fewer values to choose from than was asked for: the key, how many there are, how many there must be.
    pub fn lacks(&self) -> Vec<(String, usize, usize)> {
        let wanted = self.wish.requirements.iter().filter_map(|(key, allowed)| Some((key, allowed.min_values()?)));
        let wanted: BTreeMap<&str, usize> = wanted.collect();
        if wanted.is_empty() {
            return Vec::new();
        }
        let mut found: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for list in &self.lists {
            for standing in self.standings(list) {
                let Standing::Open(offer) = standing else { continue };
                for key in wanted.keys() {
                    found.entry(key).or_default().extend(offer.label(key));
                }
            }
        }
        let count = |key: &str| found.get(key).map_or(0, BTreeSet::len);
        let lacking = wanted.into_iter().filter(|(key, wanted)| count(key) < *wanted);
        lacking.map(|(key, wanted)| (key.to_owned(), count(key), wanted)).collect()
    }
}

fn admits(wish: &Wish, key: &str, value: Option<&str>) -> bool {
    wish.requirements.get(key).is_none_or(|allowed| allowed.admits(value))
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// Answers for numbers that come again and again.
struct Memo<'a> {
    allowed: Option<&'a Allowed>,
    known: BTreeMap<u32, bool>,
}

impl<'a> Memo<'a> {
    fn new(allowed: Option<&'a Allowed>) -> Self {
        Self { allowed, known: BTreeMap::new() }
    }

    fn admits(&mut self, gpus: u32) -> bool {
        let Some(allowed) = self.allowed else { return true };
        *self.known.entry(gpus).or_insert_with(|| allowed.admits(Some(&crate::offer::thousandths(gpus))))
    }
}
