// SPDX-License-Identifier: Apache-2.0
//! Programs from the registry at pinned versions. They are built once into the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use bivouac_testenv::cache_dir;

use super::tally::Tally;
use crate::repo;

#[derive(Clone, Copy, Debug)]
pub struct Tool {
    name: &'static str,
    version: &'static str,
}

pub const NEXTEST: Tool = Tool { name: "cargo-nextest", version: "0.9.151" };
pub const DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2" };

pub fn check() -> Result<Tally> {
    let mut tally = Tally::default();
    for tool in [NEXTEST, DENY] {
        tally.count(tool.name, tool.find().map(|path| println!("{} {}: {}", tool.name, tool.version, path.display())));
    }
    Ok(tally)
}

impl Tool {
    /// The one on the PATH when its version is right, else our own, which is built when it is missing.
    pub fn find(self) -> Result<PathBuf> {
        let own = cache_dir()?.join("tools").join(format!("{}-{}", self.name, self.version));
        let program = own.join("bin").join(self.name);
        if self.is(Path::new(self.name)) {
            return Ok(self.name.into());
        }
        if !self.is(&program) {
            self.install(&own)?;
        }
        if !self.is(&program) {
            bail!("{} is not version {}; remove {}", program.display(), self.version, own.display());
        }
        Ok(program)
    }

    fn is(self, program: &Path) -> bool {
        let subcommand = self.name.trim_start_matches("cargo-");
        let output = Command::new(program).args([subcommand, "--version"]).output();
        let output = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        output.is_ok_and(|text| says(&text, self.version))
    }

    /// Without optimisation: building these tools takes longer than all their runs.
    fn install(self, own: &Path) -> Result<()> {
        println!("building {} {} into {}", self.name, self.version, own.display());
        fs::create_dir_all(own).with_context(|| own.display().to_string())?;
        let mut cargo = repo::cargo();
        cargo.args([
            "install",
            "--quiet",
            "--locked",
            "--no-default-features",
            "--profile",
            "dev",
            "--force",
            "--root",
        ]);
        cargo.arg(own).arg(format!("{}@{}", self.name, self.version)).env_remove("CARGO_TARGET_DIR");
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_PROFILE_DEV_INCREMENTAL", "false");
        repo::succeed(&mut cargo)
    }
}

/// Tools print their name, the version, and then whatever they like.
fn says(text: &str, version: &str) -> bool {
    text.lines().next().is_some_and(|line| line.split_whitespace().nth(1) == Some(version))
}

#[cfg(test)]
mod tests {
    use super::says;

    #[test]
    fn the_version_is_the_second_word() {
        assert!(says("cargo-nextest 0.9.151 (abc 2026-01-01)\nrelease: 0.9.151\n", "0.9.151"));
        assert!(!says("cargo-nextest 0.9.15\n", "0.9.151"));
        assert!(!says("", "0.9.151"));
    }
}
