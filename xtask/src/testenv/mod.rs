// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask testenv`: a real control plane on this machine, for people.

mod operator;
mod standing;

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command as Process, ExitCode};

use anyhow::{Context, Result};
use bivouac_testenv::components::{Component, Paths, ensure};
use bivouac_testenv::{Options, TestCluster};

use crate::repo;
use standing::Standing;

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Start a cluster that stays until `down`
    Up {
        /// Install the suite, run the operator here until Ctrl-C, then stop everything
        #[arg(long)]
        with_operator: bool,
    },
    /// Stop the cluster that `up` started, and forget its data
    Down,
    /// Run a command against a fresh cluster, and stop it afterwards
    Run {
        /// The command and its arguments; KUBECONFIG is set for it
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<OsString>,
    },
}

pub fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::Up { with_operator } => up(with_operator),
        Command::Down => down(),
        Command::Run { command } => run_command(&command),
    }
}

fn up(with_operator: bool) -> Result<ExitCode> {
    let paths = ensure(&Component::USUAL)?;
    build_supervisor()?;
    let standing = Standing::of_this_checkout()?;
    let ready = match standing.running() {
        Some(ready) => {
            println!("The cluster already runs.");
            ready
        }
        None => standing.start(&repo::programs()?.join("testenv"))?,
    };
    println!("A real Kubernetes control plane runs at {}", ready.server);
    if with_operator {
        let outcome = operator::run(&ready.kubeconfig, &paths);
        standing.stop()?;
        println!("The cluster is stopped and its data deleted.");
        outcome?;
        return Ok(ExitCode::SUCCESS);
    }
    println!("\nUse it:");
    print_usage(&ready.kubeconfig, &paths)?;
    println!("  {} get namespaces", kubectl(&paths)?.display());
    println!("\nStop it:\n  cargo xtask testenv down");
    Ok(ExitCode::SUCCESS)
}

fn print_usage(kubeconfig: &Path, paths: &Paths) -> Result<()> {
    println!("  export KUBECONFIG={}", kubeconfig.display());
    if kubectl(paths)?.is_absolute() {
        let folder = paths.get(Component::Kubectl)?.parent().unwrap_or(Path::new("."));
        println!("  export PATH=\"$PATH:{}\"", folder.display());
    }
    Ok(())
}

/// The user's own kubectl where there is one; else that of the cluster's version.
fn kubectl(paths: &Paths) -> Result<&Path> {
    let own = Process::new("kubectl").args(["version", "--client"]).output();
    if own.is_ok_and(|output| output.status.success()) {
        return Ok(Path::new("kubectl"));
    }
    paths.get(Component::Kubectl)
}

fn down() -> Result<ExitCode> {
    let was_running = Standing::of_this_checkout()?.stop()?;
    println!(
        "{}",
        if was_running { "The cluster is stopped and its data deleted." } else { "No cluster was running." }
    );
    Ok(ExitCode::SUCCESS)
}

fn run_command(command: &[OsString]) -> Result<ExitCode> {
    let (program, args) = command.split_first().context("no command was given")?;
    build_supervisor()?;
    let cluster = tokio::runtime::Runtime::new()?.block_on(TestCluster::start(Options::default()))?;
    let status = Process::new(program).args(args).env("KUBECONFIG", cluster.kubeconfig()).status();
    drop(cluster);
    let status = status.with_context(|| format!("running {}", program.display()))?;
    // A command that a signal ended has no code of its own.
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// The program that runs a cluster, as the code beside us says.
fn build_supervisor() -> Result<()> {
    repo::succeed(repo::cargo().args(["build", "--quiet", "-p", "bivouac-testenv", "-p", "xtask", "--bin", "testenv"]))
}
