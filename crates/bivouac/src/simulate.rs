// SPDX-License-Identifier: Apache-2.0
//! `bivouac simulate`: starts `bivouac-sim`, one process per job, and tells people what it finds. The simulation is a
//! program of its own because it replaces the randomness of its whole process; this one makes keys.

mod gather;
pub mod report;
mod words;

use std::{
    io::{BufRead, BufReader, IsTerminal},
    path::PathBuf,
    process::{Child, Command, ExitCode, Stdio},
    sync::mpsc,
    thread,
};

use anyhow::{Context, Result, bail};

use crate::cli::SimulateOptions;
use gather::Gathered;
use report::Line;

/// Where the simulation is, if not beside this program.
const PROGRAM_ENV: &str = "BIVOUAC_SIM";

/// Runs the simulation. The exit code is 1 if something is wrong with what was simulated.
pub fn run(options: &SimulateOptions) -> Result<ExitCode> {
    let program = program()?;
    if options.list {
        return list(&program, options.json);
    }
    let scenarios = scenarios(&program, &options.scenarios)?;
    let jobs = options.jobs.max(1);
    let (sender, lines) = mpsc::channel();
    let mut children = Vec::new();
    for job in 0..jobs {
        let mut child = start(&program, options, &scenarios, job, jobs)?;
        let Some(output) = child.stdout.take() else { bail!("the simulation has no output") };
        let sender = sender.clone();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Ok(line) = serde_json::from_str::<Line>(&line) {
                    let _ = sender.send((job, line));
                }
            }
        });
        children.push(child);
    }
    drop(sender);
    let mut gathered = Gathered::new(scenarios, options.seed, jobs);
    let mut progress = words::Progress::new(!options.json && !options.quiet && std::io::stderr().is_terminal());
    for (job, line) in lines {
        if let Line::Failure(failure) = &line {
            progress.clear();
            if !options.json {
                print!("{}", words::failure(failure));
            }
            if options.until_failure {
                children.iter_mut().for_each(end);
            }
        }
        gathered.take(job, line);
        progress.show(&gathered);
    }
    progress.clear();
    let broken = children.iter_mut().filter_map(|child| child.wait().ok()).any(|status| status.code() == Some(2));
    if options.json {
        println!("{}", serde_json::to_string_pretty(&gathered.json())?);
    } else {
        print!("{}", words::summary(&gathered));
    }
    if broken {
        bail!("the simulation could not run to its end; its own words are above");
    }
    Ok(if gathered.failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn end(child: &mut Child) {
    // It may have ended by itself.
    let _ = child.kill();
}

fn start(program: &PathBuf, options: &SimulateOptions, scenarios: &[String], job: u32, jobs: u32) -> Result<Child> {
    let mut command = Command::new(program);
    command.args(scenarios).args(["--seed", &options.seed.to_string(), "--mode", options.mode.name()]);
    command.args(["--shard", &format!("{job}/{jobs}")]);
    let seeds = options.seeds.unwrap_or(if options.until_failure { u64::MAX } else { 1 });
    command.args(["--seeds", &seeds.to_string()]);
    if let Some(faults) = &options.faults {
        command.args(["--faults", faults]);
    }
    if let Some(controllers) = &options.controllers {
        command.arg(format!("--controllers={controllers}"));
    }
    let flags =
        [("undisturbed", options.undisturbed), ("calls", options.calls), ("until-failure", options.until_failure)];
    for (flag, set) in flags {
        if set {
            command.arg(format!("--{flag}"));
        }
    }
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    child.with_context(|| format!("cannot start {}", program.display()))
}

/// The simulation lies beside this program.
fn program() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os(PROGRAM_ENV) {
        return Ok(path.into());
    }
    let here = std::env::current_exe().context("cannot find out where this program is")?;
    let beside = here.with_file_name("bivouac-sim");
    if !beside.exists() {
        let release = if here.components().any(|part| part.as_os_str() == "release") { " --release" } else { "" };
        bail!(
            "the simulation is a program of its own, and {} does not exist.\n\
             In a checkout, `cargo build{release} -p bivouac-sim` makes it. Elsewhere, set {PROGRAM_ENV} to where it is.",
            beside.display()
        );
    }
    Ok(beside)
}

fn known(program: &PathBuf) -> Result<Vec<gather::Listed>> {
    let output = Command::new(program).arg("--list").output();
    let output = output.with_context(|| format!("cannot start {}", program.display()))?;
    serde_json::from_slice(&output.stdout).context("the simulation does not tell its scenarios")
}

fn list(program: &PathBuf, json: bool) -> Result<ExitCode> {
    let known = known(program)?;
    if json {
        println!("{}", serde_json::to_string_pretty(&known)?);
    } else {
        print!("{}", words::list(&known));
    }
    Ok(ExitCode::SUCCESS)
}

/// Names may end in `*`.
fn scenarios(program: &PathBuf, wanted: &[String]) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for name in wanted {
        match name.strip_suffix('*') {
            None => all.push(name.clone()),
            Some(prefix) => {
                let known = known(program)?.into_iter().map(|one| one.scenario);
                let before = all.len();
                all.extend(known.filter(|one| one.starts_with(prefix)));
                if all.len() == before {
                    bail!("no scenario begins with {prefix:?}; `bivouac simulate --list` shows them");
                }
            }
        }
    }
    Ok(all)
}
