// SPDX-License-Identifier: Apache-2.0
//! `bivouac down`: stops what runs on a data directory.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::{
    data_dir::{DataDir, Holder, LOG},
    own_command, say,
};
use crate::cli::PlaceOptions;

/// Longer than an orderly stop takes.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

pub fn run(place: &PlaceOptions) -> Result<ExitCode> {
    let dir = DataDir::of(place)?;
    let pid = match dir.holder() {
        Holder::Nobody => {
            say("Nothing was running.");
            return Ok(ExitCode::SUCCESS);
        }
        Holder::Unknown => bail!("it is just starting; try again in a moment"),
        // The lock is held, and only who holds it writes into it: this is the process that runs here.
        Holder::Instance(instance) => instance.pid,
    };
    let id = i32::try_from(pid).ok().and_then(Pid::from_raw).context("the lock names no process")?;
    kill_process(id, Signal::TERM).with_context(|| format!("process {pid} cannot be stopped"))?;
    let deadline = Instant::now() + PATIENCE;
    while dir.holder() != Holder::Nobody {
        if Instant::now() > deadline {
            bail!("process {pid} does not stop; its log is {}", dir.file(LOG).display());
        }
        std::thread::sleep(POLL);
    }
    say("Stopped. The state is kept.");
    say(&format!("Go on with:        {}", own_command("up", &dir)));
    say(&format!("Start afresh with: {}", own_command("reset", &dir)));
    Ok(ExitCode::SUCCESS)
}
