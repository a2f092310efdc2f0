//! An experiment: what is measured, and who competes.

use evener_core::{Algorithm, Direction, Nanos};

use crate::crypt::contender::Contender;
use crate::crypt::neighbours::NeighbourSpec;
use crate::crypt::workload::Layout;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// What contenders do.
    pub work: Work,
    /// How often each contender visits each cell, and for how long.
    pub visits: Visits,
    /// CPU workers; for memory of layout `cache`.
    pub workers: usize,
    /// Who competes, baselines first; only Evener's beside neighbours.
    pub contenders: Vec<Contender>,
    /// Who else wants the cores; `None`: the contenders have the machine to themselves, and rounds begin at a barrier.
    pub beside: Option<NeighbourSpec>,
}

/// Visits of each contender to each cell.
#[derive(Clone, Copy, Debug)]
pub struct Visits {
    /// How many.
    pub runs: usize,
    /// Time of all together, so that small cells are not left to chance.
    pub cell_time: Nanos,
}

impl Visits {
    /// Time of one.
    pub(crate) fn budget(self) -> Nanos {
        Nanos(self.cell_time.0 / self.runs.max(1) as u64)
    }
}

/// What contenders do in a round.
#[derive(Clone, Debug)]
pub struct Work {
    /// With which algorithm.
    pub algorithm: Algorithm,
    /// In which direction.
    pub direction: Direction,
    /// Where input and output lie.
    pub layout: Layout,
    /// What sizes, each a cell of its own.
    pub sizes: Sizes,
    /// Jobs of a round.
    pub count: usize,
}

/// Sizes of plaintexts.
#[derive(Clone, Debug)]
pub enum Sizes {
    /// Each size is a cell.
    Each(Vec<usize>),
    /// One cell with log-normal sizes.
    LogNormal,
    /// One cell with the papers' sizes, each as likely.
    Uniform,
}
