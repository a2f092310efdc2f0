//! `evener bench`: measuring on this machine.

mod crypt;
mod files;
mod programs;
pub(super) mod provider_file;
mod tls;

use clap::Subcommand;

use crate::terminal::Exit;
use crypt::Crypt;
use files::Files;
use programs::Programs;
use tls::Tls;

/// Measures on this machine, against what else there is.
#[derive(Subcommand)]
pub(crate) enum Bench {
    Crypt(Box<Crypt>),
    Files(Files),
    Programs(Programs),
    Tls(Box<Tls>),
}

pub(crate) fn run(bench: &Bench) -> anyhow::Result<Exit> {
    match bench {
        Bench::Crypt(arguments) => crypt::run(arguments),
        Bench::Files(arguments) => files::run(arguments),
        Bench::Programs(arguments) => programs::run(arguments),
        Bench::Tls(arguments) => tls::run(arguments),
    }
}
