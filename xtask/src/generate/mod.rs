// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask gen`: the files that are made from code.

mod access;
mod builtin;
mod deploy;
mod reference;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::repo;
pub use builtin::{numbers::stale as stale_numbers, stale as stale_builtins};

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Compare instead of writing, and name what is stale
    #[arg(long)]
    check: bool,
    /// Make the table of built-in kinds and the usual roles anew from a real API server, also when nothing says that it is stale
    #[arg(long)]
    builtin: bool,
}

/// Texts by their path below the root.
type Files = BTreeMap<PathBuf, String>;

/// Everything in these folders is generated, so a file there that we do not make is stale.
const FOLDERS: [&str; 3] = [deploy::CRDS, deploy::CHART, reference::FOLDER];

const REPAIR: &str = "cargo xtask gen";

/// What is wrong with one file.
#[derive(Debug, PartialEq, Eq)]
pub enum Stale {
    Missing(PathBuf),
    Different(PathBuf),
    Surplus(PathBuf),
}

pub fn run(options: &Options) -> Result<ExitCode> {
    let (mut files, root) = (all()?, repo::root());
    if options.builtin || !options.check && builtin::stale(&root)?.is_some() {
        files.insert(builtin::FILE.into(), builtin::make(&root)?);
        files.insert(access::FILE.into(), access::make()?);
    }
    if !options.check && (options.builtin || builtin::numbers::stale(&root)?.is_some()) {
        files.insert(builtin::numbers::FILE.into(), builtin::numbers::make(&root)?);
    }
    let mut stale = compare(&root, &files)?;
    if options.check && !options.builtin {
        stale.extend(builtin::stale(&root)?);
    }
    if options.check {
        stale.extend(builtin::numbers::stale(&root)?);
    }
    if options.check {
        let total = files.len();
        println!("{total} generated files, {} stale", stale.len());
        report(&stale);
        return Ok(if stale.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    write(&root, &files, &stale)?;
    println!("{} generated files, {} changed", files.len(), stale.len());
    Ok(ExitCode::SUCCESS)
}

/// Says what is stale and how to repair it.
pub fn report(stale: &[Stale]) {
    for one in stale {
        match one {
            Stale::Missing(path) => println!("stale: {} is missing", path.display()),
            Stale::Different(path) => println!("stale: {} is not what the code says", path.display()),
            Stale::Surplus(path) => println!("stale: {} should no longer exist", path.display()),
        }
    }
    if !stale.is_empty() {
        println!("repair with: {REPAIR}");
    }
}

/// Every generated file that is made from code alone.
pub fn all() -> Result<Files> {
    let mut files = deploy::files()?;
    files.extend(reference::files());
    Ok(files)
}

/// Finds what is missing, different or left over below `root`.
pub fn compare(root: &Path, files: &Files) -> Result<Vec<Stale>> {
    let mut stale = Vec::new();
    for (path, text) in files {
        match fs::read(root.join(path)) {
            Ok(found) if found == text.as_bytes() => {}
            Ok(_) => stale.push(Stale::Different(path.clone())),
            Err(_) => stale.push(Stale::Missing(path.clone())),
        }
    }
    for folder in FOLDERS {
        let Ok(entries) = fs::read_dir(root.join(folder)) else { continue };
        for entry in entries {
            let path = Path::new(folder).join(entry?.file_name());
            if !files.contains_key(&path) {
                stale.push(Stale::Surplus(path));
            }
        }
    }
    stale.sort_by(|a, b| a.path().cmp(b.path()));
    Ok(stale)
}

fn write(root: &Path, files: &Files, stale: &[Stale]) -> Result<()> {
    for one in stale {
        let path = root.join(one.path());
        let done = match (one, files.get(one.path())) {
            (Stale::Surplus(_), _) => fs::remove_file(&path),
            (_, None) => Ok(()),
            (_, Some(text)) => fs::create_dir_all(path.parent().unwrap_or(root)).and_then(|()| fs::write(&path, text)),
        };
        done.with_context(|| path.display().to_string())?;
    }
    Ok(())
}

// === impl Stale ===

impl Stale {
    pub fn path(&self) -> &Path {
        match self {
            Self::Missing(path) | Self::Different(path) | Self::Surplus(path) => path,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Stale, all, compare, deploy, write};
    use std::path::PathBuf;

    #[test]
    fn writing_repairs_whatever_is_stale() {
        let root = tempfile::tempdir().unwrap();
        let files = all().unwrap();
        assert_eq!(compare(root.path(), &files).unwrap().len(), files.len());
        write(root.path(), &files, &compare(root.path(), &files).unwrap()).unwrap();
        assert_eq!(compare(root.path(), &files).unwrap(), []);

        let some = files.keys().next().unwrap();
        let left_over = PathBuf::from(deploy::CRDS).join("zz.yaml");
        std::fs::write(root.path().join(some), "edited").unwrap();
        std::fs::write(root.path().join(&left_over), "of a kind that is gone").unwrap();
        let stale = compare(root.path(), &files).unwrap();
        assert!(stale.contains(&Stale::Different(some.clone())), "{stale:?}");
        assert!(stale.contains(&Stale::Surplus(left_over)), "{stale:?}");
        assert_eq!(stale.len(), 2);
        write(root.path(), &files, &stale).unwrap();
        assert_eq!(compare(root.path(), &files).unwrap(), []);
    }

    #[test]
    fn the_same_code_makes_the_same_files() {
        assert_eq!(all().unwrap(), all().unwrap());
    }
}
