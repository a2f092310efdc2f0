//! Many processes at one module: papers 001 and 004 again, live.
//!
//! Path of a measurement: an [`Experiment`] (the module, the work, the permits) and [`Gates`] (the arbiter, where a mode has one) -> [`Gates::round`] forks the processes, opens the start for
//! all at once and reaps them (`round.rs`, `process.rs`) -> what they wrote on the board (`board.rs`) becomes [`Figures`] (`figures.rs`) -> beside them what the
//! simulator says of the same processes (`prediction.rs`) -> table, JSON, page and picture (`report/`).
//!
//! The emulated module is one for all processes: its units stand on the board, and a unit that works on a request of one process is busy for the others. A process uses up the core's part `d`
//! of a request by itself, in which the real result is computed, and sleeps while a unit works for `h`.

mod board;
mod child;
mod figures;
mod path;
mod prediction;
mod process;
pub mod report;
mod round;

use std::time::Duration;

use evener_core::{Algorithm, Nanos};
use evener_driver_kernel::ModuleName as KernelName;
use evener_driver_virtio::ModuleName;

pub use figures::Figures;
pub use prediction::predict;
pub use round::{Gates, Round, processes_max};

evener_core::named! {
    /// How processes share the module.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Mode {
        /// Nothing orders them: a process that finds all units busy stays runnable and looks again, as `ungated` of paper 001's model counts it. At a host or behind the kernel: these order them.
        Plain = "plain",
        /// Nothing orders them, and the module has a queue of its own, in which requests wait while their processes sleep.
        Queue = "queue",
        /// Paper 001: 64 lists by process id; the head of a list runs a session with all its requests, the others of the list sleep.
        Lists64 = "lists64",
        /// A permit of the arbiter for each request, in the order of asking.
        Fifo = "fifo",
        /// Paper 004: a flag for each permit; who is woken looks again, and may find that another was faster.
        Flags = "flags",
        /// No module: each process computes on its core.
        Cores = "cores",
    }
}

impl Mode {
    /// The mode of this name.
    ///
    /// # Errors
    ///
    /// What names there are.
    pub fn of_name(name: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::name).join(", ");
        Self::ALL.into_iter().find(|mode| mode.name() == name).ok_or_else(|| format!("there are {}", known()))
    }

    /// Whether the arbiter orders the processes.
    #[must_use]
    pub const fn has_gate(self) -> bool {
        matches!(self, Self::Lists64 | Self::Fifo | Self::Flags)
    }
}

/// Where requests go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// To the emulated units that all processes of a round have in common.
    Emulated,
    /// To a host, whose core pool works for all.
    Host(ModuleName),
    /// To a module behind the kernel, in which each process sleeps by itself.
    Kernel(KernelName),
}

/// What all processes of a measurement do.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Where.
    pub place: Place,
    /// What.
    pub algorithm: Algorithm,
    /// Bytes of a request: whole blocks.
    pub bytes: usize,
    /// Units of the emulated module. At another place: how many a module is known to have of which it is known what a request takes there, else 0.
    pub units: usize,
    /// `d`: core time that a request takes on the way to the emulated module.
    pub core: Nanos,
    /// `h`: what an emulated unit takes for a request. At a host: what a request is told to take, the time on its core.
    pub service: Nanos,
    /// Permits of the arbiter.
    pub permits: u32,
    /// Core that all processes are bound to; none: they may go to any.
    pub bound_to: Option<usize>,
    /// Of so many results of a process one is compared, and the last.
    pub compare_every: usize,
    /// How long a round may take, at most [`LIMIT_MAX`]; its processes end then.
    pub limit: Duration,
}

impl Experiment {
    /// What a request takes on the module's path.
    #[must_use]
    pub const fn request(&self) -> Nanos {
        Nanos(self.core.0 + self.service.0)
    }
}

/// Longest round: the clock of the board tells an end from a beginning for 68 s.
pub const LIMIT_MAX: Duration = Duration::from_secs(60);

/// Lists of paper 001.
pub const LISTS: usize = 64;

#[cfg(test)]
mod tests;
