// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask dist`: the static binary and the container image.

pub mod elf;
mod oci;

use std::env::{self, consts::ARCH};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::repo;

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub fn run() -> Result<ExitCode> {
    // A named target keeps these flags away from build scripts and macros.
    let target = format!("{ARCH}-unknown-linux-gnu");
    let mut cargo = repo::cargo();
    cargo.args(["build", "--release", "--locked", "--package", "bivouac", "--target", &target]);
    repo::succeed(cargo.env("CARGO_ENCODED_RUSTFLAGS", flags()))?;

    // target/<profile> is where we are ourselves.
    let built = repo::programs()?.with_file_name(&target).join("release/bivouac");
    let binary = fs::read(&built).with_context(|| built.display().to_string())?;
    if let Some(loader) = elf::interpreter(&binary)? {
        bail!("{} is not static: it asks for {loader}", built.display());
    }
    let dist = repo::root().join("dist");
    fs::create_dir_all(&dist)?;
    fs::copy(&built, dist.join("bivouac"))?;
    let image = oci::Image::of(&binary, VERSION, ARCH)?;
    let archive = image.archive()?;
    let name = format!("bivouac-{VERSION}.oci.tar");
    fs::write(dist.join(&name), &archive)?;

    let megabytes = |bytes: usize| format!("{:.1} MB", bytes as f64 / 1e6);
    println!("dist/bivouac  {}, static", megabytes(binary.len()));
    println!("dist/{name}  {}", megabytes(archive.len()));
    println!("image digest  {}", image.digest());
    Ok(ExitCode::SUCCESS)
}

/// Static, and without the names of this machine's folders, which panic messages would carry.
fn flags() -> OsString {
    let home = || Some(PathBuf::from(env::var_os("HOME")?).join(".cargo"));
    let cargo = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home);
    let folders = [(Some(repo::root()), "bivouac"), (cargo, "cargo")];
    let mut flags = OsString::from("-Ctarget-feature=+crt-static");
    for (folder, name) in folders {
        if let Some(folder) = folder {
            flags.push("\x1f--remap-path-prefix=");
            flags.push(folder);
            flags.push(format!("=/{name}"));
        }
    }
    flags
}
