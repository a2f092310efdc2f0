//! `evener completions`: what a shell needs to complete the command's options.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::terminal::output::{self, Exit};

/// Prints a completion script for a shell.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  evener completions bash > ~/.local/share/bash-completion/completions/evener
  evener completions zsh > \"${fpath[1]}/_evener\"
  evener completions fish > ~/.config/fish/completions/evener.fish")]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

pub(crate) fn run(arguments: &Completions) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "evener", &mut script);
    output::answer(&script)
}
