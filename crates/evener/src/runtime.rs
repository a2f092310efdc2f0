//! One run from start to end: threads are started, the body submits jobs, the backlog is closed, every job
//! that was submitted is finished, threads are joined, and what they did is returned.

use std::mem::take;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use evener_core::driver::Clock;
use evener_core::plan::{Dispatch, Plan};
use evener_core::{Algorithm, Direction, Job, JobError, Nanos};

use crate::backlog::Backlog;
use crate::home::Home;
use crate::module::ModuleWorker;
use crate::report::WorkerReport;
use crate::stream::{self, Inlet, Outlet};
use crate::{Caller, Cancel, CpuKit, ModuleSetup, Report, Setup, monitor};

/// What all threads of a run share.
pub(crate) struct Shared<'m> {
    pub(crate) plan: Plan,
    pub(crate) backlog: Backlog<'m>,
    pub(crate) homes: Vec<Home<'m>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) cancel: Cancel,
    /// Algorithms that some module does: `[algorithm][direction]`.
    module_does: Vec<[bool; 2]>,
    reports: Mutex<Vec<WorkerReport>>,
    callers: AtomicU32,
    /// Workers that wait at the barrier of [`Runtime::hold`].
    pub(crate) waiting: AtomicU32,
    /// Whether somebody used the barrier, so that the time of the last job matters.
    measuring: AtomicBool,
    /// When the last job so far came home, in nanoseconds of the clock.
    last_done_ns: AtomicU64,
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
/// Where a worker panics: a bug.
pub fn run<'m, R>(mut setup: Setup<'m>, body: impl FnOnce(&Runtime<'_, 'm>) -> R) -> (R, Report) {
    let plan = setup.plan();
    // Workers that the plan leaves without work are not started.
    let (mut kits, mut modules) = (take(&mut setup.workers), take(&mut setup.modules));
    kits.truncate(if plan.cpu.jobs_max == 0 { 0 } else { kits.len() });
    modules.truncate(if plan.is_cpu_only() { 0 } else { modules.len() });
    let workers = kits.len() + modules.len();
    let module_does = what_modules_do(&modules);
    let shared = Shared {
        plan,
        backlog: Backlog::new(plan.dispatch, setup.backlog_jobs, workers.max(1)),
        homes: (0..setup.homes).map(|_| Home::new(setup.home_jobs)).collect(),
        clock: setup.clock,
        cancel: setup.cancel,
        module_does,
        reports: Mutex::default(),
        callers: AtomicU32::new(0),
        waiting: AtomicU32::new(0),
        measuring: AtomicBool::new(false),
        last_done_ns: AtomicU64::new(0),
    };
    let answer = thread::scope(|scope| {
        let cpu_count = kits.len();
        for (desk, kit) in kits.into_iter().enumerate() {
            let shared = &shared;
            spawn(scope, format!("evener-cpu-{desk}"), move || cpu_worker(shared, desk, kit));
        }
        for (index, module) in modules.into_iter().enumerate() {
            let worker = ModuleWorker::new(&shared, cpu_count + index, module);
            spawn(scope, format!("evener-module-{index}"), move || worker.run());
        }
        if plan.dispatch == Dispatch::Monitor {
            let shared = &shared;
            spawn(scope, "evener-monitor".to_owned(), move || monitor::run(shared));
        }
        // Closes also when `body` panics, or the scope would wait for workers that wait for work.
        let _closing = CloseOnDrop(&shared.backlog);
        body(&Runtime { shared: &shared, workers })
    });
    let workers = shared.reports.into_inner().unwrap_or_else(PoisonError::into_inner);
    (answer, Report { workers })
}

impl<'r, 'm> Runtime<'r, 'm> {
    /// A way in for the calling thread, with a kit of its own.
    ///
    /// # Panics
    ///
    /// Where more callers and streams live at once than [`Setup::homes`] allows.
    #[must_use]
    pub fn caller(&self, kit: CpuKit) -> Caller<'r, 'm> {
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

    /// Holds all workers at a busy barrier before their next claim, and returns when they are there. For
    /// measuring: jobs submitted now are started by [`Runtime::release`].
    pub fn hold(&self) {
        self.shared.measuring.store(true, Ordering::Relaxed);
        self.shared.backlog.hold(true);
        while (self.shared.waiting.load(Ordering::Acquire) as usize) < self.workers {
            std::hint::spin_loop();
        }
    }

    /// Opens the barrier; returns the moment.
    pub fn release(&self) -> Nanos {
        let now = self.shared.clock.now();
        self.shared.backlog.hold(false);
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
    /// Whether any module does this, so that queueing it makes sense.
    pub(crate) fn module_does(&self, job: &Job<'_>) -> bool {
        let session = job.session();
        self.module_does[session.algorithm().index()][session.direction() as usize]
    }

    /// Runs a claimed burst on a core and brings it home.
    pub(crate) fn run_on_core(&self, kit: &mut CpuKit, burst: &mut Vec<Box<Job<'m>>>) {
        if self.cancel.is_cancelled() {
            burst.iter_mut().for_each(|job| job.fail(JobError::Cancelled));
        } else {
            kit.run(burst, &*self.clock);
        }
        self.bring_home(burst);
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

    /// The barrier of [`Runtime::hold`]; passes at once when nobody measures.
    pub(crate) fn barrier(&self) {
        if !self.backlog.is_held() {
            return;
        }
        self.waiting.fetch_add(1, Ordering::AcqRel);
        while self.backlog.is_held() && !self.backlog.is_closed() {
            std::hint::spin_loop();
        }
        self.waiting.fetch_sub(1, Ordering::AcqRel);
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

/// `[algorithm][direction]`: whether any module does it.
fn what_modules_do(modules: &[ModuleSetup<'_>]) -> Vec<[bool; 2]> {
    let any =
        |algorithm, direction| modules.iter().any(|module| module.driver.supports(algorithm, direction));
    let both =
        |&algorithm| [Direction::Encrypt, Direction::Decrypt].map(|direction| any(algorithm, direction));
    Algorithm::ALL.iter().map(both).collect()
}

fn spawn<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    name: String,
    body: impl FnOnce() + Send + 'scope,
) {
    let started = thread::Builder::new().name(name).spawn_scoped(scope, body);
    started.expect("the system has room for a few threads");
}

/// Takes jobs as the plan says until nothing is left and nothing more will come.
fn cpu_worker<'m>(shared: &Shared<'m>, desk: usize, mut kit: CpuKit) {
    let mut burst = Vec::new();
    loop {
        shared.barrier();
        if shared.backlog.claim(Some(desk), &shared.plan.cpu, &mut burst) > 0 {
            shared.run_on_core(&mut kit, &mut burst);
        } else if shared.backlog.is_over(desk) {
            break;
        } else {
            monitor::tell_free(shared, desk);
            shared.backlog.wait_for_work(desk);
        }
    }
    shared.report(WorkerReport { name: format!("cpu {desk}"), methods: kit.take_tallies(), module: None });
}
