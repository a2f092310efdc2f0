//! What the threads of a run share: the backlog, the adaptive policy, where finished jobs go, and what is reported in the end.
//!
//! [`Shared`] is made by `run.rs` and seen by all threads. `module_only.rs` has the jobs that only modules may do, `core_time.rs` the limit on core
//! time, `reports.rs` what each did, `report.rs` what comes out, `end.rs` the end of a run that is outlived by those who use it.

mod core_time;
mod end;
mod module_only;
pub(crate) mod report;
mod reports;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use evener_core::driver::Clock;
use evener_core::guard::Counters;
use evener_core::plan::adaptive::ModuleCapacity;
use evener_core::plan::{Dispatch, Plan};
use evener_core::{Budget, Class, Job};
use evener_ring::CachePadded;

pub(crate) use self::core_time::CoreTimeMeter;
use self::module_only::what_modules_do;
use self::report::ModuleReport;
use self::reports::Reports;
use crate::adaptive::{AdaptivePolicy, RunFacts};
use crate::queue::backlog::Backlog;
use crate::queue::completions::Completions;
use crate::{Cancel, CoreDrivers, Costs, ModuleSetup, Report, Setup};

/// What all threads of a run share.
pub(crate) struct Shared<'m> {
    pub(crate) plan: Plan,
    pub(crate) backlog: Backlog<'m>,
    pub(crate) completions: Vec<Completions<'m>>,
    /// [`Setup::home_jobs`].
    pub(crate) home_jobs: usize,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) cancel: Cancel,
    /// CPU worker threads.
    pub(crate) cpu_workers: usize,
    /// [`Setup::callers`], where the plan gives the CPU anything.
    pub(crate) callers_work: usize,
    /// The adaptive policy, where it is in force.
    pub(crate) adaptive: Option<AdaptivePolicy>,
    /// What is known of costs, under any policy.
    costs: Arc<Costs>,
    /// The limit on core time, where there is one.
    budget: Option<Mutex<Budget>>,
    /// Algorithms that some module does: `[algorithm][direction]`.
    module_does: Vec<[bool; 2]>,
    /// The same of each module.
    each_does: Vec<Vec<[bool; 2]>>,
    reports: Reports,
    /// Whether threads come and go, may come to a run that has ended, and reports are asked for while it goes on.
    is_resident: bool,
    /// The workers are gone: what is submitted now is given up. Written once.
    has_ended: AtomicBool,
    /// Whether some queue pair was ever cancelled, so that jobs have to be asked. Written by their owners.
    has_cancelled: AtomicBool,
    /// Jobs for modules only that failed before any worker had them. Written by submitters.
    rejected: AtomicU64,
    callers: AtomicU32,
    /// Whether the barrier was used, so that the time of the last job matters.
    pub(crate) measuring: AtomicBool,
    /// When the last job so far came back, in nanoseconds of the clock. Workers write it while they measure.
    pub(crate) last_done_ns: CachePadded<AtomicU64>,
}

