//! The thread that serves one module: it keeps as many requests outstanding as the module takes, checks a sample of the results, redoes
//! on the CPU what the module failed, and takes the module out of service when it lies, hangs or goes away.
//!
//! What it is in the literature: an event loop over one device with a bounded window of requests (as of NVMe's queue depth), and a
//! watchdog. Where the device is given up the thread goes on as a core's worker.
//!
//! | state of the module | what the thread does | ends when |
//! |---|---|---|
//! | idle | sleeps on the backlog's bell | jobs come: claims and submits |
//! | busy | fills the window, polls, settles what came | nothing is in flight; silence beyond the deadline, errors in a row, a wrong result: out of service |
//! | out of service | redoes what the module held, then runs its queue on the core where no other worker would | the run ends |
//!
//! One job: `claim (claim.rs) -> submit -> poll (window.rs) -> (verify: verifier.rs) -> complete` (settlement.rs), and `-> redo -> complete` where the module failed.
//! What results took goes to the adaptive policy ([`Feedback`], feedback.rs).

mod claim;
mod feedback;
mod pending_samples;
mod settlement;
pub(crate) mod turns;
mod window;

use std::sync::{Arc, Mutex, PoisonError};

use evener_core::plan::Dispatch;
use evener_core::{Job, Nanos, Outcome, Profile, QueuedDriver, Sample, Tally};

use self::feedback::{Batch, Feedback};
use self::turns::Turns;
use crate::adaptive::WorkerKind;
use crate::state::report::{ModuleReport, Quarantine};
use crate::state::{CoreTimeMeter, Shared};
use crate::worker::verifier::Verifier;
use crate::{CoreDrivers, ModuleSetup};

/// Longest sleep while the module could take more jobs than wait for it, so that new ones are not kept long.
const GLANCE: Nanos = Nanos::from_millis(1);

/// A module's thread before it runs.
pub(crate) struct ModuleWorker<'r, 'm> {
    shared: &'r Shared<'m>,
    worker: usize,
    driver: Box<dyn QueuedDriver<'m> + 'm>,
    fallback: CoreDrivers,
    /// Silence after which the module is taken for dead where nothing is known of what it holds.
    timeout: Nanos,
    /// The same for what it holds, by what costs say; only ever less.
    deadline: Nanos,
    verifier: Verifier<'m>,
    tally: Tally,
    quarantine: Option<Quarantine>,
    errors_in_row: u32,
    /// Claimed, refused for now.
    claimed: Vec<Box<Job<'m>>>,
    /// Just come back from the module.
    done: Vec<Box<Job<'m>>>,
    /// One job on its way, kept for its memory.
    single: Vec<Box<Job<'m>>>,
    /// When the module last finished something or was first offered what it was given while it held nothing.
    progress: Nanos,
    /// Time in which it held something.
    busy: Nanos,
    /// Core time of the driver's own threads when the run began.
    driver_start: Nanos,
    /// Core time spent standing at the barrier of a measurement.
    barrier_time: Nanos,
    /// What the adaptive policy learns of results, where it is in force.
    feedback: Option<Feedback<'r, 'm>>,
    /// For the adaptive policy: how long this worker may wait though jobs wait.
    claim_wait: Option<Nanos>,
    meter: CoreTimeMeter,
    /// Turns at the module, where other processes have it, too.
    turns: Turns,
    /// What reports see of it while the run goes on, where they may be asked for.
    live: Option<Arc<Mutex<ModuleReport>>>,
}

impl<'r, 'm> ModuleWorker<'r, 'm> {
    pub(crate) fn new(shared: &'r Shared<'m>, worker: usize, setup: ModuleSetup<'m>) -> Self {
        let mut fallback = setup.redo;
        let name = setup.driver.profile().name.clone();
        let live = shared.adopt_module(&mut fallback, &name);
        Self {
            shared,
            worker,
            driver: setup.driver,
            fallback,
            timeout: setup.timeout,
            deadline: setup.timeout,
            verifier: Verifier::new(setup.check_every),
            tally: Tally::default(),
            quarantine: None,
            errors_in_row: 0,
            claimed: Vec::new(),
            done: Vec::new(),
            single: Vec::new(),
            progress: Nanos::ZERO,
            busy: Nanos::ZERO,
            driver_start: Nanos::ZERO,
            barrier_time: Nanos::ZERO,
            feedback: Feedback::new(shared, worker - shared.cpu_workers),
            claim_wait: None,
            meter: CoreTimeMeter::default(),
            turns: Turns::new(setup.shared),
            live,
        }
    }

    /// Serves the module until no more jobs will come.
    pub(crate) fn run(mut self) {
        let core_start = self.core_time();
        self.driver_start = self.driver.core_time();
        self.mark_core();
        while self.quarantine.is_none() && self.serve() {}
        let core = self.core_time() - core_start - self.barrier_time;
        // All of it is known, so the sample is the whole: `d` per job is core / jobs, redone jobs included.
        self.tally.sample(Sample { jobs: self.tally.jobs, bytes: self.tally.bytes, core, wall: self.busy });
        if self.quarantine.is_some() && self.is_needed_without_module() {
            self.shared.work_as_core(self.worker, &self.shared.plan.module, &mut self.fallback);
        }
        self.report();
    }

