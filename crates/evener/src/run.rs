//! One run from start to end: threads are started, the body submits jobs, the backlog is closed, every job
//! that was submitted is finished, threads are joined, and what they did is returned.

use std::mem::take;
use std::sync::atomic::Ordering;
use std::thread::{self, Scope};

use evener_core::plan::{Dispatch, Plan};
use evener_core::{Nanos, SessionId};

use crate::queue::backlog::Backlog;
use crate::queue::completions::Completions;
use crate::state::Shared;
use crate::submit::stream::{self, StreamReceiver, StreamSender};
use crate::worker::cpu_worker::cpu_worker;
use crate::worker::module_worker::ModuleWorker;
use crate::worker::monitor;
use crate::{Caller, CoreDrivers, ModuleSetup, Report, Setup};

/// The handle to a run. Lives as long as the body of [`run`].
pub struct Runtime<'r, 'm> {
    shared: &'r Shared<'m>,
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
/// Where a worker panics: a bug. A thread that waits for jobs that were lost with it panics too.
pub fn run<'m, R>(mut setup: Setup<'m>, body: impl FnOnce(&Runtime<'_, 'm>) -> R) -> (R, Report) {
    let plan = setup.plan();
    // Workers that the plan leaves without work are not started.
    let (mut all_core_drivers, mut modules) = (take(&mut setup.workers), take(&mut setup.modules));
    all_core_drivers.truncate(if plan.cpu.jobs_max == 0 { 0 } else { all_core_drivers.len() });
    modules.truncate(if plan.is_cpu_only() { 0 } else { modules.len() });
    let (cpu_workers, workers) = (all_core_drivers.len(), all_core_drivers.len() + modules.len());
    let shared = Shared::new(setup, plan, cpu_workers, &modules);
    let answer = thread::scope(|scope| {
        // Closes also when `body` or the start of a thread panics, or the scope would wait for workers that wait
        // for work.
        let _closing = CloseOnDrop(&shared.backlog);
        start(scope, &shared, all_core_drivers, modules);
        body(&Runtime { shared: &shared, workers })
    });
    (answer, shared.into_report())
}

/// Starts a thread for each worker, and the monitor where the plan wants one.
fn start<'scope, 'm>(
    scope: &'scope Scope<'scope, '_>,
    shared: &'scope Shared<'m>,
    all_core_drivers: Vec<CoreDrivers>,
    modules: Vec<ModuleSetup<'m>>,
) {
    for (number, mut core_drivers) in all_core_drivers.into_iter().enumerate() {
        shared.adopt(&mut core_drivers);
        spawn(scope, format!("evener-cpu-{number}"), shared, Some(number), move || {
            cpu_worker(shared, number, core_drivers);
        });
    }
    for (index, module) in modules.into_iter().enumerate() {
        let number = shared.cpu_workers + index;
        let worker = ModuleWorker::new(shared, number, module);
        spawn(scope, format!("evener-module-{index}"), shared, Some(number), move || worker.run());
    }
    if shared.plan.dispatch == Dispatch::Monitor {
        spawn(scope, "evener-monitor".to_owned(), shared, None, move || monitor::run(shared));
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
        self.shared.adopt(&mut core_drivers);
        let number = self.shared.callers.fetch_add(1, Ordering::Relaxed);
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
            .completions
            .iter()
            .position(Completions::acquire)
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

fn spawn<'scope, 'm>(
    scope: &'scope Scope<'scope, '_>,
    name: String,
    shared: &'scope Shared<'m>,
    worker: Option<usize>,
    body: impl FnOnce() + Send + 'scope,
) {
    let started = thread::Builder::new().name(name).spawn_scoped(scope, move || {
        let _leaving = Leaving { shared, worker };
        body();
    });
    started.expect("the system has room for a few threads");
}
