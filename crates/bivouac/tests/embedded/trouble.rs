// SPDX-License-Identifier: Apache-2.0
//! What can be wrong at the start: each with clear words, and nothing damaged.

use std::{fs, net::TcpListener};

use crate::user::{User, contents};

#[test]
fn a_taken_port_and_a_second_instance() {
    let user = User::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    user.bivouac(&["up", "--port", &port]).fails(&["another program listens on 127.0.0.1:", &port, "--port 0"]);

    let mut up = user.up(&["--port", "0", "--empty"]);
    up.ready();
    let pid = up.pid().to_string();
    user.bivouac(&["up"]).fails(&["runs already", &format!("(process {pid})"), "bivouac down", "--data-dir"]);
    user.bivouac(&["up", "--detach"]).fails(&["runs already", &pid]);
    user.bivouac(&["reset", "--yes"]).fails(&["runs already", &pid]);
    user.kubectl(&["get", "namespaces"]);
    up.stop();

    // The port is kept; taken by somebody else, that is told too.
    drop(taken);
    let kept = fs::read_to_string(user.data("state.json")).unwrap();
    let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    let kept = u16::try_from(kept["port"].as_u64().unwrap()).unwrap();
    let before = contents(&user.data(""));
    let _taken = TcpListener::bind(("127.0.0.1", kept)).unwrap();
    user.bivouac(&["up"]).fails(&[&kept.to_string(), "--port 0"]);
    assert_eq!(contents(&user.data("")), before);
}

#[test]
fn data_that_cannot_be_used_is_left_alone() {
    let user = User::new();
    let mut up = user.up(&["--port", "0", "--empty"]);
    up.ready();
    user.kubectl(&["create", "configmap", "kept", "--from-literal=a=b"]);
    up.stop();
    let state = fs::read_to_string(user.data("state.json")).unwrap();
    let untouched = |words: &[&str]| {
        let before = contents(&user.data(""));
        user.bivouac(&["up"]).fails(words);
        user.bivouac(&["up", "--detach"]).fails(words);
        assert!(contents(&user.data("")) == before, "files have changed");
    };

    fs::write(user.data("state.json"), r#"{"format": 99}"#).unwrap();
    untouched(&["state.json has format 99", "newer version", "--data-dir"]);
    fs::write(user.data("state.json"), "no JSON").unwrap();
    untouched(&["state.json cannot be read"]);
    fs::write(user.data("state.json"), state).unwrap();

    // The store's own words about its own files.
    let log = fs::read_dir(user.data("store")).unwrap().map(|entry| entry.unwrap().path());
    let log = log.into_iter().find(|path| path.to_string_lossy().contains("log-")).unwrap();
    let sound = fs::read(&log).unwrap();
    let mut broken = sound.clone();
    broken[sound.len() / 2] ^= 0x55;
    fs::write(&log, &broken).unwrap();
    untouched(&["is damaged at byte", "Nothing was changed"]);

    fs::write(&log, sound).unwrap();
    let mut up = user.up(&[]);
    up.ready();
    user.kubectl(&["get", "configmap", "kept"]);
    up.stop();
}

#[test]
fn places_that_are_no_good() {
    let user = User::new();
    let file = user.home().join("file");
    fs::write(&file, "mine").unwrap();
    let up = |place: &str| user.bivouac(&["up", "--port", "0", "--data-dir", place]);
    up(file.to_str().unwrap()).fails(&["is not a directory", "--data-dir"]);
    up(file.join("below").to_str().unwrap()).fails(&["is not a directory"]);
    up(user.home().to_str().unwrap()).fails(&["holds other files", "nothing was changed"]);
    fs::write(user.home().join("log"), "mine, too").unwrap();
    user.bivouac(&["reset", "--yes", "--data-dir", user.home().to_str().unwrap()]).fails(&["holds other files"]);
    assert_eq!(fs::read_to_string(user.home().join("log")).unwrap(), "mine, too");
    // Nobody can make a folder there, not even root.
    up("/sys/bivouac").fails(&["cannot be written", "--data-dir"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    user.bivouac(&["up", "--log", "info,=x"]).fails(&["the log filter"]);
}
