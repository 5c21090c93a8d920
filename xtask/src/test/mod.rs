// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask test`: every check and every test, with one count at the end. What CI runs.

mod contracts;
mod lints;
mod nextest;
mod rings;
mod simulation;
mod speed;
mod tally;
mod tools;
mod tree;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::generate;
use tally::Tally;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Leave out what is slow: the real servers and cargo-deny
    #[arg(long)]
    fast: bool,
    /// Run these parts only, for example `ring1` or `fmt,clippy`
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    only: Vec<String>,
}

struct Part {
    name: &'static str,
    /// Left out by `--fast`.
    slow: bool,
    run: fn() -> Result<Tally>,
}

/// In the order they run: what fails fast comes first.
const PARTS: [Part; 12] = [
    Part { name: "tools", slow: false, run: tools::check },
    Part { name: "fmt", slow: false, run: lints::fmt },
    Part { name: "clippy", slow: false, run: lints::clippy },
    Part { name: "deny", slow: true, run: lints::deny },
    Part { name: "gen", slow: false, run: generated },
    Part { name: "contracts", slow: false, run: contracts::check },
    Part { name: "tree", slow: false, run: tree::check },
    Part { name: "ring1", slow: false, run: rings::pure },
    Part { name: "ring2", slow: false, run: rings::embedded },
    Part { name: "ring3", slow: false, run: simulation::run },
    Part { name: "ring4", slow: true, run: rings::real },
    Part { name: "conformance", slow: true, run: conformance },
];

pub fn run(options: &Options) -> Result<ExitCode> {
    let start = Instant::now();
    let mut done = Vec::new();
    for part in chosen(options)? {
        println!("\n== {}", part.name);
        let start = Instant::now();
        let tally = (part.run)().unwrap_or_else(|error| {
            println!("{}: {error:#}", part.name);
            Tally::failure(part.name)
        });
        println!("{}: {tally}, {}", part.name, seconds(start.elapsed()));
        done.push((part.name, tally, start.elapsed()));
    }
    println!("\n== summary");
    for (name, tally, time) in &done {
        println!("{name:<11} {:>9}   {tally}", seconds(*time));
    }
    speed::lines().iter().for_each(|line| println!("{line}"));
    let total: Tally = done.into_iter().map(|(_, tally, _)| tally).sum();
    for line in total.details() {
        println!("{line}");
    }
    println!("{:<11} {:>9}", "total", seconds(start.elapsed()));
    println!("{} passed, {} failed", total.passed, total.failed());
    Ok(if total.failed() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn chosen(options: &Options) -> Result<Vec<&'static Part>> {
    if let Some(unknown) = options.only.iter().find(|name| PARTS.iter().all(|part| part.name != **name)) {
        let known: Vec<_> = PARTS.iter().map(|part| part.name).collect();
        bail!("there is no part {unknown:?}; known are: {}", known.join(", "));
    }
    let named = |part: &Part| options.only.iter().any(|name| name == part.name);
    let wanted = |part: &&Part| if options.only.is_empty() { !(options.fast && part.slow) } else { named(part) };
    Ok(PARTS.iter().filter(wanted).collect())
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// The embedded API server beside the real one: every case and the random sequences.
fn conformance() -> Result<Tally> {
    let (report, wrong) = crate::conformance::everything()?;
    let mut tally = Tally::passes((report.cases + report.sequences).saturating_sub(wrong.len()));
    wrong.iter().for_each(|one| tally.fail(&format!("conformance: {one}")));
    Ok(tally)
}

fn generated() -> Result<Tally> {
    let files = generate::all()?;
    let mut stale = generate::compare(&crate::repo::root(), &files)?;
    stale.extend(generate::stale_builtins(&crate::repo::root())?);
    stale.extend(generate::stale_numbers(&crate::repo::root())?);
    generate::report(&stale);
    let mut tally = Tally::passes(files.len().saturating_sub(stale.len()));
    stale.iter().for_each(|one| tally.fail(&format!("gen: {}", one.path().display())));
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::{Options, chosen};

    fn names(fast: bool, only: &[&str]) -> Vec<&'static str> {
        let only = only.iter().map(|name| (*name).to_owned()).collect();
        chosen(&Options { fast, only }).unwrap().iter().map(|part| part.name).collect()
    }

    #[test]
    fn fast_leaves_out_what_is_slow_and_only_wins() {
        assert_eq!(names(false, &[]).len(), 12);
        let fast = names(true, &[]);
        assert!(!fast.contains(&"ring4") && !fast.contains(&"deny") && fast.len() == 9);
        assert_eq!(names(true, &["ring4", "fmt"]), ["fmt", "ring4"]);
        let error = chosen(&Options { fast: false, only: vec!["ring5".into()] }).err().unwrap().to_string();
        assert!(error.contains("ring5") && error.contains("contracts"), "{error}");
    }
}
