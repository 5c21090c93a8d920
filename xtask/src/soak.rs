// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask soak`: crash points for as long as one likes. What was tried adds up in a committed file, so that a long
//! run can be interrupted and gone on with; no point is counted twice.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::{
    repo,
    simulation::{Build, JOBS, sum},
};

/// Stories that follow from a number: there is always a next one.
const GENERATED: &str = "tenancy/generated#";
/// So many of them in one go: the processes that play them are prepared once.
const AT_ONCE: u64 = 10;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// How long to go on
    #[arg(long, default_value_t = 30)]
    minutes: u64,
    /// Crowds too: a run of one takes ten times as long as others
    #[arg(long)]
    crowds: bool,
}

/// What was tried so far, over all runs.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Totals {
    /// Complete runs with one crash each, at places that are all different.
    crash_points: u64,
    virtual_days: f64,
    /// Sum over all processes.
    process_hours: f64,
    /// Written scenarios, with their crash points.
    scenarios: BTreeMap<String, u64>,
    /// Generated stories 1 to this one.
    generated_through: u64,
    generated_points: u64,
}

pub fn run(options: &Options) -> Result<ExitCode> {
    let programs = ["-p", "bivouac", "-p", "bivouac-sim"];
    repo::succeed(repo::cargo().args(["build", "--release", "--quiet"]).args(programs))?;
    let file = repo::root().join("crates/sim/totals.json");
    let mut totals = read(&file)?;
    let until = Instant::now() + Duration::from_secs(60 * options.minutes);
    let mut missing = Build::Release.scenarios("tenancy/")?;
    missing.extend(Build::Release.scenarios("minicluster/")?);
    if options.crowds {
        missing.extend(Build::Release.scenarios("crowd/")?);
    }
    missing.retain(|name| !totals.scenarios.contains_key(name));
    for name in missing {
        if Instant::now() > until {
            break;
        }
        let points = exhaust(&[&name], &mut totals)?;
        totals.scenarios.insert(name, points);
        write(&file, &totals)?;
    }
    while Instant::now() < until {
        let numbers = totals.generated_through + 1..=totals.generated_through + AT_ONCE;
        let names: Vec<String> = numbers.map(|number| format!("{GENERATED}{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        totals.generated_points += exhaust(&names, &mut totals)?;
        totals.generated_through += AT_ONCE;
        write(&file, &totals)?;
    }
    println!("{} crash points so far", totals.crash_points);
    Ok(ExitCode::SUCCESS)
}

/// Tries every crash point of some scenarios.
fn exhaust(names: &[&str], totals: &mut Totals) -> Result<u64> {
    let (stories, failed) = Build::Release.simulate(names, &["--mode", "crashes", "--jobs", JOBS])?;
    let wrong: Vec<_> = stories.iter().filter_map(|story| story.get("failures")).collect();
    ensure!(!failed, "{} went wrong: {wrong:#?}", names.join(", "));
    let points = sum(&stories, "crash_points") as u64;
    totals.crash_points += points;
    totals.virtual_days += sum(&stories, "virtual_seconds") / 86_400.0;
    totals.process_hours += sum(&stories, "wall_seconds") * JOBS.parse::<f64>()? / 3_600.0;
    let last = names.last().copied().unwrap_or_default();
    println!("through {last}: {points} crash points, in sum {}", totals.crash_points);
    Ok(points)
}

fn read(file: &PathBuf) -> Result<Totals> {
    match fs::read(file) {
        Ok(bytes) => serde_json::from_slice(&bytes).with_context(|| format!("{} cannot be read", file.display())),
        Err(_) => Ok(Totals::default()),
    }
}

/// In one step: an interrupted run leaves the file as it was.
fn write(file: &PathBuf, totals: &Totals) -> Result<()> {
    let next = file.with_extension("json.next");
    fs::write(&next, serde_json::to_string_pretty(totals)? + "\n")?;
    Ok(fs::rename(next, file)?)
}
