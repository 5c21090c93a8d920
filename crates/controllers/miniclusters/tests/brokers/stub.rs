// SPDX-License-Identifier: Apache-2.0
//! Makes a program of the stand-in for Flux.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use bivouac_core::names;

/// The program, which needs no library: it runs in an image that has nothing else. It is made once for one source.
pub fn program() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let version = names::hash(&[include_str!("flux.rs"), include_str!("jobs.rs")], 12);
    let program = folder.join(format!("flux-{version}"));
    if !program.exists() {
        let place = tempfile::tempdir_in(folder).unwrap();
        let made = place.path().join("flux");
        let mut rustc = Command::new("rustc");
        rustc.args(["--edition", "2024", "-O", "-C", "target-feature=+crt-static", "-C", "strip=symbols", "-o"]);
        rustc.arg(&made).arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/brokers/flux.rs"));
        let output = rustc.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // Tests of other processes may do the same: whole files only.
        fs::rename(made, &program).unwrap();
    }
    program
}
