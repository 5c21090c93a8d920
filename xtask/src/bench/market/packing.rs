// SPDX-License-Identifier: Apache-2.0
//! Filling machines with pods, beside the plain reference.

use std::time::Instant;

use anyhow::{Result, bail};
use bivouac_market::pack;

use super::sample::diverse;
use super::yardstick::{check, first_fit};
use crate::bench::Report;

const ROUNDS: usize = 3;

pub fn run(pods: usize, types: usize, seed: u64, report: &mut Report) -> Result<()> {
    let (items, kinds) = diverse(pods, types, seed);
    let mut best = f64::MAX;
    let mut packing = pack(&items, &kinds);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        packing = pack(&items, &kinds);
        best = best.min(start.elapsed().as_secs_f64());
    }
    if let Err(wrong) = check(&packing, &items, &kinds) {
        bail!("the packing is not valid: {wrong}");
    }
    let reference = first_fit(&items, &kinds);
    let dollars = |micros: i128| micros as f64 / 1e6;
    let cost = i128::from(packing.cost.micros());
    report.add("pack_pods", pods as f64, "", "");
    report.add("pack_types", types as f64, "", "");
    report.add("pack_seconds", best, "s", format!("best of {ROUNDS}; the bar is 1"));
    report.add("pack_nodes", packing.nodes.len() as f64, "", "");
    report.add("pack_cost", dollars(cost), "$/h", "");
    report.add("reference_nodes", reference.nodes as f64, "", "first fit, largest first, cheapest type at each step");
    report.add("reference_cost", dollars(reference.cost), "$/h", "");
    if packing.nodes.len() > reference.nodes || cost > reference.cost {
        bail!("the reference is better");
    }
    Ok(())
}
