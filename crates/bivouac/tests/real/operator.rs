// SPDX-License-Identifier: Apache-2.0
//! The real operator as a child process, and how to wait for what it does.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use bivouac_api::tenant::Workspace;
use kube::{Api, Client};
use rustix::process::{Pid, Signal, kill_process};

const POLL: Duration = Duration::from_millis(100);

/// `bivouac operator`, killed when it is dropped.
pub struct Operator {
    child: Child,
    admin: SocketAddr,
    dir: tempfile::TempDir,
}

impl Operator {
    /// Starts it with the environment that a pod of the chart has, by default.
    pub fn start(kubeconfig: &Path, namespace: &str, pod: &str) -> Self {
        let env = [("POD_NAMESPACE", namespace), ("POD_NAME", pod)];
        Self::start_with(kubeconfig, env.map(|(name, value)| (name.to_owned(), value.to_owned())))
    }

    pub fn start_with(kubeconfig: &Path, env: impl IntoIterator<Item = (String, String)>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let admin = free_address();
        // A killed test must not leave an operator behind.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", env!("CARGO_BIN_EXE_bivouac"), "operator", "--kubeconfig"])
            .arg(kubeconfig);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BIVOUAC_")) {
            command.env_remove(name);
        }
        command.envs(env).env("BIVOUAC_ADMIN_ADDRESS", admin.to_string());
        let log = File::create(dir.path().join("log")).unwrap();
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        Self { child, admin, dir }
    }

    /// Everything it said so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap()
    }

    fn log_file(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    /// Waits until `/readyz` says so.
    pub async fn ready(&mut self) {
        self.answers("/readyz").await;
    }

    /// Waits until the admin server says yes here.
    pub async fn answers(&mut self, path: &str) {
        let mut answer = String::new();
        let deadline = Instant::now() + Duration::from_secs(60);
        while !answer.starts_with("HTTP/1.1 200") {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the operator ended ({status}):\n{}", self.log());
            }
            assert!(Instant::now() < deadline, "{path}: {answer}\n{}", self.log());
            tokio::time::sleep(POLL).await;
            answer = self.get(path).unwrap_or_else(|error| error.to_string());
        }
    }

    /// The raw answer of the admin server.
    pub fn get(&self, path: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&self.admin, Duration::from_secs(2))?;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// As Kubernetes ends a pod, at first.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// As a machine that fails.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for its end.
    pub async fn ended(&mut self, seconds: u64) -> ExitStatus {
        let deadline = Instant::now() + Duration::from_secs(seconds);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "the operator still runs after {seconds} s:\n{}", self.log());
            tokio::time::sleep(POLL).await;
        }
    }
}

/// The log of a failed test is what one wants to see.
impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- log of the operator\n{}", fs::read_to_string(self.log_file()).unwrap_or_default());
        }
    }
}

/// Free a moment ago, which is as good as it gets for another process.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Looks again and again until there is an answer.
pub async fn eventually<T>(what: &str, seconds: u64, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    loop {
        if let Some(answer) = look().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited {seconds} s in vain: {what}");
        tokio::time::sleep(POLL).await;
    }
}

/// Waits until the Workspace is Ready in its present generation.
pub async fn ready_workspace(client: &Client, name: &str) -> Workspace {
    let api = Api::<Workspace>::all(client.clone());
    let mut last = String::new();
    let deadline = Instant::now() + Duration::from_secs(60);
    while Instant::now() < deadline {
        let workspace = api.get(name).await.unwrap();
        if is_ready(&workspace) {
            return workspace;
        }
        last = format!("{:?}", workspace.status);
        tokio::time::sleep(POLL).await;
    }
    panic!("Workspace {name} is not Ready: {last}");
}

fn is_ready(workspace: &Workspace) -> bool {
    let generation = workspace.metadata.generation;
    let status = workspace.status.as_ref().filter(|status| status.observed_generation == generation);
    let ready = status.and_then(|status| status.conditions.iter().find(|condition| condition.type_ == "Ready"));
    ready.is_some_and(|ready| ready.status == "True" && ready.observed_generation == generation)
}
