//! A scenario describes a machine, its costs, a workload and policies in one file, and runs them.
//!
//! Path of one scenario: text -> `file.rs` says which keys there are -> `check.rs` holds every value to its range
//! and names file, line and key where it cannot -> `build.rs` makes a [`Setup`] and a [`Workload`] of them ->
//! [`Scenario::run`].

mod build;
mod check;
mod file;

use evener_core::plan::Policy;
use evener_core::{Cost, CostTable, Objective};

pub use check::ScenarioError;

use crate::adaptive::Adaptive;
use crate::bounds;
use crate::engine::{SchedulerSpec, Stuck};
use crate::lab::{Chooser, Class, ModuleCost, Planned, Report, Setup, Workload, run};

/// A machine with its work, the policies to try on it, and how often.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its name in reports.
    pub name: String,
    /// The source of its numbers.
    pub source: String,
    /// The machine; seed and phase of the tick change from run to run.
    pub setup: Setup,
    /// Its work.
    pub workload: Workload,
    /// The policies to try.
    pub policies: Vec<Policy>,
    /// One run for each.
    pub chances: Vec<Chance>,
    ticks_per_second: u32,
    costs: CostTable,
    /// Costs of the modules that have their own.
    module_costs: Vec<Option<CostTable>>,
}

/// The random start of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chance {
    /// Seed of the jitter.
    pub seed: u64,
    /// When the first tick falls, in thousandths of a tick.
    pub tick_phase_permille: u32,
}

macro_rules! presets {
    ($($name:literal)*) => {
        /// Scenarios that come with the simulator: name and text.
        pub const PRESETS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../presets/", $name, ".toml")))),*];
    };
}

presets! {
    "am3358-aes-128" "am3358-aes-192" "am3358-aes-256" "am3358-paper-000" "am3358-stream" "cell-cbc" "cell-ecb" "t2"
}

impl Scenario {
    /// Reads a scenario; `file` is its name in errors.
    ///
    /// # Errors
    ///
    /// [`ScenarioError`] where the text is no TOML, a key is unknown or missing, or a value is out of its range.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScenarioError> {
        build::build(&check::Source { file, text })
    }

    /// A scenario that comes with the simulator; `None` where no preset has this name.
    ///
    /// # Panics
    ///
    /// Where a committed preset is malformed, which the tests exclude.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        let (_, text) = PRESETS.iter().find(|(known, _)| *known == name)?;
        Some(Self::parse(name, text).expect("the tests read every preset"))
    }

    /// Replaces its work by `workload`, whose classes are these sizes in bytes. Costs come from its table.
    pub fn set_workload(&mut self, sizes: &[u64], workload: Workload) {
        let classes = sizes.iter().map(|&bytes| Class { bytes, c: self.costs.at(bytes).c });
        self.setup.classes = classes.collect();
        for (side, own) in self.setup.modules.iter_mut().zip(&self.module_costs) {
            let table = own.as_ref().unwrap_or(&self.costs);
            let costs = sizes.iter().map(|&bytes| table.at(bytes));
            side.costs = costs.map(|cost| ModuleCost { d: cost.d, h: cost.h }).collect();
        }
        self.workload = workload;
    }

    /// Runs a policy, once for each random start. The adaptive one aims at throughput, learns the costs anew in each run and
    /// gives CPU workers the nice value that its plan has.
    ///
    /// # Errors
    ///
    /// [`Stuck`].
    pub fn run(&self, policy: Policy) -> Result<Vec<Report>, Stuck> {
        if policy == Policy::Adaptive {
            let mut arranged = self.clone();
            Adaptive::arrange(&mut arranged.setup, &self.workload);
            return arranged.run_with(|| Adaptive::new(&arranged.setup, Objective::Throughput));
        }
        let modules = u32::try_from(self.setup.modules.len()).unwrap_or(u32::MAX);
        self.run_with(|| Planned::new(policy, self.setup.cpu.workers, modules))
    }

    /// Runs a chooser, a new one for each random start.
    ///
    /// # Errors
    ///
    /// [`Stuck`].
    pub fn run_with<C: Chooser>(&self, mut chooser: impl FnMut() -> C) -> Result<Vec<Report>, Stuck> {
        let one = |chance: &Chance| {
            let scheduler = SchedulerSpec::linux(self.ticks_per_second, chance.tick_phase_permille);
            let setup = Setup { seed: chance.seed, scheduler, ..self.setup.clone() };
            run(&setup, &self.workload, &mut chooser())
        };
        self.chances.iter().map(one).collect()
    }

    /// The least time of all its jobs in nanoseconds by mean costs; `None` where [`bounds::of_run`] has none.
    #[must_use]
    pub fn lower_bound(&self) -> Option<f64> {
        bounds::of_run(&self.setup, &self.workload)
    }

    /// Whether jobs come one by one, so that the time that each of them waits says more than the end of the last.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.workload.jobs().iter().any(|job| job.at.0 > 0)
    }

    /// The cost of a job of `bytes` on the CPU path and on the first module path.
    #[must_use]
    pub fn cost(&self, bytes: u64) -> Cost {
        let own = self.module_costs.first().and_then(Option::as_ref).map(|table| table.at(bytes));
        let cost = self.costs.at(bytes);
        own.map_or(cost, |own| Cost { c: cost.c, ..own })
    }
}
