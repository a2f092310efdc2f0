//! `evener provider`: how OpenSSL programs get Evener's provider.

mod config;
mod dropin;
mod install;
mod scope;
mod uninstall;

use clap::Subcommand;

use crate::terminal::Exit;
use config::Config;
use install::Install;
use uninstall::Uninstall;

/// Lets OpenSSL programs have Evener's provider, evener.so, and takes it back.
#[derive(Subcommand)]
pub(crate) enum Provider {
    Config(Config),
    Install(Install),
    Uninstall(Uninstall),
}

pub(crate) fn run(provider: &Provider) -> anyhow::Result<Exit> {
    match provider {
        Provider::Config(arguments) => config::run(arguments),
        Provider::Install(arguments) => install::run(arguments),
        Provider::Uninstall(arguments) => uninstall::run(arguments),
    }
}
