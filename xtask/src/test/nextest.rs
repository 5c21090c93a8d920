// SPDX-License-Identifier: Apache-2.0
//! Runs tests through cargo-nextest and counts them from its JUnit report.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::tally::Tally;
use super::{speed, tools};
use crate::repo;

/// The simulation of the tests also plays controllers with known bugs.
pub const PLANTED: &str = "bivouac-sim/planted";

/// Always the same selection, so that everything is compiled once for all rings. Examples are left to clippy: no test
/// runs them, and each would link everything.
fn nextest(args: &[&str]) -> Result<Command> {
    let mut command = repo::command(tools::NEXTEST.find()?);
    command.args(["nextest", "run", "--workspace", "--tests", "--features", PLANTED, "--cargo-quiet"]).args(args);
    Ok(command)
}

/// Compiles every test and the programs that tests start.
pub fn build() -> Result<()> {
    repo::succeed(nextest(&["--no-run"])?.stderr(std::process::Stdio::inherit()))
}

/// Runs the tests that the filter selects.
pub fn run(filter: &str, env: &[(&str, &Path)]) -> Result<Tally> {
    // Where nextest puts it: in the checkout, wherever Cargo builds.
    let report = repo::root().join("target/nextest/default/junit.xml");
    let _ = fs::remove_file(&report);
    let mut command = nextest(&["--no-fail-fast", "--status-level=slow", "-E", filter])?;
    command.envs(env.iter().copied());
    let status = command.status().context("running cargo-nextest")?;
    let Ok(xml) = fs::read_to_string(&report) else {
        // Tests that nobody counted may be tests that nobody ran.
        let why = if status.success() { "nextest left no report" } else { "the tests do not build" };
        bail!("{why} ({status}, {})", report.display());
    };
    speed::note(&xml);
    let tally = count(&xml).context("reading the report of nextest")?;
    if !status.success() && tally.failed() == 0 {
        bail!("nextest failed ({status})");
    }
    Ok(tally)
}

/// One `testcase` element per test; it has a `failure` or `error` inside when it failed.
fn count(xml: &str) -> Option<Tally> {
    let (mut tally, mut cases) = (Tally::default(), xml.split("<testcase "));
    cases.next()?.contains("<testsuites").then_some(())?;
    for case in cases {
        if case.contains("<failure") || case.contains("<error") {
            let value = |name: &str| case.split_once(&format!("{name}=\""))?.1.split('"').next();
            tally.fail(&format!("{} {}", value("classname").unwrap_or("?"), value("name").unwrap_or("?")));
        } else if !case.contains("<skipped") {
            tally.pass();
        }
    }
    Some(tally)
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn a_report_is_counted() {
        let xml = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="3" failures="1" errors="0">
    <testsuite name="bivouac-core" tests="2">
        <testcase name="money::adds" classname="bivouac-core" time="0.004"></testcase>
        <testcase name="money::breaks" classname="bivouac-core" time="0.1"><failure message="x">y</failure></testcase>
    </testsuite>
    <testsuite name="xtask"><testcase name="a" classname="xtask" time="0.0"/></testsuite>
</testsuites>"#;
        let tally = count(xml).unwrap();
        assert_eq!(tally.to_string(), "2 passed, 1 failed");
        assert_eq!(tally.details().collect::<Vec<_>>(), ["FAILED bivouac-core money::breaks"]);
        assert_eq!(count("something else"), None);
    }
}