    /// One round. `false` when all is done.
    fn serve(&mut self) -> bool {
        self.shared.backlog.poll_ended(self.worker, |has_ended| {
            self.driver.evict(has_ended);
            self.fallback.evict(has_ended);
        });
        if self.holds_nothing() {
            self.turns.rest();
            self.stop_at_barrier();
            self.shared.wait_for_budget(&mut self.meter);
        }
        if !self.works() && self.quarantine.is_none() {
            if self.shared.backlog.is_over(self.worker) {
                return false;
            }
            if let Some(feedback) = &mut self.feedback {
                feedback.rest();
            }
            let adaptive = self.shared.adaptive.as_ref();
            let has_news =
                || adaptive.is_some_and(|adaptive| adaptive.alternation.has_changed(WorkerKind::Module));
            self.shared.backlog.wait_for_work(self.worker, self.claim_wait, has_news);
            self.mark_core();
        }
        true
    }

    /// Hands over and takes back what there is; `false` where there is neither.
    fn works(&mut self) -> bool {
        let has_claimed = self.fill();
        let has_any = !self.holds_nothing();
        if has_any {
            self.collect();
        }
        has_claimed || has_any
    }

    fn holds_nothing(&self) -> bool {
        self.driver.in_flight() == 0 && self.claimed.is_empty()
    }

    /// The time at the barrier is no cost of the module's. Under the adaptive policy this thread sleeps instead
    /// (`Backlog::is_left_asleep`).
    fn stop_at_barrier(&mut self) {
        if self.shared.backlog.is_held() && self.shared.adaptive.is_none() {
            let start = self.shared.clock.thread_time();
            self.shared.backlog.stop_at_barrier(self.worker);
            self.barrier_time += self.shared.clock.thread_time() - start;
        }
    }

    /// Tells the policy what came back, and wakes cores where it says so.
    fn record_results(&mut self, now: Nanos) {
        let (in_flight, width) = (self.driver.in_flight(), self.width());
        let Some(feedback) = &mut self.feedback else { return };
        let batch = Batch { done: &self.done, in_flight, width, passed: now - self.progress, now };
        let core_time = || path_core(self.shared, &*self.driver, self.barrier_time);
        if feedback.record(&batch, core_time) {
            self.shared.backlog.wake_cores();
        }
    }

    /// Core time of this thread that was none of the module's path.
    fn exclude(&mut self, core: Nanos) {
        let Some(feedback) = &mut self.feedback else { return };
        let core_time = || path_core(self.shared, &*self.driver, self.barrier_time);
        self.progress += feedback.exclude(core, core_time);
    }

    /// What follows is the module's path again.
    fn mark_core(&mut self) {
        let Some(feedback) = &mut self.feedback else { return };
        feedback.mark_core(path_core(self.shared, &*self.driver, self.barrier_time));
    }

    /// Core time of this thread and of the driver's own.
    fn core_time(&self) -> Nanos {
        self.shared.clock.thread_time() + self.driver.core_time()
    }

    /// Whether jobs come to this queue that no other worker would take.
    fn is_needed_without_module(&self) -> bool {
        let plan = &self.shared.plan;
        !matches!(plan.dispatch, Dispatch::SharedQueue | Dispatch::ByCost)
            || plan.cpu.jobs_max == 0
            || self.shared.cpu_workers == 0
    }

    fn report_so_far(&self) -> ModuleReport {
        ModuleReport {
            tally: self.tally,
            driver_core: self.driver.core_time() - self.driver_start,
            checked: self.verifier.checked,
            quarantine: self.quarantine,
        }
    }

    /// Lets reports see what was done so far, before the jobs' owners do.
    fn publish(&self) {
        if let Some(live) = &self.live {
            *live.lock().unwrap_or_else(PoisonError::into_inner) = self.report_so_far();
        }
    }

    fn report(mut self) {
        let Profile { name, .. } = self.driver.profile().clone();
        let module = self.report_so_far();
        self.shared.report(name, &mut self.fallback, Some(module));
    }
}

/// Core time of the module's path: this thread's, but for what it stood at a barrier, and that of the driver's own threads.
fn path_core<'m>(shared: &Shared<'m>, driver: &(dyn QueuedDriver<'m> + 'm), barrier_time: Nanos) -> Nanos {
    shared.clock.thread_time() + driver.core_time() - barrier_time
}

/// Whether the module failed it, and not what it was given.
fn is_failed(job: &Job<'_>) -> bool {
    matches!(job.outcome(), Outcome::Failed(error) if error.is_the_modules_fault())
}

#[cfg(test)]
mod tests;
