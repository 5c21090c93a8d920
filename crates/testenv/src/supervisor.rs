// SPDX-License-Identifier: Apache-2.0
//! The process that runs one control plane.
//!
//! It prints one JSON line when the API server is ready, then answers commands, one line each, until its standard input
//! ends: whoever started it owns its life, also when the owner is killed.

mod flags;
mod kueue;
mod plane;
pub(crate) mod server;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::shared;
use plane::Plane;

/// How often the users of a shared cluster are looked at, and how long none may be seen.
const IDLE_CHECK: Duration = Duration::from_secs(1);
const IDLE_LIMIT: Duration = Duration::from_secs(60);

/// What to run, and where.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Setup {
    /// The directory for data, certificates, kubeconfigs and logs
    #[arg(long)]
    pub dir: PathBuf,
    /// Servers to leave out: kube-controller-manager, kube-scheduler, kwok (the prefix kube- may be dropped)
    #[arg(long, value_delimiter = ',')]
    pub without: Vec<String>,
    /// Write an audit log at the level Metadata, of everybody but these servers
    #[arg(long)]
    pub audit: bool,
    /// One more flag for kube-apiserver; can be repeated
    #[arg(long = "apiserver-arg", allow_hyphen_values = true)]
    pub apiserver_args: Vec<String>,
    /// Run Kueue, too
    #[arg(long)]
    pub kueue: bool,
    /// Let all controllers of kube-controller-manager share one account that may do everything
    #[arg(long)]
    pub one_account: bool,
    /// How long KWOK runs the pods of Jobs before they succeed
    #[arg(long, default_value_t = 0)]
    pub job_pods_run_ms: u32,
    /// Ignore standard input and stop when nobody has held a lock on `users` in this directory for a minute
    #[arg(long)]
    pub shared: Option<PathBuf>,
}

/// The line that says the cluster is ready.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ready {
    pub kubeconfig: PathBuf,
    pub dir: PathBuf,
    pub server: String,
    pub audit_log: Option<PathBuf>,
    pub pids: BTreeMap<String, u32>,
}

/// The answer to one command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reply {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub pids: BTreeMap<String, u32>,
}

/// The file in a shared cluster's state directory that holds its [`Ready`] line.
pub(crate) fn ready_file(state: &Path) -> PathBuf {
    state.join("cluster.json")
}

/// Runs the control plane until its owner is gone or a signal comes.
///
/// Call it on the main thread of a single-threaded runtime: the servers are told to die with the thread that started
/// them.
pub async fn supervise(setup: Setup) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    std::fs::create_dir_all(&setup.dir).with_context(|| format!("creating {}", setup.dir.display()))?;
    let _hold = shared::hold(&setup.dir)?;
    let mut plane = Plane::prepare(&setup)?;
    let life = async {
        let ready = plane.start_all().await?;
        match &setup.shared {
            None => {
                say(&ready)?;
                answer_commands(&mut plane).await
            }
            Some(state) => wait_for_users(state, &ready).await,
        }
    };
    let outcome = tokio::select! {
        outcome = life => outcome,
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    };
    plane.stop_all().await;
    if outcome.is_ok() && setup.shared.is_some() {
        // Nobody else knows this directory. After a failure it stays, for its logs, until the next start.
        std::fs::remove_dir_all(&setup.dir)?;
    }
    outcome
}

async fn answer_commands(plane: &mut Plane) -> Result<()> {
    let mut lines = read_lines();
    while let Some(line) = lines.recv().await {
        let error = obey(plane, &line).await.err().map(|error| format!("{error:#}"));
        say(&Reply { error, pids: plane.pids() })?;
    }
    Ok(())
}

/// A thread of its own: a read that waits would keep tokio's own standard input from ever shutting down.
fn read_lines() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(8);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// An error, not a panic, when the owner no longer listens: the servers must still be stopped in order.
fn say(line: &impl Serialize) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(line)?)?;
    Ok(out.flush()?)
}

async fn obey(plane: &mut Plane, line: &str) -> Result<()> {
    match *line.split_whitespace().collect::<Vec<_>>() {
        ["status"] => Ok(()),
        ["start", name] => plane.start(name).await,
        ["stop", name] => plane.stop(name).await,
        ["restart", name] => {
            plane.stop(name).await?;
            plane.start(name).await
        }
        _ => bail!("{line:?} is no command; there are: status, start NAME, stop NAME, restart NAME"),
    }
}

/// Every user holds a shared lock on one file; when an exclusive one can be had, there is no user.
async fn wait_for_users(state: &Path, ready: &Ready) -> Result<()> {
    let users = File::create(state.join("users")).context("opening the list of users")?;
    let written = ready.dir.join("ready");
    std::fs::write(&written, serde_json::to_vec(ready)?)?;
    std::fs::rename(&written, ready_file(state))?;
    let mut last_seen = Instant::now();
    loop {
        tokio::time::sleep(IDLE_CHECK).await;
        if users.try_lock().is_err() {
            last_seen = Instant::now();
            continue;
        }
        // While we hold this lock nobody can come in; whoever comes after finds no file and starts a new cluster.
        if last_seen.elapsed() > IDLE_LIMIT {
            std::fs::remove_file(ready_file(state))?;
            return Ok(());
        }
        users.unlock()?;
    }
}
