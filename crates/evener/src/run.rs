//! One run from start to end: threads are started, the body submits jobs, the backlog is closed, every job
//! that was submitted is finished, threads are joined, and what they did is returned.

use std::mem::take;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::{fmt, io};

use evener_core::plan::{Dispatch, Plan};
use evener_core::{Nanos, SessionId};

use crate::queue::backlog::Backlog;
use crate::state::Shared;
use crate::submit::caller::caller_name;
use crate::submit::stream::{self, StreamReceiver, StreamSender};
use crate::worker::cpu_worker::{cpu_worker, cpu_worker_name};
use crate::worker::module_worker::ModuleWorker;
use crate::worker::monitor;
use crate::{Caller, CoreDrivers, ModuleSetup, Report, Setup, join_all};

/// The handle to a run. Lives as long as the body of [`run`].
pub struct Runtime<'r, 'm> {
    shared: &'r Arc<Shared<'m>>,
    workers: usize,
}

/// Runs `body` with worker threads around it.
///
/// When `body` returns, every job that it submitted has been or will be finished before `run` returns, unless
/// the run was [cancelled](crate::Cancel); then those not yet started fail with [`JobError::Cancelled`](evener_core::JobError::Cancelled). Jobs that
/// no thread collects are dropped with the run.
///
/// # Panics
///
/// Where a worker panics: a bug. A thread that waits for jobs that were lost with it panics too. Where the system has no
/// thread for a module, see [`try_run`].
pub fn run<'m, R>(setup: Setup<'m>, body: impl FnOnce(&Runtime<'_, 'm>) -> R) -> (R, Report) {
    try_run(setup, body).expect("the system has space for a few threads")
}

/// As [`run`]; where the system has fewer threads than CPU workers were set up, there are fewer ([`Runtime::workers`]).
///
/// # Errors
///
/// [`NoThread`] where one that waits for a module cannot be had. `body` was not called.
///
/// # Panics
///
/// As [`run`], but for threads.
pub fn try_run<'m, R>(
    setup: Setup<'m>,
    body: impl FnOnce(&Runtime<'_, 'm>) -> R,
) -> Result<(R, Report), NoThread> {
    run_around(setup, Lifetime::OfBody, body)
}

/// How long what the threads share may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// As long as the body of the run.
    OfBody,
    /// As long as any thread holds it: threads that come later find a run that has ended.
    OfHolders,
}

/// The run that [`try_run`] and a [`Resident`](crate::Resident) are made of.
pub(crate) fn run_around<'m, R>(
    mut setup: Setup<'m>,
    lifetime: Lifetime,
    body: impl FnOnce(&Runtime<'_, 'm>) -> R,
) -> Result<(R, Report), NoThread> {
    let plan = setup.plan();
    // Workers that the plan leaves without work are not started.
    let (mut all_core_drivers, mut modules) = (take(&mut setup.workers), take(&mut setup.modules));
    all_core_drivers.truncate(if plan.cpu.jobs_max == 0 { 0 } else { all_core_drivers.len() });
    modules.truncate(if plan.is_cpu_only() { 0 } else { modules.len() });
    // The threads come first: queues are laid out for as many workers as there are.
    let shared = OnceLock::new();
    let answer = thread::scope(|scope| {
        let mut threads = Threads { scope, idle: Vec::new(), started: Vec::new() };
        for number in 0..all_core_drivers.len() {
            if threads.start(format!("evener-cpu-{number}")).is_err() {
                all_core_drivers.truncate(number);
                break;
            }
        }
        for index in 0..modules.len() {
            threads.start(format!("evener-module-{index}"))?;
        }
        if plan.dispatch == Dispatch::Monitor {
            threads.start("evener-monitor".to_owned())?;
        }
        let (cpu_workers, workers) = (all_core_drivers.len(), all_core_drivers.len() + modules.len());
        let is_resident = lifetime == Lifetime::OfHolders;
        let shared = shared.get_or_init(|| {
            let shared = Shared::new(setup, plan, cpu_workers, &modules);
            Arc::new(if is_resident { shared.resident() } else { shared })
        });
        // Closes also when `body` panics, or the scope would wait for workers that wait for work.
        let closing = CloseOnDrop(&shared.backlog);
        let started = hand_out(threads, shared, all_core_drivers, modules);
        let answer = body(&Runtime { shared, workers });
        drop(closing);
        join_all(started);
        Ok(answer)
    })?;
    let shared = shared.get().expect("it was set before `body` was called");
    Ok((answer, shared.report_of_all()))
}

/// The system has no thread that could wait for a module.
#[derive(Debug)]
pub struct NoThread(pub io::Error);

