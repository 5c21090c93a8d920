// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask` and the tests must build every package with the same features, else each is compiled twice.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use crate::repo;

/// Packages that xtask builds with other features than the workspace with its tests.
pub fn differences() -> Result<Vec<String>> {
    let (ours, all) = (features(&["-p", "xtask", "-e", "normal,build"])?, features(&["--workspace"])?);
    Ok(compare(&ours, &all))
}

/// Lines like `tokio v1.0.0|net,rt`.
fn features(args: &[&str]) -> Result<String> {
    let mut tree = repo::cargo();
    tree.args(["tree", "--locked", "--prefix", "none", "--format", "{p}|{f}"]).args(args);
    let output = tree.output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn compare(ours: &str, all: &str) -> Vec<String> {
    let set = |text: &str| text.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect::<BTreeSet<_>>();
    let (ours, all) = (set(ours), set(all));
    let repair = "add what is missing to the dependencies of xtask";
    ours.difference(&all).map(|one| format!("{one} in xtask, other features elsewhere: {repair}")).collect()
}

#[cfg(test)]
mod tests {
    use super::compare;

    #[test]
    fn other_features_are_found() {
        let all = "tokio v1.0.0|net,rt\nproptest v1.0.0|std\nxtask v0.1.0|\n";
        assert!(compare("xtask v0.1.0|\ntokio v1.0.0|net,rt\ntokio v1.0.0|net,rt (*)\n", all).is_empty());
        let found = compare("xtask v0.1.0|\ntokio v1.0.0|rt\n", all);
        assert!(found.len() == 1 && found[0].starts_with("tokio v1.0.0|rt in xtask"), "{found:?}");
    }
}
