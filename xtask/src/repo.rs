// SPDX-License-Identifier: Apache-2.0
//! Where things are, and how programs are run in the checkout.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The root of the checkout. Cargo tells a running program where its package is, also when the checkout was moved.
pub fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let package = package.filter(|dir| dir.ends_with("xtask"));
    let package = package.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    package.parent().map(Path::to_path_buf).unwrap_or(package)
}

/// Names the folder with contracts, samples and recorded data.
pub const SHARED_ENV: &str = "BIVOUAC_SHARED";

/// That folder, which lives outside the checkout and may be missing.
pub fn shared() -> PathBuf {
    let named = std::env::var_os(SHARED_ENV).filter(|name| !name.is_empty()).map(PathBuf::from);
    root().join(named.unwrap_or_else(|| "../shared".into()))
}

/// The folder of the programs that Cargo built with this one.
pub fn programs() -> Result<PathBuf> {
    let exe = std::env::current_exe()?;
    let dir = exe.parent().context("the running program has no directory")?;
    // Unit tests run one level deeper.
    Ok(if dir.ends_with("deps") { dir.with_file_name("") } else { dir.to_owned() })
}

/// The Cargo that started us, in the root.
pub fn cargo() -> Command {
    let mut cargo = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // What `cargo run` sets for us must not reach other builds: build scripts that see it run again.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CARGO_PKG_") {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// A program that runs in the root.
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root()).env_remove("CARGO_MANIFEST_DIR").env_remove("CARGO_MANIFEST_PATH");
    command
}

/// Runs it with our own input and output; a failure is an error that names the program.
pub fn succeed(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("running {name}"))?;
    if !status.success() {
        let args: Vec<_> = command.get_args().take(3).map(|arg| arg.to_string_lossy()).collect();
        bail!("{} {} failed ({status})", name.rsplit('/').next().unwrap_or(&name), args.join(" "));
    }
    Ok(())
}
