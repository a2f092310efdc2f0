//! An experiment: what is measured, and who competes.

use evener_core::{Algorithm, Direction, Nanos};

use crate::crypt::contender::Contender;
use crate::crypt::neighbours::NeighbourSpec;
use crate::crypt::workload::Layout;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Experiment {
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
    /// Visits of each contender to each cell.
    pub runs: usize,
    /// Time of all visits of a contender to a cell together, so that small cells are not left to chance.
    pub cell_time: Nanos,
    /// CPU workers; for memory of layout `cache`.
    pub workers: usize,
    /// Who competes, baselines first; only Evener's beside neighbours.
    pub contenders: Vec<Contender>,
    /// Who else wants the cores; `None`: the contenders have the machine to themselves, and rounds begin at a barrier.
    pub beside: Option<NeighbourSpec>,
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
