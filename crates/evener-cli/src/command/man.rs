//! `evener man`: the manual pages, made from the same definition as the options.

use std::path::PathBuf;

use anyhow::Context as _;

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
    /// Prints the help of all commands as one page in Markdown
    #[arg(long, conflicts_with = "directory")]
    reference: bool,
}

/// Columns of the page, whatever the terminal has.
const REFERENCE_COLUMNS: usize = 100;

const REFERENCE_HEAD: &str = "# Command line\n\n\
    What `--help` says of each command. `cargo xtask reference` makes this page from the command itself.\n";

/// `command`: the definition of all options.
pub(crate) fn run(arguments: &Man, command: clap::Command) -> anyhow::Result<Exit> {
    if arguments.reference {
        return output::answer(reference(command).as_bytes());
    }
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

/// A chapter for each command: docs/reference/command-line.md.
fn reference(command: clap::Command) -> String {
    let mut command = command.term_width(REFERENCE_COLUMNS);
    command.build();
    let mut page = REFERENCE_HEAD.to_owned();
    add_chapters(&mut command, &mut page);
    page
}

fn add_chapters(command: &mut clap::Command, page: &mut String) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
    let help = command.render_long_help().to_string();
    *page += &format!("\n## {name}\n\n```text\n{}\n```\n", help.trim_end());
    for subcommand in command.get_subcommands_mut().filter(|subcommand| subcommand.get_name() != "help") {
        add_chapters(subcommand, page);
    }
}
