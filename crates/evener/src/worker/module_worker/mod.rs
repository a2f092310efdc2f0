//! The thread that serves one module: it keeps as many requests outstanding as the module takes, checks a
//! sample of the results, redoes on the CPU what the module failed, and takes the module out of service when
//! it lies, hangs or goes away.
//!
//! `claim (claim.rs) -> submit -> poll -> (verify) -> complete`, and `-> redo -> complete` where the module failed. What results took goes
//! to the adaptive policy (feedback.rs).

mod claim;
mod feedback;
mod pending_samples;

use std::thread;

use evener_core::plan::Dispatch;
use evener_core::{Job, JobError, Nanos, Outcome, Profile, QueuedDriver, Refusal, Sample, Tally};

use self::feedback::FeedbackState;
use crate::adaptive::WorkerKind;
use crate::cpu::{count, is_module_only};
use crate::module_limits::ERRORS_MAX;
use crate::state::report::{ModuleReport, Quarantine, WorkerReport};
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
    /// For the adaptive policy: what results took.
    feedback: FeedbackState,
    /// For the adaptive policy: how long this worker may wait though jobs wait.
    claim_wait: Option<Nanos>,
    meter: CoreTimeMeter,
}

impl<'r, 'm> ModuleWorker<'r, 'm> {
    pub(crate) fn new(shared: &'r Shared<'m>, worker: usize, setup: ModuleSetup<'m>) -> Self {
        let mut fallback = setup.redo;
        shared.adopt(&mut fallback);
        let overhead =
            shared.adaptive.as_ref().map(|adaptive| adaptive.overhead(worker - shared.cpu_workers));
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
            feedback: FeedbackState::new(overhead.unwrap_or_default()),
            claim_wait: None,
            meter: CoreTimeMeter::default(),
        }
    }

    /// Serves the module until no more jobs will come.
    pub(crate) fn run(mut self) {
        let core_start = self.core_time();
        self.driver_start = self.driver.core_time();
        self.feedback.core_mark = core_start;
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
            self.driver.forget(has_ended);
            self.fallback.forget(has_ended);
        });
        if self.holds_nothing() {
            self.stop_at_barrier();
            self.shared.wait_for_budget(&mut self.meter);
        }
        if !self.works() && self.quarantine.is_none() {
            if self.shared.backlog.is_over(self.worker) {
                return false;
            }
            self.feedback.since_idle = 0;
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

    /// Hands jobs over while the module takes them and jobs wait; returns whether any was claimed.
    fn fill(&mut self) -> bool {
        let mut has_claimed = false;
        while self.driver.in_flight() < self.width() && self.quarantine.is_none() {
            has_claimed |= self.claimed.is_empty() && self.claim();
            let Some(job) = self.claimed.pop() else { break };
            if !self.hand_over(job) {
                break;
            }
        }
        has_claimed
    }

    fn width(&self) -> usize {
        self.driver.profile().width.max(1) as usize
    }

    /// The number of the module among its like.
    fn module(&self) -> usize {
        self.worker - self.shared.cpu_workers
    }

    /// Hands one job to the module, or to the CPU where it is not for the module. `false` where the module
    /// takes no more now.
    fn hand_over(&mut self, job: Box<Job<'m>>) -> bool {
        let session = job.session();
        let is_for_module = self.driver.supports(session.algorithm(), session.direction())
            && job.lengths_fit()
            && !self.shared.cancel.is_cancelled();
        if !is_for_module {
            self.run_on_core(job);
            return true;
        }
        self.verifier.capture(&job);
        let class = job.class();
        match self.driver.submit(job) {
            Ok(()) => {
                if let (Some(adaptive), 1) = (&self.shared.adaptive, self.driver.in_flight()) {
                    adaptive.set_oldest(self.module(), Some((class, self.shared.clock.now())));
                }
                true
            }
            Err((job, refusal)) => {
                self.refused(job, refusal);
                false
            }
        }
    }

    fn refused(&mut self, job: Box<Job<'m>>, refusal: Refusal) {
        self.verifier.drop_capture(&job);
        self.claimed.push(job);
        if refusal != Refusal::Full {
            self.take_out_of_service(Quarantine::Lost);
        }
    }

    /// Waits for results and settles them.
    fn collect(&mut self) {
        let silent = self.shared.clock.now() - self.progress;
        let left = self.deadline - silent;
        match self.driver.in_flight() {
            // It refuses jobs though it holds none: no result would end a poll.
            0 => thread::sleep(left.min(GLANCE).into()),
            held if held < self.width() => _ = self.driver.poll(&mut self.done, left.min(GLANCE)),
            _ => _ = self.driver.poll(&mut self.done, left),
        }
        if !self.done.is_empty() {
            self.settle_all();
        } else if left == Nanos::ZERO {
            // It had no time left before it was asked once more: a thread that the system kept from running
            // says nothing against the module.
            self.busy += silent;
            self.take_out_of_service(Quarantine::Hung);
        }
    }

    /// Settles all that came before the module is judged, because all that is to be checked is checked.
    fn settle_all(&mut self) {
        let now = self.shared.clock.now();
        let has_failed = self.done.iter().any(|job| is_failed(job));
        self.record_results(now);
        self.busy += now - self.progress;
        self.progress = now;
        let mut done = std::mem::take(&mut self.done);
        let verdicts: Vec<_> = done.drain(..).filter_map(|job| self.settle(job)).collect();
        self.done = done;
        if has_failed && !cfg!(mutant = "redoing_is_the_modules") {
            // Nor is what was redone. The module may have been done long since with what it held meanwhile.
            self.mark_core();
            self.feedback.excluded_time = self.shared.clock.now() - now;
        }
        if let Some(&first) = verdicts.first() {
            self.take_out_of_service(first);
        }
    }

    /// Core time of this thread and of the driver's own.
    fn core_time(&self) -> Nanos {
        self.shared.clock.thread_time() + self.driver.core_time()
    }

    /// Completes one result: as it is, corrected, or redone. Returns what it says against the module.
    fn settle(&mut self, mut job: Box<Job<'m>>) -> Option<Quarantine> {
        if !self.is_right_or_unchecked(&mut job) {
            self.fallback.count_corrected(&job);
            self.complete(job);
            return Some(Quarantine::WrongResult);
        }
        match job.outcome() {
            Outcome::Failed(error) if is_failed(&job) => {
                self.redo(job);
                if error == JobError::ModuleFull { None } else { self.count_error(error) }
            }
            _ => {
                self.errors_in_row = 0;
                self.tally.bursts += 1;
                count(&mut self.tally, &job);
                self.complete(job);
                None
            }
        }
    }

    /// Compares a result that is to be checked, and puts the right one in its place where it is wrong. What that costs a core is no
    /// cost of the module's path.
    fn is_right_or_unchecked(&mut self, job: &mut Job<'m>) -> bool {
        if !self.verifier.is_to_check(job) {
            return true;
        }
        let start = self.shared.clock.thread_time();
        let is_right = self.verifier.verify(job, &mut self.fallback);
        self.exclude(self.shared.clock.thread_time() - start);
        is_right
    }

    fn count_error(&mut self, error: JobError) -> Option<Quarantine> {
        self.errors_in_row += 1;
        match error {
            JobError::ModuleLost => Some(Quarantine::Lost),
            _ => (self.errors_in_row >= ERRORS_MAX).then_some(Quarantine::Errors(error)),
        }
    }

    fn complete(&mut self, job: Box<Job<'m>>) {
        self.single.push(job);
        self.shared.complete(&mut self.single);
    }

    fn run_on_core(&mut self, job: Box<Job<'m>>) {
        self.single.push(job);
        self.shared.run_on_core(&mut self.fallback, &mut self.single);
    }

    /// Redoes a job on the CPU, from the same bytes: the driver has not touched them. One that is for modules only fails.
    fn redo(&mut self, mut job: Box<Job<'m>>) {
        if is_module_only(&job) {
            count(&mut self.tally, &job);
            return self.complete(job);
        }
        job.retry();
        self.fallback.count_redone();
        self.single.push(job);
        self.shared.redo(&mut self.fallback, &mut self.single);
    }

    /// Gives the module no more jobs and redoes what it holds.
    fn take_out_of_service(&mut self, reason: Quarantine) {
        self.quarantine.get_or_insert(reason);
        if let Some(adaptive) = &self.shared.adaptive {
            adaptive.set_lost(self.module());
            adaptive.set_idle(self.worker);
            adaptive.set_oldest(self.module(), None);
            // What callers gave it: after `lost`, so that none is put here any more that no worker would find.
            self.claimed.extend(std::iter::from_fn(|| self.shared.backlog.pop_given(self.worker)));
        }
        self.shared.backlog.leave_service(self.worker);
        self.claimed.extend(std::iter::from_fn(|| self.shared.backlog.pop_module_only(self.worker)));
        let mut given_back = Vec::new();
        self.driver.abandon(&mut given_back);
        self.verifier.clear();
        given_back.into_iter().for_each(|job| self.redo(job));
        std::mem::take(&mut self.claimed).into_iter().for_each(|job| self.run_on_core(job));
    }

    /// Whether jobs come to this queue that no other worker would take.
    fn is_needed_without_module(&self) -> bool {
        let plan = &self.shared.plan;
        !matches!(plan.dispatch, Dispatch::SharedQueue | Dispatch::ByCost)
            || plan.cpu.jobs_max == 0
            || self.shared.cpu_workers == 0
    }

    fn report(mut self) {
        let Profile { name, .. } = self.driver.profile().clone();
        let methods = self.fallback.take_tallies();
        let module = ModuleReport {
            tally: self.tally,
            driver_core: self.driver.core_time() - self.driver_start,
            checked: self.verifier.checked,
            quarantine: self.quarantine,
        };
        self.shared.report(WorkerReport { name, methods, module: Some(module) });
    }
}

/// Whether the module failed it, and not what it was given.
fn is_failed(job: &Job<'_>) -> bool {
    matches!(job.outcome(), Outcome::Failed(error) if error.is_the_modules_fault())
}

#[cfg(test)]
mod tests;
