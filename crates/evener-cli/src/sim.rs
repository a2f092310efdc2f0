//! `evener sim`: in virtual time, on machines that nobody needs to have.

use clap::Subcommand;

use crate::say::Exit;
use crate::sim_papers::{self, Papers};

/// Simulates, in virtual time and from published figures; nothing is encrypted or measured.
#[derive(Subcommand)]
pub(crate) enum Sim {
    Papers(Papers),
}

pub(crate) fn run(sim: &Sim) -> anyhow::Result<Exit> {
    match sim {
        Sim::Papers(arguments) => sim_papers::run(arguments),
    }
}
