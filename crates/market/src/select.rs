// SPDX-License-Identifier: Apache-2.0
//! Which offer to take.
//!
//! Kinds and places are looked at first, for they are few. In each list that is left the cheapest come first, so the
//! search leaves it as soon as what follows cannot be better than what it has.

use std::collections::{BTreeMap, BTreeSet};

use bivouac_core::Money;

use crate::catalogue::{Catalogue, Kind, List, Snapshot, at};
use crate::labels;
use crate::offer::{Capacity, Offer, OfferId};
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
    catalogue: &'a Catalogue,
    wish: &'a Wish,
    situation: Situation<'a>,
    /// Priority of each cloud that may sell.
    clouds: Vec<Option<u32>>,
    chips: Vec<bool>,
    places: Vec<bool>,
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
            return Err(Box::new(self.survey(wish, situation)));
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
        let mut sieve = Self { catalogue, wish, situation, clouds, chips, places: Vec::new() };
        sieve.places = catalogue.places.iter().map(|place| sieve.place_is_right(place)).collect();
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

    /// The lists that have the right machines from the right clouds, with the priority of the cloud.
    pub fn lists(&self) -> impl Iterator<Item = (Capacity, u32, List<'a>)> {
        let capacities = Capacity::ALL.map(|capacity| self.capacity_is_right(capacity));
        let mut counts = Memo::new(self.wish.requirements.get(labels::GPU_COUNT));
        let lists = self.catalogue.lists().filter(move |(_, capacity, list)| {
            let [on_demand, spot] = capacities;
            !list.prices.is_empty() && if *capacity == Capacity::Spot { spot } else { on_demand }
        });
        lists.filter_map(move |(kind, capacity, list)| {
            let priority = at(&self.clouds, kind.cloud).copied().flatten()?;
            (self.kind_is_right(kind) && counts.admits(kind.gpus)).then_some((capacity, priority, list))
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

    pub fn place_of(&self, site: u32) -> bool {
        at(&self.places, site).copied().unwrap_or_default()
    }

    pub fn is_stale(&self, cloud: &str) -> bool {
        self.situation.readings.is_stale(cloud, self.situation.now)
    }

    fn best(&self, most: usize) -> Vec<Choice> {
        let mut best: Vec<(Rank, Money)> = Vec::with_capacity(most + 1);
        let stale: Vec<bool> = self.catalogue.clouds.iter().map(|cloud| self.is_stale(cloud)).collect();
        let is_stale = |site: u32| {
            let cloud = at(&self.catalogue.places, site).map(|place| place.cloud);
            cloud.and_then(|cloud| at(&stale, cloud)).copied().unwrap_or(true)
        };
        for (_, priority, list) in self.lists() {
            let offers = list.prices.iter().zip(list.sites).zip(list.flaws).zip(list.first..);
            for (((price, site), flaw), id) in offers {
                let score = self.wish.policy.score(*price, priority);
                let worse = best.len() == most && best.last().is_some_and(|((worst, ..), _)| score > *worst);
                if worse || self.is_too_dear(*price) {
                    break;
                }
                if flaw.is_none() && self.place_of(*site) && !is_stale(*site) {
                    self.keep(&mut best, most, score, *price, OfferId(id));
                }
            }
        }
        let choice = |((score, _, offer), price)| Choice { offer, price, score };
        best.into_iter().map(choice).collect()
    }

    fn keep(&self, best: &mut Vec<(Rank, Money)>, most: usize, score: Score, price: Money, id: OfferId) {
        let Some(offer) = self.catalogue.get(id) else { return };
        let Situation { memory, now, .. } = self.situation;
        if memory.rest_of(&offer, now).is_some() {
            return;
        }
        let rank = (score, std::cmp::Reverse(memory.tally(&offer).chance()), id);
        let place = best.partition_point(|(other, _)| *other < rank);
        best.insert(place, (rank, price));
        best.truncate(most);
    }

    pub fn is_too_dear(&self, price: Money) -> bool {
        self.wish.max_price.is_some_and(|max| price > max)
    }

    /// Whether an offer of one of the lists can be bought now.
    pub fn is_open(&self, offer: &Offer<'_>, site: u32) -> bool {
        offer.flaw.is_none()
            && self.place_of(site)
            && !self.is_stale(offer.cloud)
            && !self.is_too_dear(offer.price)
            && self.situation.memory.rest_of(offer, self.situation.now).is_none()
    }

    /// Keys that have fewer values to choose from than was asked for: the key, how many there are, how many there must be.
    pub fn lacks(&self) -> Vec<(String, usize, usize)> {
        let wanted = self.wish.requirements.iter().filter_map(|(key, allowed)| Some((key, allowed.min_values()?)));
        let wanted: BTreeMap<&str, usize> = wanted.collect();
        if wanted.is_empty() {
            return Vec::new();
        }
        let mut found: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for (_, _, list) in self.lists() {
            for (site, id) in list.sites.iter().zip(list.first..) {
                let Some(offer) = self.catalogue.get(OfferId(id)).filter(|offer| self.is_open(offer, *site)) else {
                    continue;
                };
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
