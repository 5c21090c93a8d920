// SPDX-License-Identifier: Apache-2.0
//! The one binary. Roles are subcommands; each lives in the file of its name.

use std::process::ExitCode;

use bivouac::{
    cli::{Cli, Command},
    operator, print,
};
use clap::Parser;

fn main() -> ExitCode {
    let cli = Cli::parse();
    // rustls wants one choice of cryptography for the whole process.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let result = match cli.command {
        Command::Operator(options) => operator::run(options),
        Command::Crds(options) => print::crds(&options),
        Command::Rbac(options) => print::rbac(&options),
        Command::Policies(options) => print::policies(&options),
        Command::Version(options) => print::version(&options),
        Command::Completions { shell } => print::completions(shell),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bivouac: {error:#}");
            ExitCode::FAILURE
        }
    }
}
