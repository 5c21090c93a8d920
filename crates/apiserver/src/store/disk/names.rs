// SPDX-License-Identifier: Apache-2.0
//! The files of a store's directory.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// What lies in the directory. Numbers are revisions, the smallest first. Other people's files do not matter.
#[derive(Debug, Default)]
pub struct Names {
    pub snapshots: Vec<u64>,
    pub logs: Vec<u64>,
}

impl Names {
    pub fn read(dir: &Path) -> io::Result<Self> {
        let mut names = Self::default();
        for entry in fs::read_dir(dir)? {
            let name = entry?.file_name();
            let Some(name) = name.to_str() else { continue };
            names.snapshots.extend(number(name, "snapshot-"));
            names.logs.extend(number(name, "log-"));
        }
        names.snapshots.sort_unstable();
        names.logs.sort_unstable();
        Ok(names)
    }

    /// Removes what the snapshot of a revision has made superfluous.
    pub fn remove_before(dir: &Path, revision: u64) -> io::Result<()> {
        let names = Self::read(dir)?;
        for old in names.logs.into_iter().filter(|first| *first <= revision) {
            fs::remove_file(log(dir, old))?;
        }
        for old in names.snapshots.into_iter().filter(|old| *old < revision) {
            fs::remove_file(snapshot(dir, old))?;
        }
        Ok(())
    }
}

/// Only the names this store would give: a copy made by hand is not taken for a log.
fn number(name: &str, prefix: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?;
    digits.parse().ok().filter(|number: &u64| format!("{number:020}") == digits)
}

pub fn log(dir: &Path, first: u64) -> PathBuf {
    dir.join(format!("log-{first:020}"))
}

pub fn snapshot(dir: &Path, revision: u64) -> PathBuf {
    dir.join(format!("snapshot-{revision:020}"))
}

/// Makes new and renamed files of a directory survive a power cut.
pub fn sync(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
