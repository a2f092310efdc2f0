//! `evener man`: the manual pages, made from the same definition as the options.

mod page;
mod reference;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Command;

use crate::terminal::{Exit, PathDisplay, output};

/// Prints the manual page, or writes the pages of all subcommands into a directory.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  evener man | man -l -
  evener man /usr/local/share/man/man1
  evener man --reference >command-line.md")]
pub(crate) struct Man {
    /// Directory for evener.1, evener-encrypt.1 and the others; without it evener.1 is printed.
    directory: Option<PathBuf>,

    /// Prints the help of all commands as one page in Markdown.
    #[arg(long, conflicts_with = "directory")]
    reference: bool,
}

/// `command`: the definition of all options.
pub(crate) fn run(arguments: &Man, command: Command) -> anyhow::Result<Exit> {
    if arguments.reference {
        return output::answer(reference::page(command).as_bytes());
    }
    let mut command = whole(command).disable_help_subcommand(true);
    command.build();
    match &arguments.directory {
        Some(directory) => {
            let place = || format!("cannot write manual pages into {}", PathDisplay(directory));
            write_all(&command, directory).with_context(place)?;
            Ok(Exit::Done)
        }
        None => output::answer(&page::rendered(command)?),
    }
}

/// A command with what the short help leaves out: of that a page would have the names only.
fn whole(command: Command) -> Command {
    command.mut_args(|argument| argument.hide_short_help(false)).mut_subcommands(whole)
}

/// Writes the pages of a command and of those below it.
fn write_all(command: &Command, directory: &Path) -> anyhow::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_all(below, directory)?;
    }
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    fs::write(directory.join(format!("{name}.1")), page::rendered(command.clone())?)?;
    Ok(())
}
