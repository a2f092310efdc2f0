//! `evener bench`: measuring on this machine.

use clap::Subcommand;

use crate::bench_crypt::{self, Crypt};
use crate::bench_files::{self, Files};
use crate::say::Exit;

/// Measures on this machine, against what else there is.
#[derive(Subcommand)]
pub(crate) enum Bench {
    Crypt(Box<Crypt>),
    Files(Files),
}

pub(crate) fn run(bench: &Bench) -> anyhow::Result<Exit> {
    match bench {
        Bench::Crypt(arguments) => bench_crypt::run(arguments),
        Bench::Files(arguments) => bench_files::run(arguments),
    }
}
