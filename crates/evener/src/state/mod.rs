//! One run from start to end: threads are started, the body submits jobs, the backlog is closed, every job
//! that was submitted is finished, threads are joined, and what they did is returned.
//!
//! [`run`] -> [`Shared`], what all threads see -> `as_core.rs`, what a worker or a caller does as a core (`module.rs` beside this room
//! has what a module's worker does). `bound.rs` has the jobs that only modules may do, `budget.rs` the limit on core time.

mod core_time;
mod module_only;
pub(crate) mod report;

use std::mem::take;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Scope};

use evener_core::driver::Clock;
use evener_core::guard::Counters;
use evener_core::plan::adaptive::Station;
use evener_core::plan::{Dispatch, Plan};
use evener_core::{Budget, Class, Job, Nanos, SessionId};
use evener_ring::CachePadded;

pub(crate) use self::core_time::Meter;
use self::module_only::what_modules_do;
use self::report::WorkerReport;
use crate::adaptive::{Circumstances, Weigher};
use crate::queue::backlog::Backlog;
use crate::queue::completions::Home;
use crate::submit::stream::{self, Inlet, Outlet};
use crate::worker::module_worker::ModuleWorker;
use crate::worker::monitor;
use crate::{Caller, Cancel, Costs, CpuKit, ModuleSetup, Report, Setup};

/// What all threads of a run share.
pub(crate) struct Shared<'m> {
    pub(crate) plan: Plan,
    pub(crate) backlog: Backlog<'m>,
    pub(crate) homes: Vec<Home<'m>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) cancel: Cancel,
    /// CPU worker threads.
    pub(crate) cpu_workers: usize,
    /// [`Setup::callers`], where the plan gives the CPU anything.
    pub(crate) callers_work: usize,
    /// The adaptive policy, where it is in force.
    pub(crate) weigher: Option<Weigher>,
    /// What is known of costs, under any policy.
    costs: Arc<Costs>,
    /// The limit on core time, where there is one.
    budget: Option<Mutex<Budget>>,
    /// Algorithms that some module does: `[algorithm][direction]`.
    module_does: Vec<[bool; 2]>,
    /// The same of each module.
    each_does: Vec<Vec<[bool; 2]>>,
    reports: Mutex<Vec<WorkerReport>>,
    /// Jobs for modules only that failed before any worker had them. Written by those who submit.
    turned_away: AtomicU64,
    callers: AtomicU32,
    /// Whether somebody used the barrier, so that the time of the last job matters.
    measuring: AtomicBool,
    /// When the last job so far came home, in nanoseconds of the clock. Workers write it while they measure.
    last_done_ns: CachePadded<AtomicU64>,
}

/// The handle to a run. Lives as long as the body of [`run`].
pub struct Runtime<'r, 'm> {
    shared: &'r Shared<'m>,
    workers: usize,
}

/// Runs `body` with worker threads around it.
///
/// When `body` returns, every job that it submitted has been or will be finished before `run` returns, unless
/// the run was [cancelled](Cancel); then those not yet started fail with [`JobError::Cancelled`]. Jobs that
/// nobody collects are dropped with the run.
///
/// # Panics
///
/// Where a worker panics: a bug. Whoever waits for jobs that were lost with it panics too.
pub fn run<'m, R>(mut setup: Setup<'m>, body: impl FnOnce(&Runtime<'_, 'm>) -> R) -> (R, Report) {
    let plan = setup.plan();
    // Workers that the plan leaves without work are not started.
    let (mut kits, mut modules) = (take(&mut setup.workers), take(&mut setup.modules));
    kits.truncate(if plan.cpu.jobs_max == 0 { 0 } else { kits.len() });
    modules.truncate(if plan.is_cpu_only() { 0 } else { modules.len() });
    let (cpu_workers, workers) = (kits.len(), kits.len() + modules.len());
    let shared = Shared::new(setup, plan, cpu_workers, &modules);
    let answer = thread::scope(|scope| {
        // Closes also when `body` or the start of a thread panics, or the scope would wait for workers that wait
        // for work.
        let _closing = CloseOnDrop(&shared.backlog);
        start(scope, &shared, kits, modules);
        body(&Runtime { shared: &shared, workers })
    });
    (answer, shared.into_report())
}

