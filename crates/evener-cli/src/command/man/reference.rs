//! The reference: what `--help` says of each command, as one page.

use clap::Command;

/// Columns of the page, whatever the terminal has.
const REFERENCE_COLUMNS: usize = 100;

const REFERENCE_HEAD: &str = "# Command line\n\n\
    What `--help` says of each command. `cargo xtask reference` makes this page from the command itself.\n";

/// A chapter for each command: docs/reference/command-line.md.
pub(super) fn page(command: Command) -> String {
    let mut command = command.term_width(REFERENCE_COLUMNS);
    command.build();
    let mut page = REFERENCE_HEAD.to_owned();
    add_chapters(&mut command, &mut page);
    page
}

fn add_chapters(command: &mut Command, page: &mut String) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
    let help = command.render_long_help().to_string();
    *page += &format!("\n## {name}\n\n```text\n{}\n```\n", help.trim_end());
    for subcommand in command.get_subcommands_mut().filter(|subcommand| subcommand.get_name() != "help") {
        add_chapters(subcommand, page);
    }
}
