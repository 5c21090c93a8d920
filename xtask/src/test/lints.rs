// SPDX-License-Identifier: Apache-2.0
//! Formatting, clippy and cargo-deny.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::tally::Tally;
use super::{nextest, tools};
use crate::repo;

/// How long the advisory database may take to arrive.
const FETCH_LIMIT: Duration = Duration::from_secs(60);

pub fn fmt() -> Result<Tally> {
    repo::succeed(repo::cargo().args(["fmt", "--all", "--check"]))
        .context("some files are not formatted; repair with: cargo fmt --all")?;
    Ok(Tally::passes(1))
}

pub fn clippy() -> Result<Tally> {
    let everything = ["--workspace", "--all-targets", "--features", nextest::PLANTED];
    repo::succeed(repo::cargo().args(["clippy", "--quiet"]).args(everything).args(["--", "-D", "warnings"]))?;
    Ok(Tally::passes(1))
}

pub fn deny() -> Result<Tally> {
    let program = tools::DENY.find()?;
    let deny = |args: &[&str]| {
        let mut command = repo::command(&program);
        command.args(args);
        command
    };
    let mut tally = Tally::default();
    let check = &["--locked", "--log-level", "error", "check", "bans", "licenses", "sources"];
    tally.count("deny bans licenses sources", repo::succeed(&mut deny(check)));
    // A machine without a way to the database is no reason to fail, and none to wait.
    match bounded(&mut deny(&["fetch", "db"]), FETCH_LIMIT) {
        Ok(()) => {
            let check = &["--log-level", "error", "check", "--disable-fetch", "advisories"];
            tally.count("deny advisories", repo::succeed(&mut deny(check)));
        }
        Err(error) => tally.skip(&format!("deny advisories: their database cannot be reached ({error:#})")),
    }
    Ok(tally)
}

/// Runs it in silence, and ends it when it takes too long.
fn bounded(command: &mut Command, limit: Duration) -> Result<()> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let deadline = Instant::now() + limit;
    loop {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => bail!("{status}"),
            None if Instant::now() > deadline => {
                child.kill()?;
                child.wait()?;
                bail!("no answer in {} s", limit.as_secs());
            }
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::bounded;
    use std::process::Command;
    use std::time::{Duration, Instant};

    #[test]
    fn a_program_that_hangs_is_ended() {
        let start = Instant::now();
        let error = bounded(Command::new("sleep").arg("60"), Duration::from_millis(200)).unwrap_err();
        assert!(error.to_string().contains("no answer") && start.elapsed() < Duration::from_secs(30));
        assert!(bounded(&mut Command::new("true"), Duration::from_secs(30)).is_ok());
        assert!(bounded(&mut Command::new("false"), Duration::from_secs(30)).is_err());
    }
}
