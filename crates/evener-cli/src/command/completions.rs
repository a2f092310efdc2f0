//! `evener completions`: what a shell needs to complete the command's options.

use clap_complete::Shell;

use crate::terminal::{Exit, output};

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

/// `command`: the definition of all options.
pub(crate) fn run(arguments: &Completions, mut command: clap::Command) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "evener", &mut script);
    output::answer(&script)
}
