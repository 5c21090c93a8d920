// SPDX-License-Identifier: Apache-2.0
//! The simulation, as jobs start it: through the command that people use.

use std::{path::PathBuf, process::Command};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::repo;

/// Two cores play at the same time.
pub const JOBS: &str = "2";

/// The programs as the tests have them, or as fast as they can be.
#[derive(Clone, Copy, Debug)]
pub enum Build {
    Tests,
    Release,
}

impl Build {
    pub fn program(self, name: &str) -> Result<PathBuf> {
        let programs = repo::programs()?;
        let profile = match self {
            Self::Tests => programs,
            Self::Release => programs.with_file_name("release"),
        };
        Ok(profile.join(name))
    }

    /// What `bivouac simulate` says, and whether it found something.
    pub fn simulate(self, scenarios: &[&str], options: &[&str]) -> Result<(Vec<Value>, bool)> {
        let mut command = Command::new(self.program("bivouac")?);
        let output = command.arg("simulate").args(scenarios).arg("--json").args(options).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(matches!(output.status.code(), Some(0 | 1)), "it ended with {}: {said}", output.status);
        let told: Value = serde_json::from_slice(&output.stdout).context("it does not speak JSON")?;
        let stories = if let Value::Array(stories) = told { stories } else { vec![told] };
        Ok((stories, output.status.code() == Some(1)))
    }

    /// The written scenarios whose names begin so.
    pub fn scenarios(self, prefix: &str) -> Result<Vec<String>> {
        let output = Command::new(self.program("bivouac")?).args(["simulate", "--list", "--json"]).output()?;
        let told: Vec<Value> = serde_json::from_slice(&output.stdout).context("it does not tell its scenarios")?;
        let names = told.iter().filter_map(|one| one.get("scenario")?.as_str());
        Ok(names.filter(|name| name.starts_with(prefix)).map(str::to_owned).collect())
    }
}

pub fn sum(stories: &[Value], field: &str) -> f64 {
    stories.iter().filter_map(|story| story.get(field)?.as_f64()).sum()
}
