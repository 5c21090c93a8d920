// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask bench market`: how fast offers are found and machines are filled, and whether the answers are right.

mod packing;
mod placement;
mod prices;

/// The plain answers that tests compare with as well.
#[path = "../../../../crates/market/tests/pure/by_reading.rs"]
mod by_reading;
#[allow(
    dead_code,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "it is a test's"
)]
#[path = "../../../../crates/market/tests/pack/sample.rs"]
mod sample;
/// The reference that packing is held against, and what it packs.
#[allow(
    dead_code,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "it is a test's"
)]
#[path = "../../../../crates/market/tests/pack/yardstick.rs"]
mod yardstick;

use anyhow::Result;
use bivouac_core::Ids;
use clap::Parser;

use super::{Bench, Report};

pub const BENCH: Bench = Bench {
    name: "market",
    about: "questions over 112,000 offers against reading them all; 10,000 pods over 400 machine types",
    run,
};

#[derive(Debug, Parser)]
#[command(name = "market")]
struct Options {
    /// Questions, each checked by reading the whole list
    #[arg(long, default_value_t = 500)]
    questions: usize,
    #[arg(long, default_value_t = 10_000)]
    pods: usize,
    #[arg(long, default_value_t = 400)]
    types: usize,
    /// What decides questions and pods
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn run(args: &[String]) -> Result<Report> {
    let name = "market".to_owned();
    let options = Options::try_parse_from(std::iter::once(&name).chain(args))?;
    let mut report = Report::default();
    let ids = Ids::new(options.seed);
    let (text, source) = prices::table()?;
    let rows = bivouac_market::table::read(&text)?;
    report.add("offers", rows.len() as f64, "rows", "");
    report.say("source", source);
    let catalogue = placement::load(&rows, &mut report);
    placement::swap(&rows, &mut report);
    placement::ask(&catalogue, options.questions, ids.purpose("questions"), &mut report)?;
    packing::run(options.pods, options.types, options.seed, &mut report)?;
    Ok(report)
}
