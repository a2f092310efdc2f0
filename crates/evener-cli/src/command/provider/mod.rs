//! `evener provider`: how OpenSSL programs get Evener's provider.

mod config;
mod dropin;
mod install;

use clap::Subcommand;

use crate::terminal::Exit;
use config::Config;
use install::Install;

/// Configures Evener's OpenSSL provider, evener.so: prints a configuration, or writes it for a service, a user or all.
#[derive(Subcommand)]
pub(crate) enum Provider {
    Config(Config),
    Install(Install),
}

pub(crate) fn run(provider: &Provider) -> anyhow::Result<Exit> {
    match provider {
        Provider::Config(arguments) => config::run(arguments),
        Provider::Install(arguments) => install::run(arguments),
    }
}
