//! `evener bench`: measuring on this machine.

mod crypt;
mod files;

use clap::Subcommand;

use crate::terminal::Exit;
use crypt::Crypt;
use files::Files;

/// Measures on this machine, against what else there is.
#[derive(Subcommand)]
pub(crate) enum Bench {
    Crypt(Box<Crypt>),
    Files(Files),
}

pub(crate) fn run(bench: &Bench) -> anyhow::Result<Exit> {
    match bench {
        Bench::Crypt(arguments) => crypt::run(arguments),
        Bench::Files(arguments) => files::run(arguments),
    }
}
