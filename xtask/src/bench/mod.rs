// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask bench`: measurements, for people and for programs. See bench/README.md.

mod apiserver;
mod audit;
mod market;
mod minicluster;
mod operator;
mod report;
mod tenancy;

use std::process::ExitCode;

use anyhow::{Result, bail};

pub use report::Report;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Which one; without it they are listed
    name: Option<String>,
    /// Print the report as one JSON object on the last line
    #[arg(long)]
    json: bool,
    /// Options of that bench, after `--`
    #[arg(last = true)]
    args: Vec<String>,
}

/// One thing that can be measured.
pub struct Bench {
    pub name: &'static str,
    /// One line for people.
    pub about: &'static str,
    /// Gets what stands after `--` on the command line. Progress goes to standard error.
    pub run: fn(&[String]) -> Result<Report>,
}

/// Every bench. A new one is a file in this folder with a `pub const BENCH: Bench`, a `mod` line above, an entry here
/// and its keys in bench/README.md.
const ALL: &[Bench] = &[apiserver::BENCH, market::BENCH, minicluster::BENCH, tenancy::BENCH];

pub fn run(options: &Options) -> Result<ExitCode> {
    let Some(name) = &options.name else {
        for bench in ALL {
            println!("{:<12} {}", bench.name, bench.about);
        }
        return Ok(ExitCode::SUCCESS);
    };
    let Some(bench) = ALL.iter().find(|bench| bench.name == name) else {
        let known: Vec<_> = ALL.iter().map(|bench| bench.name).collect();
        bail!("there is no bench {name:?}; known are: {}", known.join(", "));
    };
    if cfg!(debug_assertions) {
        // A slow bench client would make the floor look high.
        return in_release(options);
    }
    let report = (bench.run)(&options.args)?;
    print!("{}", report.table());
    if options.json {
        println!("{}", report.json(bench.name));
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the same bench again from a release build.
fn in_release(options: &Options) -> Result<ExitCode> {
    eprintln!("bench: building in release");
    let mut command = crate::repo::cargo();
    command.args(["run", "--release", "--quiet", "--package", "xtask", "--", "bench"]);
    command.args(&options.name).args(options.json.then_some("--json")).arg("--").args(&options.args);
    Ok(if command.status()?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
