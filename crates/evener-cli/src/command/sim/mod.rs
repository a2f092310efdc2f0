//! `evener sim`: policies in virtual time, on machines that need not exist; and on this one, to check the simulator.

mod live;
mod papers;
mod run;
mod scale;

use clap::Subcommand;

use crate::terminal::Exit;
use live::Live;
use papers::Papers;
use run::Run;
use scale::Grid;

/// Simulates, in virtual time and from published figures.
///
/// Nothing is encrypted or measured but for `live`.
#[derive(Subcommand)]
pub(crate) enum Sim {
    Run(Run),
    Papers(Papers),
    Scale(Grid),
    Live(Box<Live>),
}

pub(crate) fn run(sim: &Sim) -> anyhow::Result<Exit> {
    match sim {
        Sim::Run(arguments) => run::run(arguments),
        Sim::Papers(arguments) => papers::run(arguments),
        Sim::Scale(arguments) => scale::run(arguments),
        Sim::Live(arguments) => live::run(arguments),
    }
}
