// SPDX-License-Identifier: Apache-2.0
//! The live view in a real terminal, which `script` provides.

use std::{
    fs::File,
    io::{Read, Write},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::user::{User, eventually};

fn run(user: &User, environment: &[(&str, &str)], key: &[u8]) -> String {
    let typed = user.home().join("typescript");
    let _ = std::fs::remove_file(&typed);
    let line = format!("stty rows 24 cols 80; exec {} up --port 0", env!("CARGO_BIN_EXE_bivouac"));
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "script", "--quiet", "--return", "--flush", "--command", &line]).arg(&typed);
    command.env("HOME", user.home()).env("TERM", "xterm-256color").env_remove("XDG_DATA_HOME").env_remove("NO_COLOR");
    command.envs(environment.iter().copied());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let seen = || {
        let mut bytes = Vec::new();
        File::open(&typed).and_then(|mut file| file.read_to_end(&mut bytes)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    eventually("the view is ready", || seen().contains("ready in"));
    eventually("the camp is seen", || seen().contains("Workspaces"));
    child.stdin.as_mut().unwrap().write_all(key).unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                child.kill().unwrap();
                panic!("the key did not end it: {}", seen());
            }
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    assert!(status.success(), "{status}: {}", seen());
    seen()
}

#[test]
fn q_and_control_c_end_the_live_view() {
    let user = User::new();
    let seen = run(&user, &[], b"q");
    // The other screen is entered and left, and the last words are on the user's own.
    let (_, after) = seen.split_once("\x1b[?1049l").unwrap();
    assert!(seen.contains("\x1b[?1049h") && after.contains("Stopped. First view after"), "{seen}");
    assert!(seen.contains("\x1b[38;5;2;"), "Ready is green: {seen:?}");
    let seen = run(&user, &[("NO_COLOR", "1")], b"\x03");
    assert!(seen.contains("Stopped.") && !seen.contains("\x1b[38;"), "{seen}");
}
