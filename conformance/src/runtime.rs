//! Ways that jobs can go through the runtime: as bursts of a caller or as a stream, policies, modules with and without faults.

use std::thread;

use evener::core::plan::Policy;
use evener::{CoreDrivers, ModuleSetup, Report, Runtime, Setup, Submitted, run};
use evener_core::{Estimator, Nanos};
use evener_driver_emulated::{Control, Emulated, Fault, Preset, When};
use evener_testing::drivers::{gated_drivers, libcrypto, module_is_best, plain_drivers};
use evener_testing::requests::{Burst, Route};

/// Where jobs go in and come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// A caller that brings a burst and waits for it.
    Caller,
    /// An ordered stream.
    Stream,
}

/// One run of the runtime per burst.
pub struct ByRuntime {
    /// Who takes what.
    pub policy: Policy,
    /// Where jobs go in.
    pub door: Door,
    /// CPU worker threads.
    pub workers: usize,
    /// The fault of the module, and which jobs meet it; no module without.
    pub module: Option<(Fault, When)>,
    /// One in so many results of the module is checked; 1 checks all.
    pub check_every: u32,
    /// What everybody did in the last run.
    pub report: Report,
}

/// Costs next to nothing, so that a test takes no longer than its threads.
const QUICK: &str = "emulated:d=0+0,h=1000+0,units=8";
/// Silence after which the module is taken for dead.
const TIMEOUT: Nanos = Nanos::from_millis(50);

impl ByRuntime {
    /// A run without module.
    #[must_use]
    pub fn new(policy: Policy, door: Door, workers: usize) -> Self {
        Self { policy, door, workers, module: None, check_every: u32::MAX, report: Report::default() }
    }

    /// With a module that meets `fault` as `when` says. Cores start once the module has taken the first job that
    /// does, so that it always gets there.
    #[must_use]
    pub fn with_module(self, fault: Fault, when: When) -> Self {
        Self { module: Some((fault, when)), ..self }
    }

    /// Every result of the module is checked.
    #[must_use]
    pub fn checked(self) -> Self {
        Self { check_every: 1, ..self }
    }

    fn setup<'m>(&self, control: Option<&Control>, modules: Vec<ModuleSetup<'m>>) -> Setup<'m> {
        let workers = (0..self.workers).map(|_| self.core_drivers(control)).collect();
        let callers = usize::from(self.door == Door::Caller && self.workers == 0);
        let learned = if modules.is_empty() { Estimator::default() } else { module_is_best() };
        Setup { policy: self.policy, workers, modules, callers, learned, ..Setup::default() }
    }

    /// libcrypto's set of drivers; with a module, one that waits until the module has met its fault.
    fn core_drivers(&self, control: Option<&Control>) -> CoreDrivers {
        let (Some(control), Some((fault, when))) = (control.cloned(), self.module) else {
            return plain_drivers();
        };
        // A module goes when it is offered the job, not when it has taken it.
        let taken_first = if fault == Fault::Gone { when.from - 1 } else { when.from.max(1) };
        gated_drivers(move || control.counters().submitted >= taken_first)
    }
}

impl Route for ByRuntime {
    fn run<'m>(&mut self, mut jobs: Burst<'m>) -> Burst<'m> {
        let module = self.module.map(|(fault, when)| {
            let preset: Preset = QUICK.parse().expect("a preset");
            let module = Emulated::new(preset, Box::new(libcrypto()));
            module.control().set_fault(fault, when);
            module
        });
        let control = module.as_ref().map(Emulated::control);
        let modules = module.into_iter().map(|module| ModuleSetup {
            check_every: self.check_every,
            timeout: TIMEOUT,
            ..ModuleSetup::new(Box::new(module), plain_drivers())
        });
        let setup = self.setup(control.as_ref(), modules.collect());
        let (jobs, report) = run(setup, |runtime| match self.door {
            Door::Caller => {
                runtime.caller(self.core_drivers(control.as_ref())).crypt(&mut jobs);
                jobs
            }
            Door::Stream => through_stream(runtime, jobs),
        });
        self.report = report;
        jobs
    }
}

fn through_stream<'m>(runtime: &Runtime<'_, 'm>, mut jobs: Burst<'m>) -> Burst<'m> {
    let (mut inlet, mut outlet) = runtime.stream();
    let came = thread::scope(|scope| {
        scope.spawn(move || {
            let submitted = inlet.submit_all(&mut jobs);
            assert_eq!(submitted, Submitted::Yes, "the outlet is there until all has come out");
        });
        let mut came = Burst::new();
        while let Some(job) = outlet.next() {
            came.push(job);
        }
        came
    });
    assert!(came.is_sorted_by_key(|job| job.mark), "a stream keeps the order");
    came
}
