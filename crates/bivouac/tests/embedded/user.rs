// SPDX-License-Identifier: Apache-2.0
//! A user with a home of their own, kubectl, and patience that ends.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use bivouac_testenv::components::{self, Component};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const POLL: Duration = Duration::from_millis(20);
/// No command of these tests takes this long.
const LONGEST: &str = "60";

pub struct User {
    home: TempDir,
    kubectl: PathBuf,
}

/// What a command said and how it ended.
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// A running `bivouac up`, killed when it is dropped.
pub struct Up {
    child: Child,
    lines: Arc<Mutex<Vec<(Duration, String)>>>,
}

impl User {
    pub fn new() -> Self {
        let kubectl = components::ensure(&[Component::Kubectl]).unwrap().get(Component::Kubectl).unwrap().to_owned();
        Self { home: tempfile::tempdir().unwrap(), kubectl }
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Where Bivouac keeps its state when nobody says otherwise.
    pub fn data(&self, file: &str) -> PathBuf {
        self.home().join(".local/share/bivouac").join(file)
    }

    fn environment(&self, command: &mut Command) {
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BIVOUAC_")) {
            command.env_remove(name);
        }
        command.env("HOME", self.home()).env("TZ", "UTC").env_remove("XDG_DATA_HOME").env_remove("KUBECONFIG");
    }

    /// Runs a program to its end.
    fn run(&self, program: &Path, args: &[&str]) -> Said {
        let mut command = Command::new("timeout");
        command.arg(LONGEST).arg(program).args(args).stdin(Stdio::null());
        self.environment(&mut command);
        command.output().unwrap().into()
    }

    pub fn bivouac(&self, args: &[&str]) -> Said {
        self.run(Path::new(env!("CARGO_BIN_EXE_bivouac")), args)
    }

    pub fn try_kubectl(&self, args: &[&str]) -> Said {
        let kubeconfig = self.data("kubeconfig");
        self.run(&self.kubectl, &[&["--kubeconfig", kubeconfig.to_str().unwrap()], args].concat())
    }

    /// What kubectl prints; it must go well.
    pub fn kubectl(&self, args: &[&str]) -> String {
        let said = self.try_kubectl(args);
        assert_eq!(said.code, Some(0), "kubectl {args:?}: {}{}", said.out, said.err);
        said.out
    }

    /// A command as Bivouac printed it, in a shell.
    pub fn shell(&self, line: &str) -> Said {
        let folders = [self.kubectl.parent().unwrap(), Path::new(env!("CARGO_BIN_EXE_bivouac")).parent().unwrap()];
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = folders.into_iter().map(Path::to_owned).chain(std::env::split_paths(&path));
        let mut command = Command::new("timeout");
        command.args([LONGEST, "sh", "-c", line]).stdin(Stdio::null());
        self.environment(&mut command);
        command.env("PATH", std::env::join_paths(path).unwrap()).output().unwrap().into()
    }

    pub fn up(&self, args: &[&str]) -> Up {
        self.up_through("exec \"$@\"", args)
    }

    /// Starts it from a shell script, which sets limits for example.
    pub fn up_through(&self, script: &str, args: &[&str]) -> Up {
        // A killed test must not leave a server behind.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_bivouac"), "up"]).args(args);
        self.environment(&mut command);
        let began = Instant::now();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = Arc::new(Mutex::new(Vec::new()));
        for stream in [
            Box::new(child.stdout.take().unwrap()) as Box<dyn std::io::Read + Send>,
            Box::new(child.stderr.take().unwrap()),
        ] {
            let lines = lines.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    lines.lock().unwrap().push((began.elapsed(), line));
                }
            });
        }
        Up { child, lines }
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

impl Said {
    /// It must have failed, in the way that trouble does: with these words, and code 1.
    #[track_caller]
    pub fn fails(&self, words: &[&str]) {
        assert_eq!(self.code, Some(1), "{}{}", self.out, self.err);
        for word in words {
            assert!(self.err.contains(word), "no {word:?} in: {}", self.err);
        }
    }
}

impl Up {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn output(&self) -> String {
        self.lines.lock().unwrap().iter().map(|(_, line)| format!("{line}\n")).collect()
    }

    /// Waits for a line with these words, and says when it came.
    #[track_caller]
    pub fn says(&mut self, words: &str) -> Duration {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let found = self.lines.lock().unwrap().iter().find(|(_, line)| line.contains(words)).map(|(at, _)| *at);
            if let Some(at) = found {
                return at;
            }
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < deadline, "no {words:?} ({ended:?}) in:\n{}", self.output());
            std::thread::sleep(POLL);
        }
    }

    #[track_caller]
    pub fn ready(&mut self) -> Duration {
        self.says("ready in")
    }

    /// As Ctrl-C does. Gives everything it said.
    #[track_caller]
    pub fn stop(mut self) -> String {
        kill_process(Pid::from_raw(i32::try_from(self.pid()).unwrap()).unwrap(), Signal::INT).unwrap();
        assert_eq!(self.ended(), Some(0), "{}", self.output());
        self.says_finally();
        self.output()
    }

    #[track_caller]
    pub fn ended(&mut self) -> Option<i32> {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "it does not end:\n{}", self.output());
            std::thread::sleep(POLL);
        }
    }

    /// The threads that read may be a moment behind.
    fn says_finally(&self) {
        let deadline = Instant::now() + Duration::from_secs(5);
        while !self.output().contains("Start afresh with") && Instant::now() < deadline {
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- what it said\n{}", self.output());
        }
    }
}

/// Looks again and again until it is so.
#[track_caller]
pub fn eventually(what: &str, mut look: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !look() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Every file below a folder with its content, but for locks and logs.
pub fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        match entry.path() {
            path if path.is_dir() => all.extend(contents(&path)),
            _ if ["lock", "log", "log.old", "background.out"].contains(&name.as_str()) => {}
            path => all.push((path.clone(), fs::read(path).unwrap())),
        }
    }
    all.sort();
    all
}
