// SPDX-License-Identifier: Apache-2.0
//! The one binary. Roles are subcommands; each lives in the file of its name.

use std::{process::ExitCode, time::Instant};

use bivouac::{
    cli::{Cli, Command},
    market, minicluster, operator, print, simulate, up,
};
use clap::Parser;

fn main() -> ExitCode {
    let began = Instant::now();
    let cli = Cli::parse();
    // rustls wants one choice of cryptography for the whole process.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let result = match cli.command {
        Command::Up(options) => up::run(&options, began),
        Command::Down(place) => up::down::run(&place),
        Command::Status(options) => up::status::run(&options),
        Command::Reset(options) => up::reset::run(&options),
        Command::Operator(options) => done(operator::run(options)),
        Command::Simulate(options) => simulate::run(&options),
        Command::MiniCluster(verb) => minicluster::run(&verb),
        Command::Offers(options) => market::offers(&options),
        Command::Clouds(options) => market::clouds(&options),
        Command::Crds(options) => done(print::crds(&options)),
        Command::Rbac(options) => done(print::rbac(&options)),
        Command::Policies(options) => done(print::policies(&options)),
        Command::Version(options) => done(print::version(&options)),
        Command::Completions { shell } => done(print::completions(shell)),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bivouac: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn done(result: anyhow::Result<()>) -> anyhow::Result<ExitCode> {
    result.map(|()| ExitCode::SUCCESS)
}
