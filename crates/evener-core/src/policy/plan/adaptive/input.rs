//! What a plan is made from.

use crate::policy::objective::Objective;
use crate::units::Nanos;

/// What is known of one class on one module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CostOnModule {
    /// The module does not do it, or must not: no driver support, locked by the guard.
    #[default]
    Never,
    /// Nothing is known; so many jobs may still be sent to find out.
    Unknown {
        /// Jobs that may be sent.
        tries_left: u32,
    },
    /// What a job costs there.
    Known {
        /// `d`: core time of the module path.
        d: Nanos,
        /// `h`: time of the module.
        h: Nanos,
        /// Jobs that may be sent although it does not pay, to see whether that is still so.
        tries_left: u32,
        /// These also where they would come last of all that waits.
        is_long_untried: bool,
    },
}

/// One class of jobs as the planner sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassInput {
    /// `c` of a job in the bursts that cores run, where known.
    pub c: Option<Nanos>,
    /// Jobs that wait.
    pub waiting: u32,
    /// One for each module.
    pub on_modules: Vec<CostOnModule>,
}

/// A module as the planner sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleCapacity {
    /// Jobs that it works on at the same time.
    pub units: u32,
    /// Requests that may be outstanding. With one, the path's core time is part of each turn.
    pub depth: u32,
}

/// What a plan is made from.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanInput {
    /// What counts.
    pub objective: Objective,
    /// Threads that run jobs on cores.
    pub cpu_workers: u32,
    /// Part of a core that such a thread gets: 1 where nothing competes.
    pub share: f64,
    /// Price of a core, from 0 (there is one idle) to 1 (all that the process may use are busy).
    pub lambda: f64,
    /// Whether threads that run jobs on cores let modules' threads go first. If not, each gets its fair part of the cores.
    pub yields: bool,
    /// The modules.
    pub capacities: Vec<ModuleCapacity>,
    /// The classes.
    pub classes: Vec<ClassInput>,
}
