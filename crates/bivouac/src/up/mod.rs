// SPDX-License-Identifier: Apache-2.0
//! `bivouac up`: everything on one machine with nothing installed.
//!
//! [`data_dir`] is what is remembered, [`identity`] who may come in, [`cluster`] what runs, [`clouds`] who sells to it,
//! [`manifests`] what is put into it, [`scene`] the picture of it all, and [`view`] how a person sees that. [`detach`], [`down`], [`status`] and
//! [`reset`] look after it from another terminal.

mod clouds;
mod cluster;
mod data_dir;
mod detach;
pub mod down;
mod identity;
mod manifests;
pub mod reset;
mod scene;
pub mod status;
mod view;

use std::{
    fs,
    path::Path,
    process::ExitCode,
    sync::Mutex,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail};
use jiff::Timestamp;
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::{cli::UpOptions, operator};
pub use clouds::file as simulated_clouds;
use cluster::Cluster;
use data_dir::{Camp, DataDir, Held, Instance, KUBECONFIG, LOG, OLD_LOG, State};
use identity::Identity;
use scene::Scene;

/// Not used by anything people commonly run.
const PORT: u16 = 6551;

pub fn run(options: &UpOptions, began: Instant) -> Result<ExitCode> {
    if options.detach { detach::run(options, began) } else { stay(options, began) }
}

/// Runs here until it is told to stop.
#[tokio::main]
async fn stay(options: &UpOptions, began: Instant) -> Result<ExitCode> {
    let dir = DataDir::of(&options.place)?;
    let state = dir.prepare()?;
    let held = dir.hold()?;
    let listener = listen(options.port.or(state.port).unwrap_or(PORT)).await?;
    start_log(&dir, &options.log_filter)?;
    let stop = operator::stop_on_signals()?;
    let address = format!("https://127.0.0.1:{}", listener.local_addr()?.port());
    let (scene, seen) = watch::channel(Scene::new(Timestamp::now(), address, dir.path().to_owned()));
    let view = tokio::spawn(view::show(seen, view::Way::of(options.quiet), began, stop.clone()));
    let mut run = Run { dir: &dir, state, held, scene, stop: stop.clone(), began };
    let outcome = run.run(options, listener).await;
    // The view gives the terminal back before anything else is said.
    stop.cancel();
    let first_view = view.await.unwrap_or_default();
    outcome?;
    if !options.quiet {
        farewell(&run, first_view);
    }
    Ok(ExitCode::SUCCESS)
}

/// One run, from the lock to the end.
struct Run<'a> {
    dir: &'a DataDir,
    state: State,
    held: Held,
    scene: watch::Sender<Scene>,
    stop: CancellationToken,
    began: Instant,
}

impl Run<'_> {
    async fn run(&mut self, options: &UpOptions, listener: TcpListener) -> Result<()> {
        let port = listener.local_addr()?.port();
        let address = self.scene.borrow().address.clone();
        if self.state.port != Some(port) {
            self.state.port = Some(port);
            self.dir.remember(&self.state)?;
        }
        let identity = Identity::of(self.dir)?;
        identity.write_kubeconfig(self.dir, &address)?;
        let mut cluster = Cluster::start(self.dir, listener, &identity, &self.scene).await?;
        let _clouds = clouds::open(self.dir).await.context("the simulated clouds cannot be opened")?;
        let outcome = self.live(options, &mut cluster, address).await;
        // A full disk has many consequences; the person wants to hear the cause.
        let outcome = outcome.map_err(|error| cluster.refusal().unwrap_or(error));
        cluster.stop().await;
        outcome
    }

    /// Gets ready, and stays until somebody wants an end or the controllers come to one.
    async fn live(&mut self, options: &UpOptions, cluster: &mut Cluster, address: String) -> Result<()> {
        let stop = self.stop.clone();
        tokio::select! {
            ready = self.get_ready(options, cluster, address) => ready?,
            () = stop.cancelled() => return Ok(()),
        }
        tokio::select! {
            ended = cluster.ended() => ended,
            () = stop.cancelled() => Ok(()),
        }
    }

    async fn get_ready(&mut self, options: &UpOptions, cluster: &mut Cluster, address: String) -> Result<()> {
        let stage = |stage: &'static str| self.scene.send_modify(|scene| scene.stage = stage);
        stage("installing the kinds");
        manifests::install(&cluster.client()).await?;
        stage("starting the controllers");
        cluster.operate(&self.scene);
        cluster.controllers_ready(&self.scene).await?;
        if self.state.camp == Camp::Undecided {
            stage("pitching the first camp");
            self.decide_on_camp(options.empty, &cluster.client()).await?;
        }
        let took = self.began.elapsed();
        self.scene.send_modify(|scene| {
            scene.ready = Some(took);
            scene.commands = commands(self.dir, self.state.camp, &own_program());
        });
        tracing::info!(seconds = took.as_secs_f64(), address, "ready");
        let since = self.scene.borrow().began;
        self.held.say(&Instance { pid: std::process::id(), since, address: Some(address), ready: true })?;
        Ok(())
    }

    /// Only at the first start. A camp that cannot be pitched is no reason to stop everything else.
    async fn decide_on_camp(&mut self, leave_out: bool, client: &kube::Client) -> Result<()> {
        let camp = match leave_out {
            true => Camp::LeftOut,
            false => match manifests::pitch(client).await {
                Ok(()) => Camp::Pitched,
                Err(error) => {
                    let text = format!("The first camp is not whole: {error:#}. The next start tries again.");
                    tracing::error!("{text}");
                    self.scene.send_modify(|scene| scene.trouble = Some(text));
                    return Ok(());
                }
            },
        };
        self.state.camp = camp;
        Ok(self.dir.remember(&self.state)?)
    }
}