impl<'m> Shared<'m> {
    pub(crate) fn new(setup: Setup<'m>, plan: Plan, cpu_workers: usize, modules: &[ModuleSetup<'_>]) -> Self {
        let costs = Arc::new(Costs::new(setup.learned));
        let adaptive = (plan.dispatch == Dispatch::ByCost).then(|| {
            let fixed = RunFacts {
                objective: setup.objective,
                cores: setup.cores,
                cpu_workers: cpu_workers + setup.callers,
                first_module_worker: cpu_workers,
                capacities: modules.iter().map(capacity).collect(),
                check_every: modules.iter().map(|module| module.check_every.max(1)).collect(),
                does: modules.iter().map(classes_done).collect(),
            };
            AdaptivePolicy::new(fixed, &costs, cpu_workers + modules.len())
        });
        let backlog = Backlog::new(&plan, setup.backlog_jobs, cpu_workers, modules.len());
        if let Some(adaptive) = &adaptive {
            adaptive.begin(backlog.class_queues());
        }
        Self {
            adaptive,
            costs,
            budget: setup.budget.map(Mutex::new),
            plan,
            backlog,
            completions: (0..setup.homes).map(|_| Completions::new()).collect(),
            home_jobs: setup.home_jobs,
            clock: setup.clock,
            cancel: setup.cancel,
            cpu_workers,
            callers_work: if plan.cpu.jobs_max == 0 { 0 } else { setup.callers },
            module_does: what_modules_do(modules),
            each_does: modules.iter().map(|module| what_modules_do(std::slice::from_ref(module))).collect(),
            reports: Reports::default(),
            is_resident: false,
            has_ended: AtomicBool::new(false),
            has_cancelled: AtomicBool::new(false),
            rejected: AtomicU64::new(0),
            callers: AtomicU32::new(0),
            measuring: AtomicBool::new(false),
            last_done_ns: CachePadded::new(AtomicU64::new(0)),
        }
    }

    /// For a run that may be outlived by those who use it, and is asked for reports while it goes on.
    pub(crate) fn resident(self) -> Self {
        Self { is_resident: true, ..self }
    }

    /// The number of a caller that comes.
    pub(crate) fn next_caller(&self) -> u32 {
        self.callers.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes a home for so many jobs, where one is free.
    pub(crate) fn acquire_home(&self, jobs: usize) -> Option<usize> {
        self.completions.iter().position(|home| home.acquire(jobs))
    }

    /// Lets a set of drivers go by the costs of this run, and keep what the adaptive policy learns from. Reports have what it does under
    /// this name.
    pub(crate) fn adopt(&self, core_drivers: &mut CoreDrivers, name: impl FnOnce() -> String) {
        if self.is_resident {
            self.reports.add(name(), core_drivers);
        }
        self.share_costs(core_drivers);
    }

    /// The same for the drivers beside a module, with space for what the module does.
    pub(crate) fn adopt_module(
        &self,
        core_drivers: &mut CoreDrivers,
        name: &str,
    ) -> Option<Arc<Mutex<ModuleReport>>> {
        self.share_costs(core_drivers);
        self.is_resident.then(|| self.reports.add_module(name.to_owned(), core_drivers))
    }

    fn share_costs(&self, core_drivers: &mut CoreDrivers) {
        core_drivers.share(&self.costs);
        if self.adaptive.is_some() {
            core_drivers.learn();
        }
    }

    /// What all did so far: those who have ended, and where a run is asked while it goes on, those who work.
    pub(crate) fn report_of_all(&self) -> Report {
        let mut workers = self.reports.all();
        workers.extend(self.report_of_rejected());
        let guarded = self.adaptive.as_ref().map_or_else(Counters::default, AdaptivePolicy::counters);
        Report { workers, learned: self.costs.learned(), guarded }
    }

    /// Puts finished jobs into the completion queues of their owners; leaves `jobs` empty.
    pub(crate) fn complete(&self, jobs: &mut Vec<Box<Job<'m>>>) {
        if self.measuring.load(Ordering::Relaxed) {
            // Relaxed: only read when everything is back, which the ring orders.
            self.last_done_ns.fetch_max(self.clock.now().0, Ordering::Relaxed);
        }
        while let Some(first) = jobs.first() {
            let owner = first.ticket.owner;
            if jobs.iter().all(|job| job.ticket.owner == owner) {
                self.completions[owner as usize].push(jobs);
            } else {
                self.completions[owner as usize].push(&mut split_off_owner(jobs, owner));
            }
        }
    }

    /// A worker ends, which had these drivers, and for a module did this.
    pub(crate) fn report(&self, name: String, core_drivers: &mut CoreDrivers, module: Option<ModuleReport>) {
        self.reports.end(name, core_drivers, module);
    }

    /// A caller ends. To a resident run any number of them may have come, so that those that went have one report.
    pub(crate) fn report_caller(&self, name: String, core_drivers: &mut CoreDrivers) {
        match self.is_resident {
            true => self.reports.end_among(CALLERS_GONE, core_drivers),
            false => self.reports.end(name, core_drivers, None),
        }
    }

    /// Passes the panic of a worker on to the thread that would wait for its jobs for ever.
    pub(crate) fn assert_whole(&self) {
        assert!(!self.backlog.is_broken(), "a worker panicked and its jobs are lost");
    }

    /// A thread of the run panicked: wakes all threads that may wait for it.
    pub(crate) fn break_down(&self) {
        self.backlog.break_down();
        self.completions.iter().for_each(Completions::wake_all);
    }
}

/// The name in reports of a resident run's callers that went.
const CALLERS_GONE: &str = "callers that went";

/// Takes the jobs of one owner out of `jobs`, in order.
fn split_off_owner<'m>(jobs: &mut Vec<Box<Job<'m>>>, owner: u32) -> Vec<Box<Job<'m>>> {
    let (same, others) = jobs.drain(..).partition(|job| job.ticket.owner == owner);
    *jobs = others;
    same
}

/// A module as the planner sees it. A driver says only how many requests it takes; that its units are as many makes
/// no difference to the turn that is measured.
fn capacity(module: &ModuleSetup<'_>) -> ModuleCapacity {
    let depth = module.driver.profile().width.max(1);
    ModuleCapacity { units: depth, depth }
}

/// By [`Class::index`]: whether the module does it.
fn classes_done(module: &ModuleSetup<'_>) -> Vec<bool> {
    let class = |index| Class::from_index(index).expect("below their number");
    let does = |class: Class| module.driver.supports(class.algorithm(), class.direction());
    (0..Class::COUNT).map(|index| does(class(index))).collect()
}
