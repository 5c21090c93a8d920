// SPDX-License-Identifier: Apache-2.0
//! A supervisor that belongs to one test.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;
use tempfile::TempDir;

use super::Options;
use crate::components::{Component, ensure};
use crate::shared::{check_alive, supervisor_command};
use crate::supervisor::{Ready, Reply};

/// Longer than the supervisor needs to stop everything when one server hangs.
const STOP_LIMIT: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
pub(super) struct Own(Arc<Mutex<Link>>);

#[derive(Debug)]
struct Link {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    dir: TempDir,
}

// === impl Own ===

impl Own {
    pub(super) fn start(options: &Options) -> Result<(Ready, Self)> {
        // Here, where its progress can be seen; the supervisor finds it done.
        ensure(&Component::USUAL)?;
        if options.kueue {
            ensure(&[Component::Kueue])?;
        }
        let dir = tempfile::Builder::new().prefix("testenv-").tempdir()?;
        let mut command = supervisor_command(dir.path())?;
        if !options.without.is_empty() {
            command.arg("--without").arg(options.without.join(","));
        }
        if options.audit {
            command.arg("--audit");
        }
        if options.kueue {
            command.arg("--kueue");
        }
        if options.one_account {
            command.arg("--one-account");
        }
        if !options.job_pods_run.is_zero() {
            command.arg(format!("--job-pods-run-ms={}", options.job_pods_run.as_millis()));
        }
        command.args(options.apiserver_args.iter().map(|arg| format!("--apiserver-arg={arg}")));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("starting the supervisor")?;
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().context("the supervisor has no output")?);
        let mut link = Link { child, stdin, stdout, dir };
        let ready = link.read()?;
        Ok((ready, Self(Arc::new(Mutex::new(link)))))
    }

    pub(super) fn command(&self, line: &str) -> Result<()> {
        let mut link = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let stdin = link.stdin.as_mut().context("the supervisor is stopped")?;
        writeln!(stdin, "{line}")?;
        let reply: Reply = link.read()?;
        match reply.error {
            Some(error) => bail!("{line}: {error}"),
            None => Ok(()),
        }
    }
}

// === impl Link ===

impl Link {
    fn read<T: DeserializeOwned>(&mut self) -> Result<T> {
        let mut line = String::new();
        if self.stdout.read_line(&mut line)? == 0 {
            self.child.wait()?;
            check_alive(&mut self.child, self.dir.path())?;
        }
        serde_json::from_str(&line).with_context(|| format!("the supervisor said {line:?}"))
    }
}

/// The end of its input tells the supervisor to stop everything; it takes a second or two.
impl Drop for Link {
    fn drop(&mut self) {
        self.stdin = None;
        let deadline = Instant::now() + STOP_LIMIT;
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > deadline {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
