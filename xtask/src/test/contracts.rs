// SPDX-License-Identifier: Apache-2.0
//! Our CRDs against the wire contracts of the systems we take over, which live outside the checkout.

use std::process::{Command, Stdio};

use anyhow::Result;

use super::tally::Tally;
use crate::repo;

pub fn check() -> Result<Tally> {
    let mut tally = Tally::default();
    let script = repo::shared().join("contracts/check");
    if !script.is_file() {
        tally.skip(&format!("contracts: {} is not there; name its folder in {}", script.display(), repo::SHARED_ENV));
        return Ok(tally);
    }
    if let Some(missing) = missing() {
        tally.skip(&format!("contracts: {missing} is missing on this machine"));
        return Ok(tally);
    }
    let allow = "--allow=deploy/contract-differences.txt";
    let crds = ["crds", "deploy/crds", "--older", allow];
    let samples = ["samples", "deploy/crds"];
    for (name, args) in [("contracts crds", crds.as_slice()), ("contracts samples", &samples)] {
        let output = repo::command("python3").arg(&script).args(args).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        tally.count(name, verdict(output.status.success(), &text));
    }
    Ok(tally)
}

/// Prints the count, and what differs with the kind it belongs to.
fn verdict(success: bool, text: &str) -> Result<()> {
    if !success {
        let ours =
            |line: &&str| !line.starts_with("  note") && !line.starts_with("  declared") && !line.ends_with(": same");
        text.lines().filter(ours).for_each(|line| println!("{line}"));
        anyhow::bail!("our CRDs differ from the contracts");
    }
    println!("{}", text.lines().next_back().unwrap_or_default());
    Ok(())
}

/// What the checker needs and this machine lacks.
fn missing() -> Option<&'static str> {
    let runs = |args: &[&str]| {
        let mut python = Command::new("python3");
        python.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        python.status().is_ok_and(|status| status.success())
    };
    match (runs(&["-c", ""]), runs(&["-c", "import yaml"])) {
        (false, _) => Some("python3"),
        (true, false) => Some("PyYAML (the Python package yaml)"),
        (true, true) => None,
    }
}
