// SPDX-License-Identifier: Apache-2.0
//! Jobs of the stand-in: each is one process, run at once where it was asked for.

use std::{
    env, fs,
    io::Write,
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{Command, ExitStatus},
};

use super::Result;

/// Where the instance keeps what became of its jobs.
pub(super) fn state() -> PathBuf {
    env::var_os("FLUX_STATE").map_or_else(env::temp_dir, PathBuf::from)
}

/// Options come first; the first other word begins the program.
pub(super) fn submit(words: &[&str]) -> Result<u8> {
    let mut rest = words.iter();
    let mut program = Vec::new();
    let (mut watch, mut output, mut error) = (false, None, None);
    while let Some(word) = rest.next() {
        match *word {
            "--watch" => watch = true,
            "-N" | "-n" | "--flags" => drop(rest.next()),
            word if word.starts_with("--output=") => output = word.strip_prefix("--output="),
            word if word.starts_with("--error=") => error = word.strip_prefix("--error="),
            word if word.starts_with('-') => {}
            word => {
                program.push(word);
                program.extend(rest.by_ref());
            }
        }
    }
    let mut command = command(&program)?;
    if let Some(file) = output {
        command.stdout(fs::File::create(file)?);
    }
    if let Some(file) = error {
        command.stderr(fs::File::create(file)?);
    }
    let code = status(&mut command)?;
    if watch { Ok(code) } else { keep(code, &program.join(" ")) }
}

/// The script runs in an instance of its own, and its jobs are none of ours.
pub(super) fn batch(words: &[&str]) -> Result<u8> {
    let script = words.last().ok_or("no script")?;
    let own = state().join("batch");
    fs::create_dir_all(&own)?;
    let code = status(Command::new("bash").arg(script).env("FLUX_STATE", own))?;
    keep(code, script)
}

fn keep(code: u8, what: &str) -> Result<u8> {
    let mut file = fs::File::options().create(true).append(true).open(state().join("jobs"))?;
    writeln!(file, "{code} {what}")?;
    Ok(0)
}

pub(super) fn wait() -> Result<u8> {
    let jobs = fs::read_to_string(state().join("jobs")).unwrap_or_default();
    let codes = jobs.lines().filter_map(|line| line.split(' ').next()?.parse().ok());
    Ok(codes.max().unwrap_or(0))
}

pub(super) fn command(words: &[&str]) -> Result<Command> {
    let (program, arguments) = words.split_first().ok_or("no program")?;
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

pub(super) fn status(command: &mut Command) -> Result<u8> {
    match command.status() {
        Ok(status) => Ok(code(status)),
        Err(error) => {
            eprintln!("flux: {}: {error}", command.get_program().display());
            Ok(127)
        }
    }
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}
