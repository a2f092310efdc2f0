//! `evener man`: the manual pages, made from the same definition as the options.

use std::path::PathBuf;

use anyhow::Context as _;

use crate::terminal::{Exit, PathDisplay, output};

/// Prints the manual page, or writes the pages of all subcommands into a directory.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  evener man | man -l -
  evener man /usr/local/share/man/man1")]
pub(crate) struct Man {
    /// Directory for evener.1, evener-encrypt.1 and the others; without it evener.1 is printed.
    directory: Option<PathBuf>,
}

/// `command`: the definition of all options.
pub(crate) fn run(arguments: &Man, command: clap::Command) -> anyhow::Result<Exit> {
    match &arguments.directory {
        Some(directory) => {
            let place = || format!("cannot write manual pages into {}", PathDisplay(directory));
            clap_mangen::generate_to(command, directory).with_context(place)?;
            Ok(Exit::Done)
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            output::answer(&page)
        }
    }
}
