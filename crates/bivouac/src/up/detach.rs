// SPDX-License-Identifier: Apache-2.0
//! `bivouac up --detach`: the same, in a process of its own that outlives the terminal.

use std::{
    fs,
    os::unix::process::CommandExt,
    process::{Child, Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail};

use super::{
    commands,
    data_dir::{Camp, DataDir, Holder, Instance, LOG, OUTPUT},
    own_command, own_program, say, seconds, shell_path,
};
use crate::cli::UpOptions;

const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);

pub fn run(options: &UpOptions, began: Instant) -> Result<ExitCode> {
    let dir = DataDir::of(&options.place)?;
    dir.prepare()?;
    // Who runs here already is told now, and not from the words of a child. The child takes the lock again.
    drop(dir.hold()?);
    let mut child = spawn(options, &dir)?;
    let instance = ready(&mut child, &dir)?;
    if !options.quiet {
        let camp = dir.state()?.map(|state| state.camp).unwrap_or_default();
        tell(&dir, &instance, began.elapsed(), camp);
    }
    Ok(ExitCode::SUCCESS)
}

fn spawn(options: &UpOptions, dir: &DataDir) -> Result<Child> {
    let output = dir.create(OUTPUT)?;
    let mut command = Command::new(std::env::current_exe().context("this program's own file is not known")?);
    command.args(["up", "--quiet", "--log", &options.log_filter, "--data-dir"]).arg(dir.path());
    if let Some(port) = options.port {
        command.arg("--port").arg(port.to_string());
    }
    if options.empty {
        command.arg("--empty");
    }
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    // Its own group: Ctrl-C here is not meant for it.
    command.process_group(0).spawn().context("it could not be started")
}

fn ready(child: &mut Child, dir: &DataDir) -> Result<Instance> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Holder::Instance(instance) = dir.holder()
            && instance.ready
            && instance.pid == child.id()
        {
            return Ok(instance);
        }
        if child.try_wait()?.is_some() {
            let said = fs::read_to_string(dir.file(OUTPUT)).unwrap_or_default();
            return Err(anyhow!("{}", said.trim().trim_start_matches("bivouac: ").to_owned()));
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            bail!("it was not ready within {} s; its log is {}", PATIENCE.as_secs(), dir.file(LOG).display());
        }
        std::thread::sleep(POLL);
    }
}

fn tell(dir: &DataDir, instance: &Instance, took: Duration, camp: Camp) {
    let address = instance.address.as_deref().unwrap_or_default();
    say(&format!(
        "Bivouac runs in the background at {address} (process {}), ready in {}.",
        instance.pid,
        seconds(took)
    ));
    say("\nTry:");
    commands(dir, camp, &own_program()).iter().for_each(|command| say(&format!("  {command}")));
    if !super::kubectl_is_there() {
        say(super::view::NO_KUBECTL);
    }
    say(&format!("\nSee it:   {}", own_command("status", dir)));
    say(&format!("Its log:  {}", shell_path(&dir.file(LOG))));
    say(&format!("Stop it:  {}", own_command("down", dir)));
}