async fn listen(port: u16) -> Result<TcpListener> {
    match TcpListener::bind(("127.0.0.1", port)).await {
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => bail!(
            "another program listens on 127.0.0.1:{port}.\nStop that one, or choose another port: --port 0 takes any \
             that is free."
        ),
        other => other.with_context(|| format!("cannot listen on 127.0.0.1:{port}")),
    }
}

/// The terminal belongs to the view, so the log is a file. That of the last run is kept.
fn start_log(dir: &DataDir, filter: &str) -> Result<()> {
    let filter = EnvFilter::try_new(filter).with_context(|| format!("the log filter {filter:?} is not valid"))?;
    let _ = fs::rename(dir.file(LOG), dir.file(OLD_LOG));
    let file = Mutex::new(dir.create(LOG)?);
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(file);
    builder
        .with_ansi(false)
        .with_target(false)
        .try_init()
        .map_err(|error| anyhow!("the log cannot be started: {error}"))
}

/// What to try next. Each works as it stands.
fn commands(dir: &DataDir, camp: Camp, program: &str) -> Vec<String> {
    let tries = if camp == Camp::LeftOut {
        ["get namespaces", "get crds", "explain workspace.spec"]
    } else {
        ["get workspaces", "get pods -A", "get events -A"]
    };
    let kubeconfig = shell_path(&dir.file(KUBECONFIG));
    let mut all = tries.map(|what| format!("kubectl --kubeconfig {kubeconfig} {what}")).to_vec();
    let place = match DataDir::default_path() {
        Some(path) if path == dir.path() => String::new(),
        _ => format!("BIVOUAC_DATA_DIR={} ", shell_path(dir.path())),
    };
    all.push(format!("{place}{program} offers --simulated --gpu H100"));
    all
}

/// What to set KUBECONFIG to, if it ever ran in its usual place.
pub(crate) fn kubeconfig() -> Option<String> {
    let path = DataDir::default_path()?.join(KUBECONFIG);
    path.is_file().then(|| shell_path(&path))
}

fn kubectl_is_there() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join("kubectl").is_file())
}

fn farewell(run: &Run<'_>, first_view: Duration) {
    let scene = run.scene.borrow();
    let ready = scene.ready.map_or("never ready".to_owned(), |took| format!("ready after {}", seconds(took)));
    say(&format!("Stopped. First view after {}, {ready}.", seconds(first_view)));
    say(&format!("Go on with:        {}", own_command("up", run.dir)));
    say(&format!("Start afresh with: {}", own_command("reset", run.dir)));
}

fn seconds(duration: Duration) -> String {
    format!("{:.2} s", duration.as_secs_f64())
}

/// A line for a person. Nobody reading is no reason to fail.
fn say(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// How this program is called here.
fn own_program() -> String {
    shell_path(Path::new(&std::env::args_os().next().unwrap_or_else(|| "bivouac".into())))
}

/// The same, with another verb.
fn own_command(verb: &str, dir: &DataDir) -> String {
    let program = own_program();
    match DataDir::default_path() {
        Some(path) if path == dir.path() => format!("{program} {verb}"),
        _ => format!("{program} {verb} --data-dir {}", shell_path(dir.path())),
    }
}

/// A path as one word of a shell, short where it is in the user's home.
fn shell_path(path: &Path) -> String {
    let home = std::env::var_os("HOME").filter(|home| home.len() > 1);
    let below = home.and_then(|home| path.strip_prefix(home).ok());
    let (start, rest) = match below {
        Some(rest) => ("~/", rest.display().to_string()),
        None => ("", path.display().to_string()),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,=".contains(c);
    match rest.chars().all(plain) && !(start.is_empty() && rest.is_empty()) {
        true => format!("{start}{rest}"),
        // The shell sees the tilde, and nothing of the rest.
        false => format!("{start}'{}'", rest.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_one_word_of_a_shell() {
        assert_eq!(shell_path(Path::new("/srv/data-1/kubeconfig")), "/srv/data-1/kubeconfig");
        assert_eq!(shell_path(Path::new("/srv/my data/it's")), r"'/srv/my data/it'\''s'");
    }

    #[tokio::test]
    async fn a_taken_port_is_told_with_what_to_do() {
        let taken = listen(0).await.unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = listen(port).await.unwrap_err().to_string();
        assert!(error.contains(&port.to_string()) && error.contains("--port 0"), "{error}");
    }
}
