// SPDX-License-Identifier: Apache-2.0
//! From rows to columns: number what repeats, deal the prices out to their lists, sort each list, judge the prices.
//!
//! Numbers follow the order of names and not that of the rows, so equal rows give equal catalogues.

use bivouac_core::Money;

use super::intern::{Numbers, sorted};
use super::{Catalogue, Chip, Kind, Place, Snapshot};
use crate::gpu::Gpu;
use crate::guard;
use crate::offer::{Arch, Capacity, Flaw, Row};

/// A kind as the rows name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Named<'a> {
    machine: &'a str,
    cloud: u32,
    chip: Option<u32>,
    gpus: u32,
    vcpus: u32,
    memory_mib: u32,
    arch: Arch,
}

/// The tables, and for each row the numbers of its kind and its place.
struct Tables {
    clouds: Vec<String>,
    places: Vec<Place>,
    chips: Vec<Chip>,
    kinds: Vec<Kind>,
    rows: Vec<(u32, u32)>,
}

/// One offer on its way into its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    pub price: Money,
    pub site: u32,
    pub flaw: Option<Flaw>,
}

pub fn build(rows: &[Row<'_>]) -> Catalogue {
    let tables = number(rows);
    let (starts, mut entries) = deal(rows, &tables);
    each_list(&mut entries, &starts, |_, list| list.sort_unstable());
    guard::judge(&tables.kinds, &tables.chips, tables.places.len(), &starts, &mut entries);
    let Tables { clouds, places, chips, kinds, .. } = tables;
    let prices: Vec<Money> = entries.iter().map(|entry| entry.price).collect();
    let sites: Vec<u32> = entries.iter().map(|entry| entry.site).collect();
    let flaws: Vec<Option<Flaw>> = entries.iter().map(|entry| entry.flaw).collect();
    let snapshot = Snapshot::of(&clouds, &places, &chips, &kinds, &starts, &entries);
    Catalogue { clouds, places, chips, kinds, starts, prices, sites, flaws, snapshot }
}

/// Calls for each list with its number.
pub fn each_list(entries: &mut [Entry], starts: &[u32], mut with: impl FnMut(usize, &mut [Entry])) {
    for (number, bounds) in starts.windows(2).enumerate() {
        let [first, end] = bounds else { continue };
        let range = usize::try_from(*first).ok().zip(usize::try_from(*end).ok());
        if let Some(list) = range.and_then(|(first, end)| entries.get_mut(first..end)) {
            with(number, list);
        }
    }
}

fn number(rows: &[Row<'_>]) -> Tables {
    let (mut clouds, mut places, mut chips, mut kinds) =
        (Numbers::new(), Numbers::new(), Numbers::new(), Numbers::new());
    let mut numbered = Vec::with_capacity(rows.len());
    for row in rows {
        let cloud = clouds.of(row.cloud);
        let place = places.of((cloud, row.region, row.zone));
        let chip = (!row.gpu.is_empty() && row.gpus > 0).then(|| chips.of((row.gpu, row.gpu_memory_gib)));
        let Row { machine, vcpus, memory_mib, arch, .. } = *row;
        let gpus = if chip.is_some() { row.gpus } else { 0 };
        numbered.push((kinds.of(Named { machine, cloud, chip, gpus, vcpus, memory_mib, arch }), place));
    }
    let to = |list: &[u32], old: u32| super::at(list, old).copied().unwrap_or_default();
    let (clouds, new_cloud) = sorted(clouds.keys().iter().map(|name| (*name).to_owned()).collect());
    let (chips, new_chip) = sorted_chips(chips.keys());
    let named = places.keys().iter().map(|(cloud, region, zone)| Place {
        cloud: to(&new_cloud, *cloud),
        region: (*region).to_owned(),
        zone: (*zone).to_owned(),
    });
    let (places, new_place) = sorted(named.collect());
    let named = kinds.keys().iter().map(|kind| Kind {
        chip: kind.chip.map(|chip| to(&new_chip, chip)),
        gpus: kind.gpus,
        cloud: to(&new_cloud, kind.cloud),
        machine: kind.machine.to_owned(),
        vcpus: kind.vcpus,
        memory_mib: kind.memory_mib,
        arch: kind.arch,
    });
    let (kinds, new_kind) = sorted_once(named.collect());
    let rows = numbered.iter().map(|(kind, place)| (to(&new_kind, *kind), to(&new_place, *place))).collect();
    Tables { clouds, places, chips, kinds, rows }
}

/// Two spellings of one GPU are one chip.
fn sorted_chips(named: &[(&str, Option<u16>)]) -> (Vec<Chip>, Vec<u32>) {
    let chips = named.iter().map(|(name, memory_gib)| {
        let gpu = Gpu::named(name);
        Chip { memory_gib: memory_gib.or(gpu.memory_gib()), gpu }
    });
    sorted_once(chips.collect())
}

/// As [`sorted`], and equal things become one.
fn sorted_once<T: Ord>(things: Vec<T>) -> (Vec<T>, Vec<u32>) {
    let (things, places) = sorted(things);
    let mut new: Vec<u32> = Vec::with_capacity(things.len());
    for (thing, before) in things.iter().zip(std::iter::once(None).chain(things.iter().map(Some))) {
        let last = new.last().copied();
        new.push(match last {
            None => 0,
            Some(last) => last + u32::from(before != Some(thing)),
        });
    }
    let places = places.iter().map(|place| super::at(&new, *place).copied().unwrap_or_default()).collect();
    let mut things = things;
    things.dedup();
    (things, places)
}

/// Puts every price into the list of its kind and capacity. Lists are counted first, so each offer moves once.
fn deal(rows: &[Row<'_>], tables: &Tables) -> (Vec<u32>, Vec<Entry>) {
    let lists = tables.kinds.len() * Capacity::ALL.len();
    let slot = |kind: u32, capacity: usize| usize::try_from(kind).map_or(usize::MAX, |kind| kind * 2 + capacity);
    let mut starts = vec![0_u32; lists + 1];
    for (row, (kind, _)) in rows.iter().zip(&tables.rows) {
        for (capacity, price) in [row.on_demand, row.spot].iter().enumerate() {
            if let Some(count) = starts.get_mut(slot(*kind, capacity) + 1) {
                *count += u32::from(price.is_some());
            }
        }
    }
    let mut total = 0;
    for start in &mut starts {
        total += *start;
        *start = total;
    }
    let mut next = starts.clone();
    let empty = Entry { price: Money::ZERO, site: 0, flaw: None };
    let mut entries = vec![empty; usize::try_from(total).unwrap_or_default()];
    for (row, (kind, site)) in rows.iter().zip(&tables.rows) {
        let flaw = guard::flaw_of_row(row);
        for (capacity, price) in [row.on_demand, row.spot].into_iter().enumerate() {
            let Some(price) = price else { continue };
            let Some(next) = next.get_mut(slot(*kind, capacity)) else { continue };
            if let Some(entry) = usize::try_from(*next).ok().and_then(|at| entries.get_mut(at)) {
                *entry = Entry { price, site: *site, flaw: flaw.or(guard::flaw_of_price(price)) };
            }
            *next += 1;
        }
    }
    (starts, entries)
}