/// Starts a thread for each worker, and the monitor where the plan wants one.
fn start<'scope, 'm>(
    scope: &'scope Scope<'scope, '_>,
    shared: &'scope Shared<'m>,
    kits: Vec<CpuKit>,
    modules: Vec<ModuleSetup<'m>>,
) {
    for (desk, mut kit) in kits.into_iter().enumerate() {
        shared.adopt(&mut kit);
        spawn(scope, format!("evener-cpu-{desk}"), shared, Some(desk), move || cpu_worker(shared, desk, kit));
    }
    for (index, module) in modules.into_iter().enumerate() {
        let desk = shared.cpu_workers + index;
        let worker = ModuleWorker::new(shared, desk, module);
        spawn(scope, format!("evener-module-{index}"), shared, Some(desk), move || worker.run());
    }
    if shared.plan.dispatch == Dispatch::Monitor {
        spawn(scope, "evener-monitor".to_owned(), shared, None, move || monitor::run(shared));
    }
}

impl<'r, 'm> Runtime<'r, 'm> {
    /// A way in for the calling thread, with a kit of its own.
    ///
    /// # Panics
    ///
    /// Where more callers and streams live at once than [`Setup::homes`] allows.
    #[must_use]
    pub fn caller(&self, mut kit: CpuKit) -> Caller<'r, 'm> {
        self.shared.adopt(&mut kit);
        let number = self.shared.callers.fetch_add(1, Ordering::Relaxed);
        Caller::new(self.shared, self.free_home(), number, kit)
    }

    /// An ordered stream: what goes in at the inlet comes out at the outlet in the same order. Needs worker
    /// threads.
    ///
    /// # Panics
    ///
    /// Where more callers and streams live at once than [`Setup::homes`] allows, or where no worker thread
    /// was set up.
    #[must_use]
    pub fn stream(&self) -> (Inlet<'r, 'm>, Outlet<'r, 'm>) {
        assert!(self.workers > 0, "a stream needs worker threads");
        stream::open(self.shared, self.free_home())
    }

    /// The plan in force.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.shared.plan
    }

    /// Has all that the run's threads made of a session wiped, and its keys closed where modules hold them: at once by
    /// workers, with its next burst or its end by a [`Caller`]. For a session with which no more jobs come; where some are
    /// under way, call it when they are back, or what they need is prepared anew.
    pub fn end_session(&self, session: SessionId) {
        self.shared.backlog.end_session(session);
    }

    /// Holds all workers at a busy barrier before their next claim, and returns when they are there. For
    /// measuring: jobs submitted now are started by [`Runtime::release`]. A caller that helps is not held.
    ///
    /// # Panics
    ///
    /// Where a worker panicked: a bug.
    pub fn hold(&self) {
        self.shared.measuring.store(true, Ordering::Relaxed);
        self.shared.backlog.hold();
        while !self.shared.backlog.all_stand() {
            self.shared.assert_whole();
            thread::yield_now();
        }
    }

    /// Waits until the workers at the barrier stand on different cores, or gives up
    /// ([`Barrier::spread`](crate::Barrier::spread)); returns whether they do.
    #[must_use]
    pub fn spread(&self) -> bool {
        self.shared.backlog.spread()
    }

    /// Opens the barrier; returns the moment.
    pub fn release(&self) -> Nanos {
        let now = self.shared.clock.now();
        self.shared.backlog.release();
        now
    }

    /// When the last job so far came home.
    #[must_use]
    pub fn last_done(&self) -> Nanos {
        Nanos(self.shared.last_done_ns.load(Ordering::Acquire))
    }

    fn free_home(&self) -> usize {
        self.shared.homes.iter().position(Home::take).expect("there are fewer callers and streams than homes")
    }
}

