// SPDX-License-Identifier: Apache-2.0
//! A cluster that outlives the command that started it.
//!
//! Its supervisor stops when its standard input ends, so it gets one that never does: a pipe with a name, which the
//! supervisor itself holds open for writing. The supervisor's lock on its folder says whether it lives.

use std::fs::{self, File, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bivouac_core::names;
use bivouac_testenv::cache_dir;
use bivouac_testenv::supervisor::Ready;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};

use crate::repo;

const START_LIMIT: Duration = Duration::from_secs(120);
const STOP_LIMIT: Duration = Duration::from_secs(40);
const POLL: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub struct Standing {
    dir: PathBuf,
}

impl Standing {
    /// One for each checkout.
    pub fn of_this_checkout() -> Result<Self> {
        let root = repo::root().display().to_string();
        Ok(Self { dir: cache_dir()?.join("testenv").join(format!("up-{}", names::hash(&[&root], 8))) })
    }

    /// What the running supervisor said when it was ready.
    pub fn running(&self) -> Option<Ready> {
        let said = fs::read_to_string(self.dir.join("ready.json")).ok().filter(|_| self.is_held())?;
        serde_json::from_str(&said).ok()
    }

    fn is_held(&self) -> bool {
        File::open(self.dir.join("lock")).is_ok_and(|lock| lock.try_lock_shared().is_err())
    }

    pub fn start(&self, supervisor: &Path) -> Result<Ready> {
        if self.is_held() {
            bail!("a cluster is just starting or stopping; wait, or run: cargo xtask testenv down");
        }
        self.forget()?;
        fs::create_dir_all(&self.dir).with_context(|| self.dir.display().to_string())?;
        let mut child = self.spawn(supervisor)?;
        fs::write(self.dir.join("pid"), child.id().to_string())?;
        let deadline = Instant::now() + START_LIMIT;
        loop {
            if let Some(ready) = self.running() {
                return Ok(ready);
            }
            let ended = child.try_wait()?;
            if ended.is_some() || Instant::now() > deadline {
                let log = fs::read_to_string(self.log()).unwrap_or_default();
                let _ = child.kill();
                bail!("the cluster did not start:\n{}", log.trim_end());
            }
            std::thread::sleep(POLL);
        }
    }

    fn log(&self) -> PathBuf {
        self.dir.join("supervisor.log")
    }

    fn spawn(&self, supervisor: &Path) -> Result<Child> {
        let pipe = self.dir.join("commands");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).context("making a pipe")?;
        // Open for reading and writing: it never ends, and opening it does not wait.
        let input = OpenOptions::new().read(true).write(true).open(&pipe)?;
        let mut command = Command::new(supervisor);
        command.args(["supervise", "--dir"]).arg(&self.dir);
        command.stdin(input).stdout(File::create(self.dir.join("ready.json"))?).stderr(File::create(self.log())?);
        // Its own group: Ctrl-C here is not meant for it.
        command.process_group(0).spawn().context("starting the supervisor")
    }

    /// Stops the cluster and removes its data. False when there was none.
    pub fn stop(&self) -> Result<bool> {
        let held = self.is_held();
        if held {
            // The lock is held, so this is the process that holds it.
            let pid = fs::read_to_string(self.dir.join("pid")).ok().and_then(|text| Pid::from_raw(text.parse().ok()?));
            kill_process(pid.context("the cluster's process is not known")?, Signal::TERM)?;
            let deadline = Instant::now() + STOP_LIMIT;
            while self.is_held() {
                if Instant::now() > deadline {
                    bail!("the cluster does not stop; its log is {}", self.log().display());
                }
                std::thread::sleep(POLL);
            }
        }
        self.forget()?;
        Ok(held)
    }

    fn forget(&self) -> Result<()> {
        match fs::remove_dir_all(&self.dir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("removing {}", self.dir.display()))
            }
            _ => Ok(()),
        }
    }
}
