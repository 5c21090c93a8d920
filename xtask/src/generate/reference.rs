// SPDX-License-Identifier: Apache-2.0
//! The reference: a page per kind, and the command line.

use std::path::Path;

use bivouac::cli::Cli;
use clap::{Command, CommandFactory};

use super::Files;

pub const FOLDER: &str = "docs/reference";

const WIDTH: usize = 100;

pub fn files() -> Files {
    let mut pages = bivouac_api::reference::markdown(&bivouac_api::crds());
    pages.push(("command-line.md".to_owned(), command_line(Cli::command())));
    pages.into_iter().map(|(name, text)| (Path::new(FOLDER).join(name), text)).collect()
}

/// The help of every command. Neither the terminal nor the environment of who runs this may show in it.
fn command_line(root: Command) -> String {
    let mut root = neutral(root.term_width(WIDTH));
    root.build();
    let mut page = "<!-- Made by `cargo xtask gen`. Do not edit. -->\n\n# Command line\n".to_owned();
    describe(&mut root, &mut page);
    page
}

fn neutral(command: Command) -> Command {
    command.mut_args(|arg| arg.hide_env_values(true)).mut_subcommands(|inner| neutral(inner.term_width(WIDTH)))
}

fn describe(command: &mut Command, page: &mut String) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
    let help = command.render_long_help().to_string();
    let help: Vec<_> = help.trim_end().lines().map(str::trim_end).collect();
    *page += &format!("\n## {name}\n\n```text\n{}\n```\n", help.join("\n"));
    for inner in command.get_subcommands_mut().filter(|inner| inner.get_name() != "help" && !inner.is_hide_set()) {
        describe(inner, page);
    }
}

#[cfg(test)]
mod tests {
    use super::command_line;
    use clap::{Arg, Command};

    #[test]
    fn every_command_has_its_help_and_no_value_of_this_environment() {
        let inner = Command::new("pitch").about("Pitch a tent").arg(Arg::new("place").long("place").env("PATH"));
        let page = command_line(Command::new("camp").about("A camp").subcommand(inner));
        assert!(page.contains("## camp\n") && page.contains("## camp pitch\n\n```text\nPitch a tent"), "{page}");
        assert!(page.contains("[env: PATH]") && !page.contains("/bin"), "{page}");
    }
}
