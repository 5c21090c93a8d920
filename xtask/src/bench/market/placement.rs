// SPDX-License-Identifier: Apache-2.0
//! Loading a catalogue, swapping it, and asking it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bivouac_core::Money;
use bivouac_core::ids::IdStream;
use bivouac_market::{
    Allowed, Catalogue, Least, Listing, Market, Memory, Offer, Policy, Reading, Readings, Refusal, Requirements, Row,
    Seller, Situation, Spot, Wish, labels,
};
use jiff::{SignedDuration, Timestamp};

use super::by_reading::by_reading;
use crate::bench::Report;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const GOOD: Reading = Reading { read_at: NOW, good_for: SignedDuration::from_hours(1) };
const ROUNDS: usize = 9;
/// Offers that rest while the questions are asked.
const REFUSALS: usize = 500;

pub fn load(rows: &[Row<'_>], report: &mut Report) -> Catalogue {
    let mut catalogue = Catalogue::new(rows);
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            catalogue = Catalogue::new(rows);
            start.elapsed()
        })
        .collect();
    times.sort();
    let median = times.get(ROUNDS / 2).copied().unwrap_or_default();
    let best = times.first().copied().unwrap_or_default();
    let note = format!("from parsed rows, median of {ROUNDS}, best {:.1}; the bar is 20", millis(best));
    report.add("load_ms", millis(median), "ms", note);
    let (bytes, offers) = (catalogue.bytes() as f64, catalogue.len() as f64);
    report.add("bytes_per_offer", bytes / offers, "B", format!("{offers} prices"));
    catalogue
}

/// One cloud changes one price while another thread keeps asking.
pub fn swap(rows: &[Row<'_>], report: &mut Report) {
    let mut lists: BTreeMap<&str, Vec<Listing>> = BTreeMap::new();
    for row in rows {
        lists.entry(row.cloud).or_default().push(Listing::from(*row));
    }
    let market = Market::default();
    let largest = lists.iter().max_by_key(|(_, list)| list.len()).map(|(cloud, list)| (*cloud, list.clone()));
    lists.into_iter().for_each(|(cloud, list)| market.list(cloud, list, GOOD));
    let Some((cloud, mut list)) = largest else { return };
    if let Some(first) = list.first_mut() {
        first.on_demand = Some(Money::from_micros(1_234_567));
    }
    let done = AtomicBool::new(false);
    let wish = Wish { least: Least { gpus: 1000, ..Least::default() }, ..Wish::default() };
    let (asked, longest, took) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut asked, mut longest) = (0_u32, Duration::ZERO);
            while !done.load(Ordering::Relaxed) {
                let start = Instant::now();
                let view = market.view();
                let _ = std::hint::black_box(view.choose(&wish, NOW, 1));
                longest = longest.max(start.elapsed());
                asked += 1;
            }
            (asked, longest)
        });
        let start = Instant::now();
        market.list(cloud, list, GOOD);
        let took = start.elapsed();
        done.store(true, Ordering::Relaxed);
        let (asked, longest) = reader.join().unwrap_or_default();
        (asked, longest, took)
    });
    let note = format!("all of it while {asked} questions were answered; the longest took {:.2} ms", millis(longest));
    report.add("swap_ms", millis(took), "ms", note);
}

pub fn ask(catalogue: &Catalogue, questions: usize, mut dice: IdStream, report: &mut Report) -> Result<()> {
    let offers: Vec<Offer<'_>> = catalogue.iter().filter(|offer| offer.flaw.is_none()).collect();
    let (mut memory, mut readings) = (Memory::default(), Readings::default());
    for number in 0..REFUSALS {
        let at = usize::try_from(dice.next_u64() % offers.len().max(1) as u64).unwrap_or_default();
        let why = if number % 4 == 0 { Refusal::Quota } else { Refusal::Capacity };
        offers.get(at).into_iter().for_each(|offer| memory.refused(offer, why, NOW));
    }
    offers.iter().for_each(|offer| readings.set(offer.cloud, GOOD));
    let now = Situation { now: NOW, memory: &memory, readings: &readings };
    let (mut times, mut found) = (Vec::with_capacity(questions), 0);
    for number in 0..questions {
        let wish = any_wish(&offers, &mut dice);
        let start = Instant::now();
        let answer = catalogue.choose(&wish, now, 5);
        times.push(start.elapsed());
        let ids: Vec<_> = answer.iter().flat_map(|decision| &decision.choices).map(|choice| choice.offer).collect();
        if ids != by_reading(catalogue, &wish, now, 5) {
            bail!("question {number} has another answer when the whole list is read: {wish:?}");
        }
        found += usize::from(!ids.is_empty());
    }
    times.sort();
    let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
    let note = format!(
        "{questions} questions, {found} with an answer, all as a plain scan finds them; {REFUSALS} offers rest"
    );
    report.add("placement_p50_us", micros(at(50)), "µs", note);
    report.add("placement_p99_us", micros(at(99)), "µs", "the bar is 1000");
    Ok(())
}

/// Somebody wants something like an offer that exists, from some clouds.
fn any_wish(offers: &[Offer<'_>], dice: &mut IdStream) -> Wish {
    let mut below = |limit: u64| dice.next_u64() % limit.max(1);
    let Some(like) = usize::try_from(below(offers.len() as u64)).ok().and_then(|at| offers.get(at)) else {
        return Wish::default();
    };
    let mut wish = Wish::default();
    let mut requirements = Requirements::default();
    if let Some(gpu) = like.gpu {
        requirements.add(labels::GPU_TYPE, Allowed::only([gpu.chip().to_string()]));
        wish.least = Least { gpus: like.gpus, ..Least::default() };
    }
    for (key, one_in) in [(labels::REGION, 4), (labels::GPU_COUNT, 3), (labels::CLOUD, 8), (labels::MACHINE, 20)] {
        if let (0, Some(value)) = (below(one_in), like.label(key)) {
            requirements.add(key, Allowed::only([value]));
        }
    }
    wish.requirements = requirements;
    wish.least.vcpus = u32::try_from(u64::from(like.vcpus) * below(100) / 100).unwrap_or_default();
    wish.least.memory_mib = u32::try_from(u64::from(like.memory_mib) * below(100) / 100).unwrap_or_default();
    wish.max_price = (below(2) == 0).then_some(like.price);
    wish.spot = [Spot::Never, Spot::Allowed, Spot::Only].get(below(3) as usize).copied().unwrap_or_default();
    wish.policy = if below(4) == 0 { Policy::Strict } else { Policy::Score };
    if below(2) == 0 {
        let mut sellers: BTreeMap<String, Seller> = BTreeMap::new();
        for _ in 0..1 + below(8) {
            let cloud = usize::try_from(below(offers.len() as u64)).ok().and_then(|at| offers.get(at));
            let priority = u32::try_from(below(10)).unwrap_or_default();
            sellers.extend(cloud.map(|offer| (offer.cloud.to_owned(), Seller { priority, regions: Vec::new() })));
        }
        wish.sellers = Some(sellers);
    }
    wish
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
