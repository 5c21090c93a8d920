// SPDX-License-Identifier: Apache-2.0
//! The numbers of fields in protocol buffers. OpenAPI does not tell them, so a Go program reads them from the types.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::generate::Stale;

pub const FILE: &str = "crates/apiserver/src/builtin/numbers.json";

const PROGRAM: &str = include_str!("numbers.go");
/// The pins of the real server are the pins of its types.
const MODULE: &str = "crates/testenv/components/kubernetes";

/// Says whether the file was made by another program or for other versions. It needs no Go.
pub fn stale(root: &Path) -> Result<Option<Stale>> {
    let Ok(text) = fs::read_to_string(root.join(FILE)) else { return Ok(Some(Stale::Missing(PathBuf::from(FILE)))) };
    let fresh = text.lines().nth(1) == Some(&header(root)?);
    Ok((!fresh).then(|| Stale::Different(PathBuf::from(FILE))))
}

fn header(root: &Path) -> Result<String> {
    let mut hash = Sha256::new();
    hash.update(PROGRAM);
    hash.update(fs::read_to_string(root.join(MODULE).join("go.mod")).context(MODULE)?);
    let hash: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("\"made\":{},", json!(format!("Made by `cargo xtask gen`. Do not edit. {hash}"))))
}

/// Runs the program. One line per type.
pub fn make(root: &Path) -> Result<String> {
    let folder = tempfile::tempdir()?;
    for name in ["go.mod", "go.sum"] {
        fs::copy(root.join(MODULE).join(name), folder.path().join(name)).with_context(|| name.to_owned())?;
    }
    fs::write(folder.path().join("main.go"), PROGRAM)?;
    let mut go = Command::new("go");
    go.args(["run", "."]).current_dir(folder.path()).env("GOFLAGS", "-mod=mod -buildvcs=false").env("GOWORK", "off");
    let output = go.output().context("running go")?;
    if !output.status.success() {
        bail!("the program that reads field numbers failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    let types: BTreeMap<String, BTreeMap<String, u32>> = serde_json::from_slice(&output.stdout)?;
    let lines: Result<Vec<String>, serde_json::Error> =
        types.iter().map(|(name, fields)| Ok(format!("{}:{}", json!(name), serde_json::to_string(fields)?))).collect();
    Ok(format!("{{\n{}\n\"types\":{{\n{}\n}}\n}}\n", header(root)?, lines?.join(",\n")))
}