impl<'m> Shared<'m> {
    pub(crate) fn new(setup: Setup<'m>, plan: Plan, cpu_workers: usize, modules: &[ModuleSetup<'_>]) -> Self {
        let costs = Arc::new(Costs::new(setup.learned));
        let weigher = (plan.dispatch == Dispatch::Weigh).then(|| {
            let fixed = Circumstances {
                objective: setup.objective,
                cores: setup.cores,
                cpu_workers: cpu_workers + setup.callers,
                first_module_desk: cpu_workers,
                stations: modules.iter().map(station).collect(),
                check_every: modules.iter().map(|module| module.check_every.max(1)).collect(),
                does: modules.iter().map(classes_done).collect(),
            };
            Weigher::new(fixed, &costs, cpu_workers + modules.len())
        });
        let backlog = Backlog::new(&plan, setup.backlog_jobs, cpu_workers, modules.len());
        if let Some(weigher) = &weigher {
            weigher.begin(backlog.lanes());
        }
        Self {
            weigher,
            costs,
            budget: setup.budget.map(Mutex::new),
            plan,
            backlog,
            homes: (0..setup.homes).map(|_| Home::new(setup.home_jobs)).collect(),
            clock: setup.clock,
            cancel: setup.cancel,
            cpu_workers,
            callers_work: if plan.cpu.jobs_max == 0 { 0 } else { setup.callers },
            module_does: what_modules_do(modules),
            each_does: modules.iter().map(|module| what_modules_do(std::slice::from_ref(module))).collect(),
            reports: Mutex::default(),
            turned_away: AtomicU64::new(0),
            callers: AtomicU32::new(0),
            measuring: AtomicBool::new(false),
            last_done_ns: CachePadded::new(AtomicU64::new(0)),
        }
    }

    /// Lets a kit go by the costs of this run, and keep what the adaptive policy learns from.
    pub(crate) fn adopt(&self, kit: &mut CpuKit) {
        kit.share(&self.costs);
        if self.weigher.is_some() {
            kit.learn();
        }
    }

    fn into_report(self) -> Report {
        let turned_away = self.report_of_turned_away();
        let mut workers = self.reports.into_inner().unwrap_or_else(PoisonError::into_inner);
        workers.extend(turned_away);
        let guarded = self.weigher.map_or_else(Counters::default, Weigher::into_counters);
        Report { workers, learned: self.costs.learned(), guarded }
    }

    /// Brings finished jobs to the homes that they came from; leaves `jobs` empty.
    pub(crate) fn bring_home(&self, jobs: &mut Vec<Box<Job<'m>>>) {
        if self.measuring.load(Ordering::Relaxed) {
            // Relaxed: only read when everything is at home, which the ring orders.
            self.last_done_ns.fetch_max(self.clock.now().0, Ordering::Relaxed);
        }
        while let Some(first) = jobs.first() {
            let home = first.ticket.home;
            if jobs.iter().all(|job| job.ticket.home == home) {
                self.homes[home as usize].arrive(jobs);
            } else {
                self.homes[home as usize].arrive(&mut split_off_home(jobs, home));
            }
        }
    }

    pub(crate) fn report(&self, report: WorkerReport) {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner).push(report);
    }

    /// Passes the panic of a worker on to whoever would wait for its jobs for ever.
    pub(crate) fn assert_whole(&self) {
        assert!(!self.backlog.is_broken(), "a worker panicked and its jobs are lost");
    }

    /// A thread of the run panicked: wakes everybody who may wait for it.
    fn break_down(&self) {
        self.backlog.break_down();
        self.homes.iter().for_each(Home::knock);
    }
}

/// Takes the jobs of one home out of `jobs`, in order.
fn split_off_home<'m>(jobs: &mut Vec<Box<Job<'m>>>, home: u32) -> Vec<Box<Job<'m>>> {
    let (same, others) = jobs.drain(..).partition(|job| job.ticket.home == home);
    *jobs = others;
    same
}

struct CloseOnDrop<'b, 'm>(&'b Backlog<'m>);

impl Drop for CloseOnDrop<'_, '_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A module as the planner sees it. A driver says only how many requests it takes; that its units are as many makes
/// no difference to the turn that is measured.
fn station(module: &ModuleSetup<'_>) -> Station {
    let depth = module.driver.profile().width.max(1);
    Station { units: depth, depth }
}

/// By [`Class::index`]: whether the module does it.
fn classes_done(module: &ModuleSetup<'_>) -> Vec<bool> {
    let class = |index| Class::from_index(index).expect("below their number");
    let does = |class: Class| module.driver.supports(class.algorithm(), class.direction());
    (0..Class::COUNT).map(|index| does(class(index))).collect()
}

/// What a thread of the run leaves behind, whichever way it ends.
struct Leaving<'s, 'm> {
    shared: &'s Shared<'m>,
    desk: Option<usize>,
}

impl Drop for Leaving<'_, '_> {
    fn drop(&mut self) {
        if let Some(desk) = self.desk {
            self.shared.backlog.leave(desk);
        }
        if thread::panicking() {
            self.shared.break_down();
        }
    }
}

fn spawn<'scope, 'm>(
    scope: &'scope Scope<'scope, '_>,
    name: String,
    shared: &'scope Shared<'m>,
    desk: Option<usize>,
    body: impl FnOnce() + Send + 'scope,
) {
    let started = thread::Builder::new().name(name).spawn_scoped(scope, move || {
        let _leaving = Leaving { shared, desk };
        body();
    });
    started.expect("the system has room for a few threads");
}

/// Takes jobs as the plan says until nothing is left and nothing more will come.
fn cpu_worker(shared: &Shared<'_>, desk: usize, mut kit: CpuKit) {
    shared.work_as_core(desk, &shared.plan.cpu, &mut kit);
    shared.report(WorkerReport { name: format!("cpu {desk}"), methods: kit.take_tallies(), module: None });
}
