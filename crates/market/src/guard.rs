// SPDX-License-Identifier: Apache-2.0
//! Which prices to believe.
//!
//! Price lists have zeros, prices per year where prices per hour should be, and an A100 for a cent. Whoever buys the
//! cheapest buys those first. So a price is compared with what the same GPU costs elsewhere, and one that cannot be true
//! is set aside with a reason: it stays visible and is never chosen.

use std::collections::BTreeMap;

use bivouac_core::Money;

use crate::catalogue::{Chip, Entry, Kind, each_list};
use crate::gpu::Gpu;
use crate::offer::{Capacity, Flaw, Row};

/// How far from what is usual a price per GPU may be. Sellers of the same GPU differ by 2 to 8 times, a machine with few
/// GPUs and much else costs up to 12 times as much per GPU.
const GPU: Tolerance = Tolerance { cheap: 40, spot: 100, dear: 16, unit: 500 };
/// The same per vCPU, where burstable machines and those with much memory are far apart.
const CPU: Tolerance = Tolerance { cheap: 1000, spot: 1000, dear: 100, unit: 500 };

struct Tolerance {
    /// Below the usual price by so many times is too cheap.
    cheap: i128,
    /// A spot price may be below the usual price on demand by so many times. Few sell spot, so they alone are no measure.
    spot: i128,
    dear: i128,
    /// A month has 720 hours and a year 8,760.
    unit: i128,
}

/// What is compared: a GPU however it is mounted, or a machine without one.
type Group = Option<Gpu>;

/// The usual price of a thousandth of a GPU or vCPU, in millionths of a micro-dollar.
type Usual = BTreeMap<(Group, Capacity), i128>;

/// What the row itself gives away.
pub fn flaw_of_row(row: &Row<'_>) -> Option<Flaw> {
    if row.machine.is_empty() {
        Some(Flaw::NoMachine)
    } else if !row.currency.is_empty() && row.currency != "USD" {
        Some(Flaw::Currency)
    } else {
        row.sold_out.then_some(Flaw::SoldOut)
    }
}

pub fn flaw_of_price(price: Money) -> Option<Flaw> {
    if price.is_negative() { Some(Flaw::Negative) } else { price.is_zero().then_some(Flaw::Zero) }
}

/// Marks what stands out. Lists come sorted, cheapest first.
pub fn judge(kinds: &[Kind], chips: &[Chip], places: usize, starts: &[u32], entries: &mut [Entry]) {
    let groups: Vec<Gpu> = chips.iter().map(|chip| chip.gpu.chip()).collect();
    let group = |kind: &Kind| kind.chip.and_then(|chip| crate::catalogue::at(&groups, chip).cloned());
    let usual = usual(kinds, group, starts, entries);
    // The number of the list in which a place was seen last.
    let mut seen = vec![usize::MAX; places];
    each_list(entries, starts, |number, list| {
        mark_twice(list, number, &mut seen);
        let (Some(kind), Some(capacity)) = (kinds.get(number / 2), Capacity::ALL.get(number % 2)) else { return };
        let (group, tolerance) = (group(kind), if kind.chip.is_some() { &GPU } else { &CPU });
        let of = |capacity| usual.get(&(group.clone(), capacity)).map(|usual| usual * units(kind));
        let on_demand = of(Capacity::OnDemand).filter(|_| *capacity == Capacity::Spot);
        let least = on_demand.map(|usual| usual / tolerance.spot).unwrap_or_default();
        if let Some(usual) = of(*capacity) {
            mark_outliers(list, usual, least.max(usual / tolerance.cheap), tolerance);
        }
    });
}

/// The dearest of the same offers stays: nobody is to be promised less than may be asked.
fn mark_twice(list: &mut [Entry], number: usize, seen: &mut [usize]) {
    for entry in list.iter_mut().rev() {
        let Some(seen) = usize::try_from(entry.site).ok().and_then(|site| seen.get_mut(site)) else { continue };
        if *seen == number && entry.flaw.is_none() {
            entry.flaw = Some(Flaw::Twice);
        }
        *seen = number;
    }
}

fn mark_outliers(list: &mut [Entry], usual: i128, least: i128, tolerance: &Tolerance) {
    for entry in list.iter_mut().filter(|entry| is_sane(entry)) {
        let price = scaled(entry.price);
        if price < least {
            entry.flaw = Some(Flaw::TooCheap);
        } else if price > usual * tolerance.unit {
            entry.flaw = Some(Flaw::Unit);
        } else if price > usual * tolerance.dear {
            entry.flaw = Some(Flaw::TooDear);
        }
    }
}

/// The median over clouds of what each of them usually asks: a cloud with many regions counts once.
fn usual(kinds: &[Kind], group: impl Fn(&Kind) -> Group, starts: &[u32], entries: &mut [Entry]) -> Usual {
    let mut asked: BTreeMap<(Group, Capacity), BTreeMap<u32, Vec<i128>>> = BTreeMap::new();
    each_list(entries, starts, |number, list| {
        let (Some(kind), Some(capacity)) = (kinds.get(number / 2), Capacity::ALL.get(number % 2)) else { return };
        let sane: Vec<&Entry> = list.iter().filter(|entry| is_sane(entry)).collect();
        if let (Some(entry), 1..) = (sane.get(sane.len() / 2), units(kind)) {
            let prices = asked.entry((group(kind), *capacity)).or_default().entry(kind.cloud).or_default();
            prices.push(scaled(entry.price) / units(kind));
        }
    });
    let over_clouds = |clouds: BTreeMap<u32, Vec<i128>>| median(clouds.into_values().filter_map(median).collect());
    asked.into_iter().filter_map(|(key, clouds)| Some((key, over_clouds(clouds)?))).collect()
}

/// Between two middles lies what both differ from by as many times: if one of two sellers is wrong, none is believed.
fn median(mut all: Vec<i128>) -> Option<i128> {
    let middle = all.len() / 2;
    all.sort_unstable();
    match all.get(middle.saturating_sub(1)..=middle) {
        Some([below, above]) if all.len().is_multiple_of(2) => below.checked_mul(*above).map(i128::isqrt),
        _ => all.get(middle).copied(),
    }
}

/// Sold out or not, its price is a price.
fn is_sane(entry: &Entry) -> bool {
    matches!(entry.flaw, None | Some(Flaw::SoldOut))
}

fn units(kind: &Kind) -> i128 {
    i128::from(if kind.chip.is_some() { kind.gpus } else { kind.vcpus })
}

/// Fine enough to be divided by units.
fn scaled(price: Money) -> i128 {
    i128::from(price.micros()) * 1_000_000
}
