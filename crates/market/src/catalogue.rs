// SPDX-License-Identifier: Apache-2.0
//! Everything that is for sale, in columns, so that a question over a hundred thousand offers takes microseconds.
//!
//! A *kind* is a machine of a cloud with its size, a *place* is where a cloud sells. There are few of both, and most
//! questions are decided by them alone. For each kind and capacity there is one list of offers, cheapest first, and an
//! offer is a price, a place and what is wrong with it.

use std::ops::Range;

use bivouac_core::Money;

use crate::gpu::Gpu;
use crate::offer::{Arch, Capacity, Flaw, Offer, OfferId, Row};

mod build;
mod intern;
mod snapshot;

pub(crate) use build::{Entry, each_list};
pub use snapshot::Snapshot;

/// All offers of one moment. It never changes; a newer one takes its place.
#[derive(Debug)]
pub struct Catalogue {
    pub(crate) clouds: Vec<String>,
    pub(crate) places: Vec<Place>,
    pub(crate) chips: Vec<Chip>,
    pub(crate) kinds: Vec<Kind>,
    /// Where the list of a kind and a capacity begins; the next one begins where it ends.
    starts: Vec<u32>,
    prices: Vec<Money>,
    sites: Vec<u32>,
    flaws: Vec<Option<Flaw>>,
    snapshot: Snapshot,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub cloud: u32,
    pub region: String,
    pub zone: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Chip {
    pub gpu: Gpu,
    pub memory_gib: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind {
    pub chip: Option<u32>,
    pub gpus: u32,
    pub cloud: u32,
    pub machine: String,
    pub vcpus: u32,
    pub memory_mib: u32,
    pub arch: Arch,
}

/// One list: all places that sell a kind in one way, cheapest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List<'a> {
    first: u32,
    pub prices: &'a [Money],
    sites: &'a [u32],
    flaws: &'a [Option<Flaw>],
}

// === impl Catalogue ===

impl Catalogue {
    /// The order of the rows does not matter.
    pub fn new(rows: &[Row<'_>]) -> Self {
        build::build(rows)
    }

    pub fn len(&self) -> usize {
        self.prices.len()
    }

    pub fn is_empty(&self) -> bool {
        self.prices.is_empty()
    }

    /// What tells this catalogue from every other.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot
    }

    /// Every offer, flawed ones as well; in the order of the catalogue.
    pub fn iter(&self) -> impl Iterator<Item = Offer<'_>> {
        self.lists().flat_map(move |(kind, capacity, list)| {
            let offers = list.offers();
            offers.filter_map(move |(id, price, site, flaw)| self.offer(kind, capacity, id, price, site, flaw))
        })
    }

    pub fn get(&self, id: OfferId) -> Option<Offer<'_>> {
        let list = self.starts.partition_point(|start| *start <= id.0).checked_sub(1)?;
        let kind = self.kinds.get(list / Capacity::ALL.len())?;
        let capacity = *Capacity::ALL.get(list % Capacity::ALL.len())?;
        let at = usize::try_from(id.0).ok()?;
        self.offer(kind, capacity, id, *self.prices.get(at)?, *self.sites.get(at)?, *self.flaws.get(at)?)
    }

    /// How much memory it holds.
    pub fn bytes(&self) -> usize {
        let text = |text: &String| text.capacity();
        let places: usize = self.places.iter().map(|place| text(&place.region) + text(&place.zone)).sum();
        let kinds: usize = self.kinds.iter().map(|kind| text(&kind.machine)).sum();
        fn held<T>(list: &Vec<T>) -> usize {
            list.capacity() * size_of::<T>()
        }
        places
            + kinds
            + self.clouds.iter().map(text).sum::<usize>()
            + held(&self.places)
            + held(&self.kinds)
            + held(&self.clouds)
            + held(&self.chips)
            + held(&self.starts)
            + held(&self.prices)
            + held(&self.sites)
            + held(&self.flaws)
    }

    pub(crate) fn lists(&self) -> impl Iterator<Item = (&Kind, Capacity, List<'_>)> {
        let kinds = self.kinds.iter().flat_map(|kind| Capacity::ALL.map(|capacity| (kind, capacity)));
        kinds.zip(self.starts.windows(2)).filter_map(|((kind, capacity), bounds)| match bounds {
            [first, end] => Some((kind, capacity, self.list(*first, *end)?)),
            _ => None,
        })
    }

    fn list(&self, first: u32, end: u32) -> Option<List<'_>> {
        let range: Range<usize> = usize::try_from(first).ok()?..usize::try_from(end).ok()?;
        let (prices, sites) = (self.prices.get(range.clone())?, self.sites.get(range.clone())?);
        Some(List { first, prices, sites, flaws: self.flaws.get(range)? })
    }

    pub(crate) fn offer<'a>(
        &'a self,
        kind: &'a Kind,
        capacity: Capacity,
        id: OfferId,
        price: Money,
        site: u32,
        flaw: Option<Flaw>,
    ) -> Option<Offer<'a>> {
        let place = at(&self.places, site)?;
        let chip = kind.chip.and_then(|chip| at(&self.chips, chip));
        Some(Offer {
            id,
            cloud: at(&self.clouds, kind.cloud)?,
            region: &place.region,
            zone: &place.zone,
            machine: &kind.machine,
            gpu: chip.map(|chip| &chip.gpu),
            gpus: kind.gpus,
            gpu_memory_gib: chip.and_then(|chip| chip.memory_gib),
            vcpus: kind.vcpus,
            memory_mib: kind.memory_mib,
            arch: kind.arch,
            capacity,
            price,
            flaw,
        })
    }
}

// === impl List ===

impl<'a> List<'a> {
    /// Number, price, place and flaw of each.
    pub fn offers(self) -> impl Iterator<Item = (OfferId, Money, u32, Option<Flaw>)> + use<'a> {
        let offers = self.prices.iter().zip(self.sites).zip(self.flaws).zip(self.first..);
        offers.map(|(((price, site), flaw), id)| (OfferId(id), *price, *site, *flaw))
    }
}

/// The entry of a table; numbers of entries are kept short.
pub(crate) fn at<T>(table: &[T], id: u32) -> Option<&T> {
    table.get(usize::try_from(id).ok()?)
}
