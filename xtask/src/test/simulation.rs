// SPDX-License-Identifier: Apache-2.0
//! Ring 3: the simulation, through the command that people use.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{nextest, tally::Tally};
use crate::{
    dist, repo,
    simulation::{Build, JOBS, sum},
};

/// Seeds that are played in two processes and must give the same transcript.
const TWICE: u64 = 120;
/// Crash points that a run of the tests must have tried.
const CRASH_POINTS: u64 = 5_000;
/// Generated stories whose crash points are tried beside those of the written ones. Those of crowds are for
/// `cargo xtask soak`: each run of one takes half a second.
const STORIES: u32 = 16;
/// The written stories of all controllers.
const WRITTEN: [&str; 2] = ["tenancy/*", "minicluster/*"];
/// Within so many seeds a planted bug must be found.
const BOUND: u64 = 400;
const BUGS: [&str; 6] =
    ["create-then-record", "stale-cache", "missed-delete", "early-finalizer", "hot-loop", "event-order"];

pub fn run() -> Result<Tally> {
    nextest::build()?;
    let mut tally = Tally::default();
    tally.count("sim: the symbol", symbol_is_only_where_it_belongs());
    tally.count("sim: two processes", two_processes_agree());
    tally.count("sim: shared beginnings", shared_beginnings_change_nothing());
    tally.count("sim: crash points", every_crash_point());
    for mode in ["stale", "unobserved"] {
        let stories = ["tenancy/*", "minicluster/run", "minicluster/resize-while-it-starts"];
        tally.count(&format!("sim: {mode}"), all_of(&stories, &["--mode", mode]).map(drop));
    }
    let simple = ["tenancy/one-workspace", "minicluster/run"];
    tally.count("sim: errors", all_of(&simple, &["--mode", "errors"]).map(drop));
    tally.count("sim: known seeds", all_of(&WRITTEN, &["--seed", "1", "--seeds", "6"]).map(drop));
    tally.count("sim: crowds", all_of(&["crowd/*"], &["--seed", "1", "--seeds", "4"]).map(drop));
    let fresh = seed_of_this_commit()?;
    println!("fresh seeds from {fresh} on");
    tally.count("sim: fresh seeds", all_of(&WRITTEN, &["--seed", &fresh.to_string()]).map(drop));
    tally.count("sim: without a bug", all_of(&["planted/lamps"], &["--seeds", "60"]).map(drop));
    for bug in BUGS {
        tally.count(&format!("sim: {bug}"), is_found(bug));
    }
    Ok(tally)
}

/// Every commit tries other seeds, and always the same ones, so that a failure is the commit's and not the day's.
fn seed_of_this_commit() -> Result<u64> {
    let head = repo::command("git").args(["rev-parse", "HEAD"]).output()?.stdout;
    let head = String::from_utf8_lossy(&head);
    Ok(u64::from_str_radix(head.get(..8).unwrap_or_default(), 16).unwrap_or_default())
}

/// Nobody who makes keys may have the replaced randomness.
fn symbol_is_only_where_it_belongs() -> Result<()> {
    let defines = |name: &str| dist::elf::defines(&std::fs::read(Build::Tests.program(name)?)?, "getrandom");
    ensure!(defines("bivouac-sim")?, "bivouac-sim does not define getrandom, so no seed decides about it");
    ensure!(!defines("bivouac")?, "bivouac defines getrandom: its keys could be guessed");
    Ok(())
}

/// Plays trials, of which none may go wrong.
fn all_of(scenarios: &[&str], options: &[&str]) -> Result<Vec<Value>> {
    let start = Instant::now();
    let (stories, failed) = Build::Tests.simulate(scenarios, &[options, &["--jobs", JOBS]].concat())?;
    let scenario = scenarios.first().copied().unwrap_or_default();
    let wrong: Vec<&Value> = stories.iter().filter_map(|story| story.get("violations")).collect();
    ensure!(!failed, "{scenario} {} went wrong: {wrong:#?}", options.join(" "));
    println!(
        "{scenario} {}: {} runs, {} steps, {:.0} virtual seconds, {:.1} s",
        options.join(" "),
        sum(&stories, "runs"),
        sum(&stories, "steps"),
        sum(&stories, "virtual_seconds"),
        start.elapsed().as_secs_f64()
    );
    Ok(stories)
}

fn two_processes_agree() -> Result<()> {
    let seeds = TWICE.to_string();
    let play = || Build::Tests.simulate(&["tenancy/removed-member"], &["--seeds", &seeds]);
    let ((one, _), (two, _)) = (play()?, play()?);
    let hash = |stories: &[Value]| stories.first()?.get("transcript_hash")?.as_str().map(str::to_owned);
    ensure!(hash(&one).is_some() && hash(&one) == hash(&two), "two processes differ: {one:?} and {two:?}");
    println!("{TWICE} seeds in two processes: the same transcripts");
    Ok(())
}

/// Crashes that share what comes before them end as those that are played from the beginning.
fn shared_beginnings_change_nothing() -> Result<()> {
    let play = |options: &[&str]| -> Result<Value> {
        let mut command = repo::command(Build::Tests.program("bivouac-sim")?);
        let output = command.args(["minicluster/run", "--mode", "crashes", "--limit", "40"]).args(options).output()?;
        let told = String::from_utf8_lossy(&output.stdout);
        let mut last: Value = serde_json::from_str(told.lines().last().context("it said nothing")?)?;
        let done = last.get_mut("done").and_then(Value::as_object_mut).context("it did not end")?;
        done.remove("wall_seconds");
        Ok(last)
    };
    let (shared, alone) = (play(&[])?, play(&["--one-by-one"])?);
    ensure!(shared == alone, "together they came to {shared}, one by one to {alone}");
    let points = alone.pointer("/done/counts/crash_points").and_then(Value::as_u64);
    ensure!(points == Some(40), "they are not 40: {alone}");
    Ok(())
}

fn every_crash_point() -> Result<()> {
    let generated: Vec<String> = (1..=STORIES).map(|number| format!("tenancy/generated#{number}")).collect();
    let scenarios: Vec<&str> = WRITTEN.into_iter().chain(generated.iter().map(String::as_str)).collect();
    let stories = all_of(&scenarios, &["--mode", "crashes"])?;
    let points = sum(&stories, "crash_points");
    println!("{points} crash points, all different");
    ensure!(points >= CRASH_POINTS as f64, "only {points} crash points of {CRASH_POINTS}");
    Ok(())
}

fn is_found(bug: &str) -> Result<()> {
    let (controllers, seeds) = (format!("--controllers=planted:{bug}"), BOUND.to_string());
    let (stories, failed) =
        Build::Tests.simulate(&["planted/lamps"], &[&controllers, "--until-failure", "--seeds", &seeds])?;
    ensure!(failed, "not found within {BOUND} seeds");
    let seed = stories.iter().find_map(|story| story.get("failures")?.get(0)?.get("seed")?.as_u64());
    println!("{bug}: found at seed {} of {BOUND}", seed.unwrap_or_default());
    Ok(())
}
