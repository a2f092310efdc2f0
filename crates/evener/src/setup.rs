//! What a run is made of.

use std::sync::Arc;

use evener_core::driver::Clock;
use evener_core::driver::SILENCE_MAX;
use evener_core::plan::{Plan, Policy, Snapshot};
use evener_core::{Budget, Estimator, Nanos, Objective, QueuedDriver};

use crate::{Cancel, CoreDrivers, SystemClock, core_budget};

/// A module and what its worker needs beside it.
pub struct ModuleSetup<'m> {
    /// The module's driver.
    pub driver: Box<dyn QueuedDriver<'m> + 'm>,
    /// The CPU's way to redo what the module failed and to check samples of what it did.
    pub redo: CoreDrivers,
    /// One in so many jobs is checked against the CPU, the first few always; 1 checks all.
    pub check_every: u32,
    /// A module that holds jobs and finishes none for this long is taken for dead.
    pub timeout: Nanos,
    /// How other processes share it, where they do: the run takes its turns at it among theirs.
    pub shared: Option<evener_arbiter::Module>,
}

impl<'m> ModuleSetup<'m> {
    /// A module with the usual care: one result in 256 is checked, and after two seconds of silence it is
    /// taken for dead.
    #[must_use]
    pub fn new(driver: Box<dyn QueuedDriver<'m> + 'm>, redo: CoreDrivers) -> Self {
        Self { driver, redo, check_every: CHECK_EVERY, timeout: SILENCE_MAX, shared: None }
    }
}

/// Share of module results that are checked, one in so many, as for callers of the provider. A check costs what the core takes for the job:
/// one in 32 was half of all core time beside a module by which a job takes 24 us of the core and without it 1069 (16 KiB in the test bed),
/// and a quarter beside one of 93 us.
const CHECK_EVERY: u32 = 256;

/// What a run is made of. Everything has a default but the workers.
pub struct Setup<'m> {
    /// One per CPU worker thread. Callers bring kits of their own.
    pub workers: Vec<CoreDrivers>,
    /// The modules, one worker thread each.
    pub modules: Vec<ModuleSetup<'m>>,
    /// The policy: which worker takes which job.
    pub policy: Policy,
    /// Callers that will do the CPU's work themselves, instead of worker threads or beside them. Where jobs are
    /// dealt out, each of them counts as one more hand.
    pub callers: usize,
    /// Jobs that such a caller runs side by side at its best ([`CoreDrivers::width`]).
    pub caller_width: u32,
    /// Jobs that may wait in the backlog; rounded up to a power of two.
    pub backlog_jobs: usize,
    /// Callers and streams at the same time; one that was given up counts until its last job has come back.
    pub homes: usize,
    /// Jobs that one caller or stream may have outstanding, those included that came back early and wait for
    /// their turn; rounded up to a power of two.
    pub home_jobs: usize,
    /// The clocks.
    pub clock: Arc<dyn Clock>,
    /// The wish to stop.
    pub cancel: Cancel,
    /// What the adaptive policy is to be best at.
    pub objective: Objective,
    /// Cores that this process may use; the adaptive policy sees from it whether a module's thread finds one idle.
    pub cores: usize,
    /// Part of these cores that the run's threads may use together, where it is limited.
    pub budget: Option<Budget>,
    /// Costs that earlier runs or a [calibration](crate::calibrate) learned; modules in the order of `modules`. Without
    /// any, cores run everything plain until it was worth while to try.
    pub learned: Estimator,
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Self {
            workers: Vec::new(),
            modules: Vec::new(),
            policy: Policy::CpuOnly,
            callers: 0,
            caller_width: 1,
            backlog_jobs: 1_024,
            homes: 16,
            home_jobs: 256,
            clock: Arc::new(SystemClock),
            cancel: Cancel::default(),
            objective: Objective::Throughput,
            cores: core_budget().workers(),
            budget: None,
            learned: Estimator::default(),
        }
    }
}

impl Setup<'_> {
    /// The plan that the policy makes of what is there.
    #[must_use]
    pub fn plan(&self) -> Plan {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let cpu_workers = count(self.workers.len() + self.callers);
        let cpu_width = self.workers.iter().map(CoreDrivers::width).max().unwrap_or(0).max(self.caller_width);
        self.policy.plan(&Snapshot { cpu_workers, module_workers: count(self.modules.len()), cpu_width })
    }
}
