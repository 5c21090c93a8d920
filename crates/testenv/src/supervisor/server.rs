// SPDX-License-Identifier: Apache-2.0
//! One server process: started with a log file, stopped politely.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::components::Component;

/// After this long a server that was asked to stop is killed.
const STOP_LIMIT: Duration = Duration::from_secs(15);
const LOG_LINES: usize = 20;

#[derive(Debug)]
pub(super) struct Server {
    pub(super) component: Component,
    program: PathBuf,
    args: Vec<String>,
    log: PathBuf,
    child: Option<Child>,
}

// === impl Server ===

impl Server {
    pub(super) fn new(component: Component, program: &Path, dir: &Path, args: Vec<String>) -> Self {
        let log = dir.join(format!("{}.log", component.name()));
        Self { component, program: program.to_owned(), args, log, child: None }
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.child.as_ref().and_then(Child::id)
    }

    pub(super) fn spawn(&mut self) -> Result<()> {
        if self.is_running()? {
            return Ok(());
        }
        let log = File::options().create(true).append(true).open(&self.log)?;
        let mut command = self.command();
        command.args(&self.args).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().with_context(|| format!("starting {}", self.program.display()))?;
        self.child = Some(child);
        Ok(())
    }

    /// `setpriv` (part of util-linux) makes a server die with us even when we are killed. Elsewhere it would live on.
    fn command(&self) -> Command {
        if !Path::new("/usr/bin/setpriv").is_file() {
            return Command::new(&self.program);
        }
        let mut command = Command::new("/usr/bin/setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(&self.program);
        command
    }

    /// An error with the end of its log if it has ended by itself.
    pub(super) fn check(&mut self) -> Result<()> {
        let Some(child) = &mut self.child else { bail!("{} is not running", self.component.name()) };
        let Some(status) = child.try_wait()? else { return Ok(()) };
        self.child = None;
        bail!(
            "{} ended by itself ({status}); the end of {}:\n{}",
            self.component.name(),
            self.log.display(),
            log_end(&self.log)
        )
    }

    fn is_running(&mut self) -> Result<bool> {
        match &mut self.child {
            Some(child) => Ok(child.try_wait()?.is_none()),
            None => Ok(false),
        }
    }

    pub(super) async fn stop(&mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            kill_process(pid, Signal::TERM).with_context(|| format!("stopping {}", self.component.name()))?;
        }
        if tokio::time::timeout(STOP_LIMIT, child.wait()).await.is_err() {
            eprintln!("testenv: {} did not stop within {} s, killing it", self.component.name(), STOP_LIMIT.as_secs());
            child.kill().await?;
        }
        Ok(())
    }
}

pub(crate) fn log_end(log: &Path) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines.iter().skip(lines.len().saturating_sub(LOG_LINES)).copied().collect::<Vec<_>>().join("\n")
}
