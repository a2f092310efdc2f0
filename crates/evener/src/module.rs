//! The thread that serves one module: it keeps as many requests outstanding as the module takes, checks a
//! sample of the results, redoes on the CPU what the module failed, and takes the module out of service when
//! it lies, hangs or goes away.
//!
//! `claim -> submit -> poll -> (check) -> home`, and `-> redo -> home` where the module failed.

use evener_core::plan::Dispatch;
use evener_core::{Job, JobError, Nanos, Outcome, Profile, QueuedDriver, Refusal, Sample, Tally};

use crate::cpu::count;
use crate::monitor::tell_free;
use crate::report::{ModuleReport, Quarantine, WorkerReport};
use crate::runtime::Shared;
use crate::shadow::Shadow;
use crate::{CpuKit, ModuleSetup};

/// Errors in a row after which a module is out of service. A guess.
const ERRORS_MAX: u32 = 8;

/// Longest sleep while the module could take more jobs than wait for it, so that new ones are not kept long.
const GLANCE: Nanos = Nanos::from_millis(1);

/// A module's thread before it runs.
pub(crate) struct ModuleWorker<'r, 'm> {
    shared: &'r Shared<'m>,
    desk: usize,
    driver: Box<dyn QueuedDriver<'m> + 'm>,
    redo: CpuKit,
    patience: Nanos,
    shadow: Shadow<'m>,
    tally: Tally,
    quarantine: Option<Quarantine>,
    errors_in_row: u32,
    /// Claimed, refused for now.
    claimed: Vec<Box<Job<'m>>>,
    /// When the module last finished something or was handed the first of what it holds.
    progress: Nanos,
    /// Time in which it held something.
    busy: Nanos,
}

impl<'r, 'm> ModuleWorker<'r, 'm> {
    pub(crate) fn new(shared: &'r Shared<'m>, desk: usize, setup: ModuleSetup<'m>) -> Self {
        Self {
            shared,
            desk,
            driver: setup.driver,
            redo: setup.redo,
            patience: setup.patience,
            shadow: Shadow::new(setup.check_every),
            tally: Tally::default(),
            quarantine: None,
            errors_in_row: 0,
            claimed: Vec::new(),
            progress: Nanos::ZERO,
            busy: Nanos::ZERO,
        }
    }

    /// Serves the module until no more jobs will come.
    pub(crate) fn run(mut self) {
        let core_start = self.shared.clock.thread_time();
        while self.quarantine.is_none() && self.serve() {}
        let core = self.shared.clock.thread_time() - core_start;
        // All of it is known, so the sample is the whole: `d` per job is core / jobs, redone jobs included.
        self.tally.sample(Sample { jobs: self.tally.jobs, bytes: self.tally.bytes, core, wall: self.busy });
        if self.quarantine.is_some() && self.is_needed_without_module() {
            self.work_as_core();
        }
        self.report();
    }

    /// One round. `false` when all is done.
    fn serve(&mut self) -> bool {
        if self.driver.in_flight() == 0 {
            self.shared.barrier();
        }
        let submitted = self.fill();
        if self.driver.in_flight() > 0 {
            self.collect();
        } else if submitted == 0 && self.claimed.is_empty() && self.quarantine.is_none() {
            if self.shared.backlog.is_over(self.desk) {
                return false;
            }
            tell_free(self.shared, self.desk);
            self.shared.backlog.wait_for_work(self.desk);
        }
        true
    }

    /// Hands jobs over while the module takes them and jobs wait; returns how many were claimed.
    fn fill(&mut self) -> usize {
        let mut claimed = 0;
        while self.driver.in_flight() < self.width() && self.quarantine.is_none() {
            let take = &self.shared.plan.module;
            if self.claimed.is_empty() {
                claimed += self.shared.backlog.claim(Some(self.desk), take, &mut self.claimed);
            }
            let Some(job) = self.claimed.pop() else { break };
            if !self.hand_over(job) {
                break;
            }
        }
        claimed
    }

    fn width(&self) -> usize {
        self.driver.profile().width.max(1) as usize
    }

