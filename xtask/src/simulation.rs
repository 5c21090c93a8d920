// SPDX-License-Identifier: Apache-2.0
//! The simulation, as jobs start it: through the command that people use.

use std::{path::PathBuf, process::Command};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::repo;

/// Two cores play at the same time.
pub const JOBS: &str = "2";

pub fn build() -> Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--profile", "sim", "-p", "bivouac", "-p", "bivouac-sim"]);
    cargo.args(["--features", "bivouac-sim/planted"]).current_dir(repo::root());
    ensure!(cargo.status().context("cannot start cargo")?.success(), "the simulation does not build");
    Ok(())
}

pub fn program(name: &str) -> Result<PathBuf> {
    let programs = repo::programs()?;
    Ok(programs.parent().context("the programs lie nowhere")?.join("sim").join(name))
}

/// What `bivouac simulate` says, and whether it found something.
pub fn simulate(scenarios: &[&str], options: &[&str]) -> Result<(Vec<Value>, bool)> {
    let mut command = Command::new(program("bivouac")?);
    let output = command.arg("simulate").args(scenarios).arg("--json").args(options).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(matches!(output.status.code(), Some(0 | 1)), "it ended with {}: {said}", output.status);
    let told: Value = serde_json::from_slice(&output.stdout).context("it does not speak JSON")?;
    let stories = if let Value::Array(stories) = told { stories } else { vec![told] };
    Ok((stories, output.status.code() == Some(1)))
}

pub fn sum(stories: &[Value], field: &str) -> f64 {
    stories.iter().filter_map(|story| story.get(field)?.as_f64()).sum()
}

/// The written scenarios whose names begin so.
pub fn scenarios(prefix: &str) -> Result<Vec<String>> {
    let output = Command::new(program("bivouac")?).args(["simulate", "--list", "--json"]).output()?;
    let told: Vec<Value> = serde_json::from_slice(&output.stdout).context("it does not tell its scenarios")?;
    let names = told.iter().filter_map(|one| one.get("scenario")?.as_str());
    Ok(names.filter(|name| name.starts_with(prefix)).map(str::to_owned).collect())
}
