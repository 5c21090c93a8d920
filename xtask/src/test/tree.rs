// SPDX-License-Identifier: Apache-2.0
//! Quick checks of the files themselves.

mod features;
mod links;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::tally::Tally;
use crate::repo;

const LICENCE: &str = "// SPDX-License-Identifier: Apache-2.0";
const LONGEST: usize = 800;
/// Two versions of these would be two incompatible sets of types.
const SINGLE: [&str; 3] = ["kube", "k8s-openapi", "schemars"];
/// Written by programs.
const LOCKS: [&str; 4] = ["lock", "sum", "snap", "svg"];

/// A text file of the checkout, by its path below the root.
struct Text {
    path: PathBuf,
    text: String,
}

pub fn check() -> Result<Tally> {
    let files = files().context("listing the files of the checkout")?;
    let lock = std::fs::read_to_string(repo::root().join("Cargo.lock"))?;
    let mut tally = Tally::default();
    tally.count("tree licence lines", complain(files.iter().filter_map(unlicensed)));
    tally.count("tree file sizes", complain(files.iter().filter_map(too_long)));
    tally.count("tree private names", complain(files.iter().flat_map(|file| private(file, &private_names()))));
    tally.count("tree links", complain(files.iter().flat_map(|file| links::broken(file, &repo::root()))));
    tally.count("tree one version of kube", complain(doubled(&lock).into_iter()));
    tally.count("tree one build of everything", features::differences().and_then(|found| complain(found.into_iter())));
    Ok(tally)
}

/// What git knows or would add. Links and files that are no text are left out.
fn files() -> Result<Vec<Text>> {
    let listed =
        repo::command("git").args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).output()?;
    if !listed.status.success() {
        bail!("{}", String::from_utf8_lossy(&listed.stderr).trim());
    }
    let root = repo::root();
    let names = String::from_utf8_lossy(&listed.stdout).into_owned();
    let names = names.split('\0').map(PathBuf::from).filter(|path| !root.join(path).is_symlink());
    Ok(names.filter_map(|path| Some(Text { text: std::fs::read_to_string(root.join(&path)).ok()?, path })).collect())
}

fn complain(mut found: impl Iterator<Item = String>) -> Result<()> {
    let Some(first) = found.next() else { return Ok(()) };
    bail!("{}", found.fold(first, |all, one| all + "\n  " + &one));
}

fn has_extension(path: &Path, any: &[&str]) -> bool {
    path.extension().is_some_and(|extension| any.iter().any(|one| extension == *one))
}

fn unlicensed(file: &Text) -> Option<String> {
    let wrong = has_extension(&file.path, &["rs"]) && file.text.lines().next() != Some(LICENCE);
    wrong.then(|| format!("{}: the first line must be {LICENCE:?}", file.path.display()))
}

fn too_long(file: &Text) -> Option<String> {
    let generated = has_extension(&file.path, &LOCKS)
        || file.text.lines().take(3).any(|line| line.contains("Made by `cargo xtask gen`"));
    let lines = file.text.lines().count();
    (!generated && lines > LONGEST).then(|| format!("{}: {lines} lines, at most {LONGEST}", file.path.display()))
}

/// Where this machine keeps the checkout and its user, and where packages come from: none of it is anybody's business.
fn private_names() -> Vec<String> {
    let root = repo::root();
    let shared = root.with_file_name("shared");
    let home = std::env::var("HOME").ok().filter(|home| home.len() > 1).map(|home| home + "/");
    // In two pieces, so that this file does not contain them.
    let hosts = [
        ("index.", "crates.io"),
        ("static.", "crates.io"),
        ("proxy.", "golang.org"),
        ("sum.", "golang.org"),
        ("pypi.", "org"),
        ("arti", "factory"),
    ];
    let hosts = hosts.iter().map(|(a, b)| format!("{a}{b}"));
    let paths =
        [root, shared].into_iter().map(|path| path.display().to_string()).filter(|path| path.matches('/').count() > 1);
    paths.chain(home).chain(hosts).collect()
}

fn private(file: &Text, names: &[String]) -> Vec<String> {
    let lines = file.text.lines().enumerate();
    let hits =
        lines.filter_map(|(number, line)| names.iter().find(|name| line.contains(*name)).map(|name| (number, name)));
    hits.map(|(number, name)| format!("{}:{}: names {name}", file.path.display(), number + 1)).collect()
}

fn doubled(lock: &str) -> Vec<String> {
    let mut versions = BTreeMap::<&str, Vec<&str>>::new();
    for package in lock.split("[[package]]") {
        let value = |key: &str| package.lines().find_map(|line| line.strip_prefix(key)?.trim_matches('"').into());
        if let (Some(name), Some(version)) = (value("name = "), value("version = ")) {
            versions.entry(name).or_default().push(version);
        }
    }
    let many = versions.into_iter().filter(|(name, versions)| SINGLE.contains(name) && versions.len() > 1);
    many.map(|(name, versions)| format!("{name} is there as {}", versions.join(" and "))).collect()
}

#[cfg(test)]
mod tests {
    use super::{LICENCE, Text, doubled, private, too_long, unlicensed};

    fn file(path: &str, text: &str) -> Text {
        Text { path: path.into(), text: text.into() }
    }

    #[test]
    fn the_licence_line_comes_first() {
        assert_eq!(unlicensed(&file("a.rs", &format!("{LICENCE}\nfn a() {{}}"))), None);
        assert_eq!(unlicensed(&file("a.md", "# A")), None);
        assert!(unlicensed(&file("a.rs", &format!("\n{LICENCE}"))).is_some());
    }

    #[test]
    fn long_files_are_found_unless_generated() {
        let long = "x\n".repeat(801);
        assert!(too_long(&file("a.rs", &long)).unwrap().contains("801 lines"));
        assert_eq!(too_long(&file("a.rs", &"x\n".repeat(800))), None);
        assert_eq!(too_long(&file("Cargo.lock", &long)), None);
        assert_eq!(too_long(&file("a.yaml", &format!("# Made by `cargo xtask gen`. Do not edit.\n{long}"))), None);
    }

    #[test]
    fn private_names_are_found_with_their_line() {
        let names = ["/secret/place".to_owned()];
        assert_eq!(private(&file("a.md", "fine\nsee /secret/place/b"), &names), ["a.md:2: names /secret/place"]);
        assert!(private(&file("a.md", "see /secret"), &names).is_empty());
    }

    #[test]
    fn a_second_version_is_found() {
        let lock = "[[package]]\nname = \"kube\"\nversion = \"5.0.0\"\n\n[[package]]\nname = \"syn\"\nversion = \"1\"\n\n[[package]]\nname = \"syn\"\nversion = \"2\"\n";
        assert!(doubled(lock).is_empty());
        let twice = format!("{lock}\n[[package]]\nname = \"kube\"\nversion = \"4.2.0\"\n");
        assert_eq!(doubled(&twice), ["kube is there as 5.0.0 and 4.2.0"]);
    }
}
