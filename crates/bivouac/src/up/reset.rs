// SPDX-License-Identifier: Apache-2.0
//! `bivouac reset`: forgets everything, after asking.

use std::{
    io::{IsTerminal, Write},
    process::ExitCode,
};

use anyhow::{Result, bail};

use super::{data_dir::DataDir, own_command, say};
use crate::cli::ResetOptions;

pub fn run(options: &ResetOptions) -> Result<ExitCode> {
    let dir = DataDir::of(&options.place)?;
    if !dir.path().exists() {
        say(&format!("There is nothing in {}.", dir.path().display()));
        return Ok(ExitCode::SUCCESS);
    }
    // What cannot be understood may be deleted too, but nothing that is not ours.
    dir.refuse_others()?;
    let held = dir.hold()?;
    if !options.yes && !agreed(&dir)? {
        say("Nothing was deleted.");
        return Ok(ExitCode::SUCCESS);
    }
    dir.delete()?;
    drop(held);
    say(&format!("Deleted. Start afresh with: {}", own_command("up", &dir)));
    Ok(ExitCode::SUCCESS)
}

fn agreed(dir: &DataDir) -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!(
            "this deletes every object kept in {}, and nobody is there to ask.\nIf that is meant: {} --yes",
            dir.path().display(),
            own_command("reset", dir)
        );
    }
    print!("Delete every object kept in {}? [y/N] ", dir.path().display());
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
