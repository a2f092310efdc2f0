//! `evener sim`: in virtual time, on machines that nobody needs to have; and on this one, to see whether that is right.

use clap::Subcommand;

use crate::say::Exit;
use crate::sim_live::{self, Live};
use crate::sim_papers::{self, Papers};
use crate::sim_run::{self, Run};
use crate::sim_scale::{self, Grid};

/// Simulates, in virtual time and from published figures; nothing is encrypted or measured but for `live`.
#[derive(Subcommand)]
pub(crate) enum Sim {
    Run(Run),
    Papers(Papers),
    Scale(Grid),
    Live(Box<Live>),
}

pub(crate) fn run(sim: &Sim) -> anyhow::Result<Exit> {
    match sim {
        Sim::Run(arguments) => sim_run::run(arguments),
        Sim::Papers(arguments) => sim_papers::run(arguments),
        Sim::Scale(arguments) => sim_scale::run(arguments),
        Sim::Live(arguments) => sim_live::run(arguments),
    }
}
