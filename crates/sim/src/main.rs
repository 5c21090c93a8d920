// SPDX-License-Identifier: Apache-2.0
//! `bivouac-sim`: plays scenarios and tells what came of them, a line of JSON each. `bivouac simulate` starts it, one
//! process per job, and shows it to people.

mod entropy;
mod isolate;
mod player;

use std::process::ExitCode;

use bivouac_sim::{Fault, Scenario, explore::Mode};
use clap::Parser;

/// Plays scenarios in virtual time. Made for `bivouac simulate`.
#[derive(Debug, Parser)]
#[command(name = "bivouac-sim", version)]
pub struct Options {
    /// Scenarios, by name or file
    #[arg(required_unless_present = "list")]
    scenarios: Vec<String>,
    /// Print the scenarios as JSON
    #[arg(long)]
    list: bool,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds, from the first one on
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    #[arg(long, default_value = "random")]
    mode: Mode,
    /// These faults instead of those of the mode, separated by commas
    #[arg(long, value_delimiter = ',')]
    faults: Option<Vec<Fault>>,
    /// Other controllers than those of the scenario, as for `bivouac operator`
    #[arg(long, allow_hyphen_values = true)]
    controllers: Option<String>,
    /// No faults at all
    #[arg(long, conflicts_with = "faults")]
    undisturbed: bool,
    /// Tell every call of the operator on standard error, with its virtual second
    #[arg(long)]
    calls: bool,
    /// Play each crash from the beginning, instead of sharing what comes before it
    #[arg(long)]
    one_by_one: bool,
    /// Stop at the first run that goes wrong
    #[arg(long)]
    until_failure: bool,
    /// Which part of the trials to make, as INDEX/COUNT
    #[arg(long, default_value = "0/1", value_parser = shard)]
    shard: (u64, u64),
    /// Leave out this many trials of an exhaustive mode
    #[arg(long, default_value_t = 0)]
    skip: u64,
    /// Make at most this many trials of an exhaustive mode
    #[arg(long)]
    limit: Option<u64>,
}

fn shard(text: &str) -> Result<(u64, u64), String> {
    let parts = text.split_once('/').and_then(|(at, of)| Some((at.parse().ok()?, of.parse().ok()?)));
    parts.filter(|(at, of)| at < of).ok_or_else(|| format!("{text:?} is not INDEX/COUNT"))
}

fn main() -> ExitCode {
    let options = Options::parse();
    let result = if options.list { list() } else { player::play(&options) };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bivouac-sim: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn list() -> anyhow::Result<ExitCode> {
    let all = Scenario::all()?;
    let all: Vec<_> = all.iter().map(|one| serde_json::json!({ "scenario": one.name, "about": one.about })).collect();
    println!("{}", serde_json::to_string_pretty(&all)?);
    Ok(ExitCode::SUCCESS)
}
