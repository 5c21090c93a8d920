// SPDX-License-Identifier: Apache-2.0
//! The live view in a real terminal, which `script` provides.

use std::{
    io::Write,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::user::{User, eventually};

const ROWS: u16 = 24;
const COLUMNS: u16 = 80;
/// Enters and leaves the other screen.
const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";

/// `bivouac up` in a terminal of its own.
struct Terminal {
    child: Child,
    typescript: std::path::PathBuf,
}

impl Terminal {
    fn start(user: &User, environment: &[(&str, &str)]) -> Self {
        let typescript = user.home().join("typescript");
        let _ = std::fs::remove_file(&typescript);
        let line = format!("stty rows {ROWS} cols {COLUMNS}; exec {} up --port 0", env!("CARGO_BIN_EXE_bivouac"));
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "script", "--quiet", "--return", "--flush", "--command", &line]);
        command.arg(&typescript).env("HOME", user.home()).env("TERM", "xterm-256color");
        command.env_remove("XDG_DATA_HOME").env_remove("NO_COLOR").envs(environment.iter().copied());
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        Self { child, typescript }
    }

    /// All that was sent to the terminal.
    fn sent(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.typescript).unwrap_or_default()).into_owned()
    }

    /// What the terminal shows now.
    fn shows(&self) -> vt100::Screen {
        let mut parser = vt100::Parser::new(ROWS.try_into().unwrap(), COLUMNS.try_into().unwrap(), 0);
        parser.process(self.sent().as_bytes());
        parser.screen().clone()
    }

    fn ends_with(mut self, key: &[u8]) -> String {
        self.child.stdin.as_mut().unwrap().write_all(key).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                assert!(status.success(), "{status}: {}", self.sent());
                return self.sent();
            }
            assert!(Instant::now() < deadline, "the key did not end it: {}", self.shows().contents());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The colour of the first letter of a word on the screen.
fn colour(screen: &vt100::Screen, word: &str) -> vt100::Color {
    let rows: Vec<String> = screen.rows(0, COLUMNS).collect();
    let found = rows.iter().enumerate().find_map(|(row, text)| Some((row, text.find(word)?)));
    let (row, column) = found.unwrap_or_else(|| panic!("no {word} in {}", screen.contents()));
    screen.cell(u16::try_from(row).unwrap(), u16::try_from(column).unwrap()).unwrap().fgcolor()
}

#[test]
fn q_and_control_c_end_the_live_view() {
    let user = User::new();
    let terminal = Terminal::start(&user, &[]);
    eventually("the view is ready", || terminal.shows().contents().contains("ready in"));
    eventually("the camp is seen", || terminal.shows().contents().contains("2  2 Ready"));
    let screen = terminal.shows();
    assert_ne!(colour(&screen, "2 Ready"), vt100::Color::Default, "Ready is green");
    assert!(screen.contents().contains("get events -A") && screen.contents().contains("q stops it"));
    let sent = terminal.ends_with(b"q");
    // The last words are on the user's own screen.
    let (_, after) = sent.split_once(LEAVE).unwrap();
    assert!(sent.contains(ENTER) && after.contains("Stopped. First view after"), "{sent}");

    let terminal = Terminal::start(&user, &[("NO_COLOR", "1")]);
    eventually("the camp is seen again", || terminal.shows().contents().contains("2  2 Ready"));
    assert_eq!(colour(&terminal.shows(), "2 Ready"), vt100::Color::Default);
    let sent = terminal.ends_with(b"\x03");
    assert!(sent.contains("Stopped. First view after"), "{sent}");
}
