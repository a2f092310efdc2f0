//! One run from start to end: threads are started, the body submits jobs, the backlog is closed, every job
//! that was submitted is finished, threads are joined, and what they did is returned.

use std::mem::take;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Scope};

use evener_core::driver::Clock;
use evener_core::guard::Counters;
use evener_core::plan::adaptive::Station;
use evener_core::plan::{Dispatch, Plan, Take};
use evener_core::{Algorithm, Budget, Class, Direction, Job, JobError, Nanos, SessionId};
use evener_ring::CachePadded;

use crate::backlog::Backlog;
use crate::cpu::is_bound;
use crate::home::Home;
use crate::module::ModuleWorker;
use crate::report::WorkerReport;
use crate::stream::{self, Inlet, Outlet};
use crate::weigh::{Circumstances, Weigher};
use crate::{Caller, Cancel, Costs, CpuKit, ModuleSetup, Report, Setup, monitor};

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
    fn new(setup: Setup<'m>, plan: Plan, cpu_workers: usize, modules: &[ModuleSetup<'_>]) -> Self {
        let costs = Arc::new(Costs::new(setup.learned));
        let weigher = (plan.dispatch == Dispatch::Weigh).then(|| {
            let fixed = Circumstances {
                objective: setup.objective,
                cores: setup.cores,
                cpu_workers: cpu_workers + setup.callers,
                first_module_desk: cpu_workers,
                stations: modules.iter().map(station).collect(),
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
            callers: AtomicU32::new(0),
            measuring: AtomicBool::new(false),
            last_done_ns: CachePadded::new(AtomicU64::new(0)),
        }
    }

    /// Whether any module does this, so that queueing it makes sense.
    pub(crate) fn module_does(&self, job: &Job<'_>) -> bool {
        let session = job.session();
        self.module_does[session.algorithm().index()][session.direction() as usize]
    }

    /// Takes jobs whose sessions are for modules only out of `jobs` and hands them to modules, or home as failed where none
    /// does them; `left` gets those for which there is no room. Returns how many went.
    pub(crate) fn bind_all(&self, jobs: &mut Vec<Box<Job<'m>>>, left: &mut Vec<Box<Job<'m>>>) -> usize {
        if !jobs.iter().any(|job| is_bound(job)) {
            return 0;
        }
        let (bound, free): (Vec<_>, _) = jobs.drain(..).partition(|job| is_bound(job));
        *jobs = free;
        let all = bound.len();
        left.extend(bound.into_iter().filter_map(|job| self.bind(job).err()));
        all - left.len()
    }

    fn bind(&self, mut job: Box<Job<'m>>) -> Result<(), Box<Job<'m>>> {
        let Some(desk) = self.desk_for(&job) else {
            job.fail(JobError::NeedsModule);
            self.bring_home(&mut vec![job]);
            return Ok(());
        };
        self.backlog.bind(desk, job)?;
        if self.backlog.is_out(desk) {
            // It went out of service meanwhile, so perhaps nobody looks there any more.
            while let Some(mut job) = self.backlog.take_bound(desk) {
                job.fail(JobError::ModuleLost);
                self.bring_home(&mut vec![job]);
            }
        }
        Ok(())
    }

    /// Of the modules in service that do a job, the one at which the fewest wait that no other may take.
    fn desk_for(&self, job: &Job<'_>) -> Option<usize> {
        let (algorithm, direction) = (job.session().algorithm().index(), job.session().direction() as usize);
        let does = self.each_does.iter().enumerate().filter(|(_, does)| does[algorithm][direction]);
        let desks = does.map(|(module, _)| self.cpu_workers + module);
        desks.filter(|desk| !self.backlog.is_out(*desk)).min_by_key(|desk| self.backlog.bound_count(*desk))
    }

    /// Runs a burst on a core, or gives it up where the run was cancelled.
    pub(crate) fn work_on(&self, kit: &mut CpuKit, burst: &mut [Box<Job<'m>>]) {
        if self.cancel.is_cancelled() {
            kit.fail_all(burst, JobError::Cancelled);
        } else {
            kit.run(burst, &*self.clock);
        }
    }

    /// Runs a claimed burst on a core and brings it home.
    pub(crate) fn run_on_core(&self, kit: &mut CpuKit, burst: &mut Vec<Box<Job<'m>>>) {
        self.work_on(kit, burst);
        self.learn_from(kit);
        self.bring_home(burst);
    }

    /// Gives the adaptive policy what a kit measured, and lets it look whether modules matter where nobody asks.
    #[inline]
    pub(crate) fn learn_from(&self, kit: &mut CpuKit) {
        if let Some(weigher) = &self.weigher {
            let modules_matter = self.backlog.lanes().modules_matter();
            if modules_matter || kit.has_news() {
                self.take_news(weigher, modules_matter, kit);
            }
        }
    }

    #[inline(never)]
    fn take_news(&self, weigher: &Weigher, modules_matter: bool, kit: &mut CpuKit) {
        let lanes = self.backlog.lanes();
        kit.tell_samples(modules_matter, |samples| weigher.saw_core(lanes, samples));
        if !modules_matter && kit.is_time_to_look() {
            weigher.looks_back(lanes, self.clock.now());
        }
    }

    /// Where core and module take turns: gives the module its turn with jobs like those that were just run, where it is due.
    fn give_turn(&self, class: Option<Class>) {
        let (Some(weigher), Some(class)) = (&self.weigher, class) else { return };
        let (lanes, waiting) = (self.backlog.lanes(), self.backlog.waiting_for_cores());
        if let Some(count) = weigher.gives_turn(lanes, class, waiting, self.clock.now()) {
            self.backlog.show_some(count);
            lanes.let_modules(true);
        }
    }

    /// Claims what the plan gives a core; where it gives nothing now, says how long to wait at most.
    pub(crate) fn claim_for_core(
        &self,
        desk: Option<usize>,
        take: &Take,
        burst: &mut Vec<Box<Job<'m>>>,
    ) -> Result<(), Option<Nanos>> {
        let Some(weigher) = &self.weigher else {
            return if self.backlog.claim(desk, take, burst) > 0 { Ok(()) } else { Err(None) };
        };
        let lanes = self.backlog.lanes();
        weigher.core_works(true);
        if weigher.has_turn() {
            // Only what is asked for below.
        } else if lanes.modules_matter() {
            self.backlog.show_modules(burst);
        } else {
            self.backlog.claim(desk, take, burst);
        }
        if !burst.is_empty() {
            return Ok(());
        }
        let now = self.clock.now();
        let claim = weigher.core_takes(lanes, now)?;
        let claimed = self.backlog.claim_of(claim.lane, take, claim.jobs_max, burst);
        if let (1.., Some(desk)) = (claimed, desk) {
            weigher.begins(desk, &claim, claimed, now);
        }
        // Where another was faster, the next look finds something else.
        if claimed > 0 { Ok(()) } else { Err(Some(Nanos::ZERO)) }
    }

    /// Charges the core time of this thread since the last call, and sleeps until the budget lets it go on.
    pub(crate) fn keep_budget(&self, meter: &mut Meter) {
        while let Err(wait) = self.charge(meter) {
            if self.cancel.is_cancelled() || self.backlog.is_broken() {
                return;
            }
            thread::sleep(wait.into());
        }
    }

    /// Charges the core time of this thread since the last call.
    ///
    /// # Errors
    ///
    /// How long to wait before the thread may go on.
    pub(crate) fn charge(&self, meter: &mut Meter) -> Result<(), Nanos> {
        let Some(budget) = &self.budget else { return Ok(()) };
        let core = self.clock.thread_time();
        let mut budget = budget.lock().unwrap_or_else(PoisonError::into_inner);
        budget.spent(core - meter.charged.replace(core).unwrap_or(core));
        budget.may_spend(self.clock.now()).map(drop)
    }

    /// Lets a kit go by the costs of this run, and keep what the adaptive policy learns from.
    pub(crate) fn adopt(&self, kit: &mut CpuKit) {
        kit.share(&self.costs);
        if self.weigher.is_some() {
            kit.learn();
        }
    }

    fn into_report(self) -> Report {
        let workers = self.reports.into_inner().unwrap_or_else(PoisonError::into_inner);
        let guarded = self.weigher.map_or_else(Counters::default, Weigher::into_counters);
        Report { workers, learned: self.costs.learned(), guarded }
    }

    /// Takes jobs as `take` says and runs them on the calling thread's core, until nothing is left and nothing
    /// more will come.
    pub(crate) fn work_as_core(&self, desk: usize, take: &Take, kit: &mut CpuKit) {
        let (mut burst, mut meter) = (Vec::new(), Meter::default());
        loop {
            self.backlog.tell_ended(desk, |is_over| kit.forget(is_over));
            self.backlog.stop_at_barrier(desk);
            self.keep_budget(&mut meter);
            match self.claim_for_core(Some(desk), take, &mut burst) {
                Ok(()) => {
                    let class = class_of_all(&burst);
                    self.run_on_core(kit, &mut burst);
                    self.give_turn(class);
                }
                Err(_) if self.backlog.is_over(desk) => return,
                Err(patience) => self.wait_for_work(desk, patience),
            }
        }
    }

    /// Sleeps until there may be work for a core.
    fn wait_for_work(&self, desk: usize, patience: Option<Nanos>) {
        let Some(weigher) = &self.weigher else { return self.backlog.wait_for_work(desk, patience) };
        weigher.is_free(desk);
        weigher.core_works(false);
        let lanes = self.backlog.lanes();
        let left_to_modules = lanes.first_waiting().filter(|_| lanes.modules_matter());
        let (start, paths) = (self.clock.now(), weigher.paths());
        self.backlog.wait_for_work(desk, patience);
        if let Some(lane) = left_to_modules {
            let now = self.clock.now();
            weigher.idled(lane, now - start, paths, now);
        }
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

/// The class of the jobs, where they are all of one.
fn class_of_all(jobs: &[Box<Job<'_>>]) -> Option<Class> {
    let first = jobs.first()?.class();
    (jobs.last()?.class() == first).then_some(first)
}

/// Takes the jobs of one home out of `jobs`, in order.
fn split_off_home<'m>(jobs: &mut Vec<Box<Job<'m>>>, home: u32) -> Vec<Box<Job<'m>>> {
    let (same, others) = jobs.drain(..).partition(|job| job.ticket.home == home);
    *jobs = others;
    same
}

/// What of a thread's core time was charged to the budget. A thread that comes from elsewhere begins with nothing.
#[derive(Default)]
pub(crate) struct Meter {
    charged: Option<Nanos>,
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

/// `[algorithm][direction]`: whether any module does it.
fn what_modules_do(modules: &[ModuleSetup<'_>]) -> Vec<[bool; 2]> {
    let any =
        |algorithm, direction| modules.iter().any(|module| module.driver.supports(algorithm, direction));
    let both =
        |&algorithm| [Direction::Encrypt, Direction::Decrypt].map(|direction| any(algorithm, direction));
    Algorithm::ALL.iter().map(both).collect()
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
