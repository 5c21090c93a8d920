// SPDX-License-Identifier: Apache-2.0
//! Programs of Debian, unpacked into the cache. Nothing is installed: the system stays as it is.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use bivouac_core::names;

use crate::components::cache_dir;

/// A folder with the files of these packages, as if it were the root of a system. Blocks; needs `apt-get`, and its lists
/// or the right to fetch them.
pub fn unpack(packages: &[&str]) -> Result<PathBuf> {
    let store = cache_dir()?.join("debian");
    let folder = store.join(names::hash(packages, 12));
    if folder.is_dir() {
        return Ok(folder);
    }
    fs::create_dir_all(&store)?;
    let lock = File::create(store.join("lock"))?;
    lock.lock().context("waiting for another download")?;
    if folder.is_dir() {
        return Ok(folder);
    }
    let place = tempfile::tempdir_in(&store)?;
    let download = || run(Command::new("apt-get").arg("download").args(packages).current_dir(&place));
    if download().is_err() {
        // A fresh image often has no lists.
        run(Command::new("apt-get").arg("update"))?;
        download()?;
    }
    let root = place.path().join("root");
    for entry in fs::read_dir(&place)? {
        let file = entry?.path();
        if file.extension().is_some_and(|kind| kind == "deb") {
            run(Command::new("dpkg-deb").arg("-x").arg(&file).arg(&root))?;
        }
    }
    fs::rename(root, &folder).context("moving the packages into place")?;
    Ok(folder)
}

/// The folders of its libraries, for programs that need more than the system has.
pub fn libraries(root: &Path) -> String {
    let folder = format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    root.join(folder).display().to_string()
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("starting {}", command.get_program().display()))?;
    if !output.status.success() {
        bail!("{command:?} failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(())
}
