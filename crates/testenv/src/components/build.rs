// SPDX-License-Identifier: Apache-2.0
//! Building one family of programs with Go.
//!
//! Go checks every module against the committed go.sum; nothing here switches that off.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::{Family, Files, cache_dir, store_dir};

/// Part of the folder name: a change of how we build makes a new build.
pub(super) const RECIPE: &str = "CGO_ENABLED=0 -mod=readonly -trimpath -s -w";

/// What a build of everything needs at its worst.
const NEEDED_GIB: u64 = 15;
const NEEDED_GO: (u32, u32) = (1, 26);
const GO_WANTED: &str = "the real Kubernetes components are built with Go: install Go 1.26 or newer and put `go` on the \
                         PATH, or point KUBEBUILDER_ASSETS at ready-made programs";

const BUILDING: &str = ".building-";

pub(super) fn build_all(families: &[Family], missing: impl Fn(&Family) -> Result<bool>) -> Result<()> {
    let mut checked = false;
    for family in families {
        if !missing(family)? {
            continue;
        }
        if !checked {
            remove_interrupted()?;
            check_disk()?;
            checked = true;
        }
        build(family).with_context(|| format!("building {} {}", family.name, family.version))?;
    }
    Ok(())
}

/// Go's caches reach several GB and are of no use once all programs are in place.
pub(super) fn delete_go_caches() -> Result<()> {
    let caches = go_caches()?;
    if caches.exists() {
        eprintln!("testenv: removing Go's caches, everything is built");
        fs::remove_dir_all(&caches).with_context(|| format!("removing {}", caches.display()))?;
    }
    Ok(())
}

fn go_caches() -> Result<PathBuf> {
    Ok(cache_dir()?.join("go"))
}

fn check_disk() -> Result<()> {
    let store = store_dir()?;
    let stat = rustix::fs::statvfs(&store).with_context(|| format!("free space of {}", store.display()))?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize) >> 30;
    if free < NEEDED_GIB {
        bail!(
            "building the real Kubernetes components needs about {NEEDED_GIB} GiB for a while, but only {free} GiB are free \
             in {}; free some space, or set BIVOUAC_CACHE to a directory on a larger disk",
            store.display()
        );
    }
    Ok(())
}

/// What a killed build left. The lock is ours, so nobody is building there now.
fn remove_interrupted() -> Result<()> {
    for entry in fs::read_dir(store_dir()?)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(BUILDING) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Builds into a temporary folder and renames it when it is complete, so that an interrupted build leaves nothing.
fn build(family: &Family) -> Result<()> {
    let folder = tempfile::Builder::new().prefix(BUILDING).tempdir_in(store_dir()?)?;
    let source = folder.path().join("src");
    fs::create_dir_all(&source)?;
    fs::write(source.join("go.mod"), family.go_mod)?;
    fs::write(source.join("go.sum"), family.go_sum)?;
    check_go(&source)?;
    for (component, package) in family.programs {
        let started = Instant::now();
        eprintln!("testenv: building {} {} ...", component.name(), family.version);
        let output = folder.path().join("bin").join(component.name());
        let ldflags = format!("-s -w {}", family.ldflags);
        let mut go = go(&source)?;
        go.args(["build", "-ldflags", ldflags.trim_end(), "-o"]).arg(&output).arg(package);
        run(&mut go)?;
        eprintln!("testenv: built {} {} in {} s", component.name(), family.version, started.elapsed().as_secs());
    }
    if let Some(files) = &family.files {
        copy(files, &source, &folder.path().join(files.into))?;
    }
    fs::rename(folder.path(), family.folder()?).context("moving the finished build into place")?;
    Ok(())
}

fn go(source: &Path) -> Result<Command> {
    let caches = go_caches()?;
    let mut go = Command::new("go");
    go.current_dir(source)
        .env("CGO_ENABLED", "0")
        // The module cache must be writable, or it could not be deleted.
        .env("GOFLAGS", "-mod=readonly -modcacherw -buildvcs=false -trimpath")
        .env("GOWORK", "off")
        .env("GOCACHE", caches.join("build"))
        .env("GOMODCACHE", caches.join("mod"));
    Ok(go)
}

fn run(command: &mut Command) -> Result<String> {
    let output = command.output().context(GO_WANTED)?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = errors.lines().filter(|line| !line.starts_with("go: downloading")).collect();
        bail!("{command:?} failed ({}):\n{}", output.status, lines.join("\n"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn check_go(source: &Path) -> Result<()> {
    let mut version = go(source)?;
    version.args(["env", "GOVERSION"]);
    let version = run(&mut version)?;
    match parse_go_version(&version) {
        Some(found) if found >= NEEDED_GO => Ok(()),
        _ => bail!("{GO_WANTED} (found {version:?})"),
    }
}

fn parse_go_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.strip_prefix("go")?.split(['.', 'r', 'b', '-', ' ']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn copy(files: &Files, source: &Path, target: &Path) -> Result<()> {
    let mut list = go(source)?;
    list.args(["list", "-m", "-f", "{{.Dir}}", files.module]);
    let module = PathBuf::from(run(&mut list)?);
    fs::create_dir_all(target)?;
    for folder in files.folders {
        for entry in fs::read_dir(module.join(folder)).with_context(|| format!("{folder} of {}", files.module))? {
            let path = entry?.path();
            let is_yaml = path.extension().is_some_and(|ext| ext == "yaml");
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if is_yaml && !name.starts_with("kustomiz") {
                // Written anew, not copied: files of the module cache are read-only.
                fs::write(target.join(name), fs::read(&path)?)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_go_versions() {
        for (text, version) in [
            ("go1.26.8", Some((1, 26))),
            ("go1.27", Some((1, 27))),
            ("go1.27rc1", Some((1, 27))),
            ("go2.0.1-custom", Some((2, 0))),
            ("devel", None),
            ("", None),
        ] {
            assert_eq!(parse_go_version(text), version, "{text}");
        }
        assert!((1, 9) < NEEDED_GO && (1, 26) >= NEEDED_GO);
    }

    #[test]
    fn every_pin_is_in_its_module_file() {
        for family in &super::super::FAMILIES {
            let pinned = family
                .go_mod
                .lines()
                .any(|line| line.starts_with("require ") && line.ends_with(&format!(" v{}", family.version)));
            assert!(pinned, "{} {}", family.name, family.version);
            for (_, package) in family.programs {
                assert!(family.go_mod.contains(package), "{package}");
            }
        }
    }
}
