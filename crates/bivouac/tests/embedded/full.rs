// SPDX-License-Identifier: Apache-2.0
//! A full disk, at the start and in the middle. The limit for the size of files is to the store what a full disk is: a
//! write that gets half through and then fails.

use std::fs;

use crate::user::{User, eventually};

/// The signal that comes with the limit would end the process; ignored, the write fails instead. The shell counts blocks
/// of 512 bytes.
fn limited(blocks: u32) -> String {
    format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"")
}

#[test]
fn a_disk_that_is_full_at_the_start() {
    let user = User::new();
    for blocks in [0, 100] {
        let mut up = user.up_through(&limited(blocks), &["--port", "0"]);
        assert_eq!(up.ended(), Some(1), "{}", up.output());
        up_said(&up, &["the disk is full", "Free some space"]);
    }
    // With room, the same directory is as good as new.
    let mut up = user.up(&["--port", "0"]);
    up.ready();
    assert!(user.kubectl(&["get", "workspaces"]).contains("aurora"));
    up.stop();
}

fn up_said(up: &crate::user::Up, words: &[&str]) {
    eventually("it says why", || words.iter().all(|word| up.output().contains(word)));
}

#[test]
fn a_disk_that_fills_up_while_it_runs() {
    let user = User::new();
    let mut up = user.up(&["--port", "0", "--empty"]);
    up.ready();
    up.stop();
    let used = fs::read_dir(user.data("store")).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).max();
    let blocks = u32::try_from(used.unwrap() / 512).unwrap() + 600;
    let mut up = user.up_through(&limited(blocks), &[]);
    up.ready();
    let ballast = user.home().join("ballast");
    fs::write(&ballast, "x".repeat(50_000)).unwrap();
    let create =
        |name: &str| user.try_kubectl(&["create", "configmap", name, "--from-file", ballast.to_str().unwrap()]);
    let mut kept = Vec::new();
    let refused = loop {
        let name = format!("ballast-{}", kept.len());
        let said = create(&name);
        match said.code {
            Some(0) => kept.push(name),
            _ => break said,
        }
        assert!(kept.len() < 100, "the limit never came");
    };
    assert!(refused.err.contains("read-only until it is opened again"), "{}", refused.err);
    assert!(!kept.is_empty());
    up.says("TROUBLE: The disk is full: objects can be read, but not changed.");
    assert_eq!(user.kubectl(&["get", "configmaps", "-o", "name"]).matches("ballast").count(), kept.len());
    assert_eq!(user.bivouac(&["status"]).code, Some(0), "it still runs");
    up.stop();
    // With room again it goes on, and nothing that was acknowledged is missing.
    let mut up = user.up(&[]);
    up.ready();
    for name in &kept {
        user.kubectl(&["get", "configmap", name]);
    }
    assert_eq!(create("one-more").code, Some(0));
    up.stop();
}
