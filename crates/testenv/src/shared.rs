// SPDX-License-Identifier: Apache-2.0
//! One cluster for many test processes, started by the first and stopped when nobody uses it.
//!
//! Three file locks carry the whole protocol, so that a killed process can leave nothing wrong behind: `users` is held
//! shared by every user; `start` is held while somebody looks for or starts the cluster; `lock` in a cluster's own
//! directory is held by its supervisor while it lives.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bivouac_core::names;

use crate::components::{Component, ensure, store_dir};
use crate::supervisor::server::log_end;
use crate::supervisor::{Ready, ready_file};

const POLL: Duration = Duration::from_millis(50);
pub(crate) const SUPERVISOR_LOG: &str = "supervisor.log";

/// Attaches to the shared cluster of this checkout, or starts it. The file is the user's hold on it. Blocks.
pub(crate) fn attach() -> Result<(Ready, File)> {
    let state = store_dir()?.join(format!("shared-{}", names::hash(&[env!("CARGO_MANIFEST_DIR")], 8)));
    fs::create_dir_all(&state).with_context(|| format!("creating {}", state.display()))?;
    let user = File::create(state.join("users"))?;
    user.lock_shared()?;
    let start = File::create(state.join("start"))?;
    start.lock().context("waiting for the shared cluster to start")?;
    let ready = match running(&state) {
        Some(ready) => ready,
        None => start_anew(&state)?,
    };
    Ok((ready, user))
}

fn running(state: &Path) -> Option<Ready> {
    let ready: Ready = serde_json::from_slice(&fs::read(ready_file(state)).ok()?).ok()?;
    is_held(&ready.dir).then_some(ready)
}

/// The supervisor's hold on its directory, for as long as the process lives.
pub(crate) fn hold(dir: &Path) -> Result<File> {
    let lock = File::create(dir.join("lock"))?;
    lock.try_lock().with_context(|| format!("{} belongs to another supervisor", dir.display()))?;
    Ok(lock)
}

fn is_held(dir: &Path) -> bool {
    File::open(dir.join("lock")).is_ok_and(|lock| lock.try_lock_shared().is_err())
}

fn start_anew(state: &Path) -> Result<Ready> {
    // Here, where its progress can be seen; the supervisor finds it done.
    ensure(&Component::USUAL)?;
    remove_leftovers(state)?;
    let dir = tempfile::Builder::new().prefix("run-").tempdir_in(state)?.keep();
    let mut command = supervisor_command(&dir)?;
    // Its own group and no pipes of ours: it outlives this test, whoever ends it and however.
    command.arg("--shared").arg(state).stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
    let mut child = command.spawn().context("starting the supervisor")?;
    loop {
        if let Some(ready) = running(state) {
            return Ok(ready);
        }
        check_alive(&mut child, &dir)?;
        std::thread::sleep(POLL);
    }
}

/// What a killed supervisor could not remove itself.
fn remove_leftovers(state: &Path) -> Result<()> {
    let _ = fs::remove_file(ready_file(state));
    for entry in fs::read_dir(state)? {
        let path = entry?.path();
        if path.is_dir() && !is_held(&path) {
            fs::remove_dir_all(&path).with_context(|| format!("removing {}", path.display()))?;
        }
    }
    Ok(())
}

pub(crate) fn check_alive(child: &mut Child, dir: &Path) -> Result<()> {
    match child.try_wait()? {
        Some(status) => bail!("the supervisor ended ({status}):\n{}", log_end(&dir.join(SUPERVISOR_LOG))),
        None => Ok(()),
    }
}

/// `testenv supervise --dir DIR`, with its complaints in a file there.
pub(crate) fn supervisor_command(dir: &Path) -> Result<Command> {
    let mut command = Command::new(supervisor_program()?);
    command.args(["supervise", "--dir"]).arg(dir).stderr(File::create(dir.join(SUPERVISOR_LOG))?);
    Ok(command)
}

/// The named one, or the one beside the running test, or one that is built now.
fn supervisor_program() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("BIVOUAC_TESTENV_BIN").filter(|name| !name.is_empty()) {
        return Ok(named.into());
    }
    let exe = std::env::current_exe()?;
    // target/<profile>/deps/<test> or target/<profile>/<program>
    let profile = exe.parent().map(|dir| if dir.ends_with("deps") { dir.parent().unwrap_or(dir) } else { dir });
    let profile = profile.context("the running program has no directory")?;
    let program = profile.join("testenv");
    if !program.is_file() {
        build_supervisor(profile.ends_with("release"))?;
    }
    if !program.is_file() {
        bail!("{} is missing; build it or name one in BIVOUAC_TESTENV_BIN", program.display());
    }
    Ok(program)
}

fn build_supervisor(release: bool) -> Result<()> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(["build", "-p", "bivouac-testenv", "--bin", "testenv"]);
    if release {
        cargo.arg("--release");
    }
    let status = cargo.status().context("building the supervisor")?;
    if !status.success() {
        bail!("building the supervisor failed ({status})");
    }
    Ok(())
}