impl fmt::Display for NoThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no thread can be started that waits for the module (ulimit -u, or a limit of tasks): {}",
            self.0
        )
    }
}

impl std::error::Error for NoThread {}

/// Gives each thread its worker, and one the monitor where the plan wants it; returns all that were started.
fn hand_out<'scope, 'm>(
    threads: Threads<'scope, '_>,
    shared: &'scope Shared<'m>,
    all_core_drivers: Vec<CoreDrivers>,
    modules: Vec<ModuleSetup<'m>>,
) -> Vec<ScopedJoinHandle<'scope, ()>> {
    let mut idle = threads.idle.into_iter();
    let mut give = |worker: Option<usize>, body: Work<'scope>| {
        let work: Work<'scope> = Box::new(move || {
            let _leaving = Leaving { shared, worker };
            body();
        });
        let thread = idle.next().expect("there is a thread for each worker");
        thread.send(work).expect("a thread waits for its work");
    };
    for (number, mut core_drivers) in all_core_drivers.into_iter().enumerate() {
        shared.adopt(&mut core_drivers, || cpu_worker_name(number));
        give(Some(number), Box::new(move || cpu_worker(shared, number, core_drivers)));
    }
    for (index, module) in modules.into_iter().enumerate() {
        let number = shared.cpu_workers + index;
        let worker = ModuleWorker::new(shared, number, module);
        give(Some(number), Box::new(move || worker.run()));
    }
    if shared.plan.dispatch == Dispatch::Monitor {
        give(None, Box::new(move || monitor::run(shared)));
    }
    threads.started
}

/// What a thread does all its life.
type Work<'scope> = Box<dyn FnOnce() + Send + 'scope>;

/// Threads that were started and wait for their work; one that gets none ends.
struct Threads<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    idle: Vec<Sender<Work<'scope>>>,
    started: Vec<ScopedJoinHandle<'scope, ()>>,
}

impl Threads<'_, '_> {
    fn start(&mut self, name: String) -> Result<(), NoThread> {
        let (give, take) = channel::<Work<'_>>();
        let life = move || {
            if let Ok(work) = take.recv() {
                work();
            }
        };
        let started = thread::Builder::new().name(name).spawn_scoped(self.scope, life).map_err(NoThread)?;
        self.started.push(started);
        self.idle.push(give);
        Ok(())
    }
}

impl<'r, 'm> Runtime<'r, 'm> {
    /// A way in for the calling thread, with a set of drivers of its own.
    ///
    /// # Panics
    ///
    /// Where more callers and streams live at once than [`Setup::homes`] allows.
    #[must_use]
    pub fn caller(&self, mut core_drivers: CoreDrivers) -> Caller<'r, 'm> {
        let number = self.shared.next_caller();
        self.shared.adopt(&mut core_drivers, || caller_name(number));
        Caller::new(self.shared, self.free_completions(), number, core_drivers)
    }

    /// An ordered stream: jobs that the sender takes come out at the receiver in the same order. Needs worker
    /// threads.
    ///
    /// # Panics
    ///
    /// Where more callers and streams live at once than [`Setup::homes`] allows, or where no worker thread
    /// was set up.
    #[must_use]
    pub fn stream(&self) -> (StreamSender<'r, 'm>, StreamReceiver<'r, 'm>) {
        assert!(self.workers > 0, "a stream needs worker threads");
        stream::open(self.shared, self.free_completions())
    }

    /// What its threads share, for one who keeps it.
    pub(crate) const fn shared(&self) -> &'r Arc<Shared<'m>> {
        self.shared
    }

    /// Worker threads that there are: of cores, and one for each module.
    #[must_use]
    pub const fn workers(&self) -> usize {
        self.workers
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

    /// When the last job so far came back.
    #[must_use]
    pub fn last_done(&self) -> Nanos {
        Nanos(self.shared.last_done_ns.load(Ordering::Acquire))
    }

    fn free_completions(&self) -> usize {
        self.shared
            .acquire_home(self.shared.home_jobs)
            .expect("there are fewer callers and streams than homes")
    }
}

struct CloseOnDrop<'b, 'm>(&'b Backlog<'m>);

impl Drop for CloseOnDrop<'_, '_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// What a thread of the run leaves behind, whichever way it ends.
struct Leaving<'s, 'm> {
    shared: &'s Shared<'m>,
    worker: Option<usize>,
}

impl Drop for Leaving<'_, '_> {
    fn drop(&mut self) {
        if let Some(worker) = self.worker {
            self.shared.backlog.leave(worker);
        }
        if thread::panicking() {
            self.shared.break_down();
        }
    }
}
