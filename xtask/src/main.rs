// SPDX-License-Identifier: Apache-2.0
//! Everything CI and people run: `cargo xtask <job>`. One file or folder per job.

mod bench;
mod conformance;
mod dist;
mod generate;
mod repo;
mod simulation;
mod soak;
mod test;
mod testenv;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

/// Everything CI and people run
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
enum Job {
    /// Write the files that are made from code: CRDs, reference, RBAC, policies
    Gen(generate::Options),
    /// Run every check and every test; what CI runs
    Test(test::Options),
    /// A real Kubernetes control plane on this machine
    #[command(subcommand)]
    Testenv(testenv::Command),
    /// Compare the embedded API server with the real one
    Conformance(conformance::Options),
    /// Try crash points for a long time; what was tried adds up in crates/sim/totals.json
    Soak(soak::Options),
    /// Measure
    Bench(bench::Options),
    /// Build the static binary and the container image into dist/
    Dist,
}

fn main() -> ExitCode {
    let job = Job::parse();
    // rustls wants one choice of cryptography for the whole process.
    let _ = rustls::crypto::ring::default_provider().install_default();
    run(job).unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(job: Job) -> Result<ExitCode> {
    match job {
        Job::Gen(options) => generate::run(&options),
        Job::Test(options) => test::run(&options),
        Job::Testenv(command) => testenv::run(command),
        Job::Conformance(options) => conformance::run(&options),
        Job::Soak(options) => soak::run(&options),
        Job::Bench(options) => bench::run(&options),
        Job::Dist => dist::run(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_sound() {
        <super::Job as clap::CommandFactory>::command().debug_assert();
    }
}
