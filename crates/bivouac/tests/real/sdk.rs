// SPDX-License-Identifier: Apache-2.0
//! The original's Python SDK, as it is published, makes, lists, reads and deletes a MiniCluster of ours.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use bivouac_testenv::cache_dir;

use crate::operator::eventually;

/// Newer clients of Kubernetes write the SDK's fields under names that no server knows, the original's included.
const PACKAGES: [&str; 2] = ["fluxoperator==0.2.0", "kubernetes==28.1.0"];
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/real/sdk.py");

#[tokio::test]
async fn the_python_sdk_works_unchanged() {
    let python = match python() {
        Ok(python) => python,
        Err(why) => {
            println!("NOT RUN: the SDK cannot be installed: {why}");
            return;
        }
    };
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    // A killed test must not leave a server behind.
    let mut up = Command::new("setpriv");
    up.args(["--pdeathsig", "KILL", env!("CARGO_BIN_EXE_bivouac"), "up", "--quiet", "--port", "0", "--data-dir"]);
    let mut up = up.arg(&data).stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let runs = async || {
        let mut status = Command::new(env!("CARGO_BIN_EXE_bivouac"));
        let said = status.args(["status", "-o", "json", "--data-dir"]).arg(&data).output().unwrap();
        String::from_utf8_lossy(&said.stdout).contains("\"ready\": true").then_some(())
    };
    eventually("bivouac up is ready", 30, runs).await;

    let mut sdk = Command::new("timeout");
    sdk.arg("90").arg(python).arg(SCRIPT).arg(home.path().join("output"));
    let said = sdk.env("HOME", home.path()).env("KUBECONFIG", data.join("kubeconfig")).output().unwrap();
    up.kill().unwrap();
    up.wait().unwrap();
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success(), "{text}{}", String::from_utf8_lossy(&said.stderr));
    for line in [
        "made sdk 2 True",
        "listed ['sdk']",
        "pods 2 True",
        "nodes True",
        "wrote hello from the SDK",
        "All pods are terminated.",
        "left 0",
    ] {
        assert!(text.lines().any(|said| said == line), "no {line:?} in:\n{text}");
    }
}

/// A Python with the SDK, made once.
fn python() -> Result<PathBuf, String> {
    let folder = cache_dir().map_err(|error| error.to_string())?.join("tools").join(PACKAGES[0].replace("==", "-"));
    let python = folder.join("bin/python");
    let has_it = || run(Command::new(&python).args(["-c", "import fluxoperator, kubernetes"])).is_ok();
    if !has_it() {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(PACKAGES))?;
    }
    Ok(python)
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(said) }
}
