// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask dist`: the static binary and the container image.

mod elf;
mod oci;

use std::env::consts::ARCH;
use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::repo;

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub fn run() -> Result<ExitCode> {
    // A named target keeps these flags away from build scripts and macros.
    let target = format!("{ARCH}-unknown-linux-gnu");
    let mut cargo = repo::cargo();
    cargo.args(["build", "--release", "--locked", "--package", "bivouac", "--target", &target]);
    repo::succeed(cargo.env("RUSTFLAGS", "-C target-feature=+crt-static"))?;

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
