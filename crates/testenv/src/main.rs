// SPDX-License-Identifier: Apache-2.0
//! Builds the real Kubernetes components and runs a control plane of them. See the README of this crate.

use std::process::ExitCode;

use anyhow::Result;
use bivouac_testenv::components::{Component, ensure};
use bivouac_testenv::supervisor::{Setup, supervise};
use clap::Parser;

#[derive(Debug, Parser)]
#[command(name = "testenv", version, about = "A real Kubernetes control plane for tests")]
enum Command {
    /// Build every component that is missing, and print where each one is
    Build,
    /// Run a control plane until standard input ends; prints one JSON line when it is ready
    ///
    /// Commands on standard input, one line each, answered by one JSON line each: status, start NAME, stop NAME,
    /// restart NAME.
    Supervise(Setup),
}

// One thread: the servers die with the thread that started them, and that must be the main one.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(Command::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // For people and for the tests that show it: the causes, but no backtrace.
            eprintln!("testenv: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> Result<()> {
    match command {
        Command::Build => {
            for (component, path) in ensure(&Component::ALL)?.iter() {
                println!("{:<24} {}", component.name(), path.display());
            }
            Ok(())
        }
        Command::Supervise(setup) => supervise(setup).await,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_sound() {
        <super::Command as clap::CommandFactory>::command().debug_assert();
    }
}