    /// Hands one job to the module, or to the CPU where the module cannot do it. `false` where the module
    /// takes no more now.
    fn hand_over(&mut self, mut job: Box<Job<'m>>) -> bool {
        let session = job.session();
        if self.shared.cancel.is_cancelled() {
            job.fail(JobError::Cancelled);
            self.finish(job);
            return true;
        }
        if !self.driver.supports(session.algorithm(), session.direction()) {
            self.shared.run_on_core(&mut self.redo, &mut vec![job]);
            return true;
        }
        if self.driver.in_flight() == 0 {
            self.progress = self.shared.clock.now();
        }
        self.shadow.before(&job);
        match self.driver.submit(job) {
            Ok(()) => true,
            Err((job, refusal)) => {
                self.refused(job, refusal);
                false
            }
        }
    }

    fn refused(&mut self, job: Box<Job<'m>>, refusal: Refusal) {
        self.claimed.push(job);
        if refusal != Refusal::Full {
            self.take_out_of_service(Quarantine::Lost);
        }
    }

    /// Waits for results and settles them.
    fn collect(&mut self) {
        let full = self.driver.in_flight() >= self.width();
        let silent = self.shared.clock.now() - self.progress;
        let left = self.patience - silent;
        let mut done = Vec::new();
        self.driver.poll(&mut done, if full { left } else { left.min(GLANCE) });
        let now = self.shared.clock.now();
        if done.is_empty() {
            if now - self.progress >= self.patience {
                self.busy += now - self.progress;
                self.take_out_of_service(Quarantine::Hung);
            }
            return;
        }
        self.busy += now - self.progress;
        self.progress = now;
        done.into_iter().for_each(|job| self.settle(job));
    }

    /// Sends one result home: as it is, corrected, or redone.
    fn settle(&mut self, mut job: Box<Job<'m>>) {
        let is_right = self.shadow.after(&mut job, &mut self.redo);
        match job.outcome() {
            Outcome::Failed(error) if error.is_the_modules_fault() => {
                self.redo(job);
                self.count_error(error);
            }
            _ => {
                self.errors_in_row = 0;
                self.finish(job);
            }
        }
        if !is_right {
            self.take_out_of_service(Quarantine::WrongResult);
        }
    }

    fn count_error(&mut self, error: JobError) {
        self.errors_in_row += 1;
        if error == JobError::ModuleLost {
            self.take_out_of_service(Quarantine::Lost);
        } else if self.errors_in_row >= ERRORS_MAX {
            self.take_out_of_service(Quarantine::Errors(error));
        }
    }

    fn finish(&mut self, job: Box<Job<'m>>) {
        let mut finished = vec![job];
        count(&mut self.tally, &finished);
        self.shared.bring_home(&mut finished);
    }

    /// Redoes a job on the CPU, from the same bytes: the driver has not touched them.
    fn redo(&mut self, mut job: Box<Job<'m>>) {
        job.retry();
        self.redo.count_redone(1);
        self.shared.run_on_core(&mut self.redo, &mut vec![job]);
    }

    /// Gives the module no more jobs and redoes what it holds.
    fn take_out_of_service(&mut self, reason: Quarantine) {
        self.quarantine.get_or_insert(reason);
        let mut given_back = std::mem::take(&mut self.claimed);
        self.driver.abandon(&mut given_back);
        self.shadow.forget_all();
        given_back.into_iter().for_each(|job| self.redo(job));
    }

    /// Whether jobs come to this desk that nobody else would take.
    fn is_needed_without_module(&self) -> bool {
        self.shared.plan.dispatch != Dispatch::Pull || self.shared.plan.cpu.jobs_max == 0
    }

    /// Does on the CPU what is meant for the module, which is out of service. Counted under this worker's name.
    fn work_as_core(&mut self) {
        let (shared, mut burst) = (self.shared, Vec::new());
        loop {
            shared.barrier();
            if shared.backlog.claim(Some(self.desk), &shared.plan.module, &mut burst) > 0 {
                self.redo.count_redone(burst.len() as u64);
                shared.run_on_core(&mut self.redo, &mut burst);
            } else if shared.backlog.is_over(self.desk) {
                break;
            } else {
                tell_free(shared, self.desk);
                shared.backlog.wait_for_work(self.desk);
            }
        }
    }

    fn report(mut self) {
        let Profile { name, .. } = self.driver.profile().clone();
        let methods = self.redo.take_tallies();
        let module =
            ModuleReport { tally: self.tally, checked: self.shadow.checked, quarantine: self.quarantine };
        self.shared.report(WorkerReport { name, methods, module: Some(module) });
    }
}
