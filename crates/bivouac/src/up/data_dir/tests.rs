// SPDX-License-Identifier: Apache-2.0
use std::os::unix::fs::PermissionsExt;

use super::*;

fn fresh() -> (tempfile::TempDir, DataDir) {
    let home = tempfile::tempdir().unwrap();
    let dir = DataDir { path: home.path().join("camp") };
    (home, dir)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_new_directory_is_private_and_remembers() {
    let (_home, dir) = fresh();
    let state = dir.prepare().unwrap();
    assert_eq!((state.port, state.camp), (None, Camp::Undecided));
    dir.remember(&State { port: Some(7001), camp: Camp::Pitched, ..state }).unwrap();
    let again = dir.prepare().unwrap();
    assert_eq!((again.port, again.camp), (Some(7001), Camp::Pitched));
    assert_eq!(mode(dir.path()), 0o700);
    assert_eq!(mode(&dir.file(STATE)), 0o600);
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let (_home, dir) = fresh();
    dir.prepare().unwrap();
    fs::write(dir.file(STATE), r#"{"format": 2, "shape": "unknown"}"#).unwrap();
    let error = dir.prepare().unwrap_err();
    assert!(matches!(error, Trouble::Newer { found: 2, .. }), "{error}");
    assert!(error.to_string().contains("a newer version has written it"), "{error}");
    assert_eq!(fs::read_to_string(dir.file(STATE)).unwrap(), r#"{"format": 2, "shape": "unknown"}"#);
}

#[test]
fn damaged_state_is_told_with_its_file() {
    let (_home, dir) = fresh();
    dir.prepare().unwrap();
    fs::write(dir.file(STATE), "{").unwrap();
    let error = dir.prepare().unwrap_err().to_string();
    assert!(error.contains("state.json cannot be read"), "{error}");
}

#[test]
fn others_files_are_never_taken_over() {
    let (home, dir) = fresh();
    let file = DataDir { path: home.path().join("file") };
    fs::write(file.path(), "x").unwrap();
    assert!(matches!(file.prepare(), Err(Trouble::NotADirectory(_))));
    let below = DataDir { path: home.path().join("file/below") };
    assert!(matches!(below.prepare(), Err(Trouble::NotADirectory(_))));
    fs::create_dir(dir.path()).unwrap();
    fs::write(dir.file("thesis.tex"), "x").unwrap();
    assert!(matches!(dir.prepare(), Err(Trouble::NotOurs(_))));
}

#[test]
fn a_first_start_that_was_cut_off_is_no_obstacle() {
    let (_home, dir) = fresh();
    fs::create_dir(dir.path()).unwrap();
    fs::write(dir.file("state.json.new"), "{").unwrap();
    fs::write(dir.file(LOCK), "").unwrap();
    dir.prepare().unwrap();
}

#[test]
fn one_process_at_a_time() {
    let (_home, dir) = fresh();
    dir.prepare().unwrap();
    assert_eq!(dir.holder(), Holder::Nobody);
    let mut held = dir.hold().unwrap();
    let error = dir.hold().unwrap_err().to_string();
    assert!(error.contains(&format!("(process {})", std::process::id())), "{error}");
    let since = "2026-01-01T12:00:00Z".parse().unwrap();
    let instance = Instance { pid: 7, since, address: Some("https://127.0.0.1:1".into()), ready: true };
    held.say(&instance).unwrap();
    assert_eq!(dir.holder(), Holder::Instance(instance));
    drop(held);
    assert_eq!(dir.holder(), Holder::Nobody, "its words are still there, but nobody holds the lock");
    dir.hold().unwrap();
}

#[test]
fn deleting_leaves_what_is_not_ours() {
    let (_home, dir) = fresh();
    dir.prepare().unwrap();
    fs::create_dir(dir.file(STORE)).unwrap();
    fs::write(dir.file("store/log-1"), "x").unwrap();
    fs::write(dir.file("notes"), "mine").unwrap();
    dir.delete().unwrap();
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["notes"]);
    fs::remove_file(dir.file("notes")).unwrap();
    dir.prepare().unwrap();
    dir.delete().unwrap();
    assert!(!dir.path().exists());
}
