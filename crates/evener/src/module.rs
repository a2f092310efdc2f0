//! The thread that serves one module: it keeps as many requests outstanding as the module takes, checks a
//! sample of the results, redoes on the CPU what the module failed, and takes the module out of service when
//! it lies, hangs or goes away.
//!
//! `claim -> submit -> poll -> (check) -> home`, and `-> redo -> home` where the module failed.

use std::thread;

use evener_core::cost::Line;
use evener_core::estimate::ModuleSample;
use evener_core::plan::Dispatch;
use evener_core::{Job, JobError, Nanos, Outcome, Profile, QueuedDriver, Refusal, Sample, Tally};

use crate::cpu::{count, is_bound};
use crate::keys::Sessions;
use crate::report::{ModuleReport, Quarantine, WorkerReport};
use crate::runtime::{Meter, Shared};
use crate::shadow::Shadow;
use crate::unseen::all_of_passed;
use crate::untold::{Part, Untold};
use crate::weigh::{Seen, Weigher};
use crate::{CpuKit, ModuleSetup, SystemClock};

/// Errors in a row after which a module is out of service. A guess.
const ERRORS_MAX: u32 = 8;

/// Longest sleep while the module could take more jobs than wait for it, so that new ones are not kept long.
const GLANCE: Nanos = Nanos::from_millis(1);

/// Times that a request may take longer than it is known to, before the module is taken for dead: a module that was slowed
/// down tenfold is not dead. A guess.
pub(crate) const TIMES_EXPECTED: u64 = 64;

/// Least silence that counts as death, whatever a request is known to take: a machine may stand still for a while. A guess.
pub(crate) const SILENCE_MIN: Nanos = Nanos::from_millis(500);

/// A module's thread before it runs.
pub(crate) struct ModuleWorker<'r, 'm> {
    shared: &'r Shared<'m>,
    desk: usize,
    driver: Box<dyn QueuedDriver<'m> + 'm>,
    redo: CpuKit,
    /// Silence after which the module is taken for dead where nothing is known of what it holds.
    patience: Nanos,
    /// The same for what it holds, by what costs say; only ever less.
    deadline: Nanos,
    shadow: Shadow<'m>,
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
    /// Core time spent standing at the barrier of a measurement.
    stood: Nanos,
    /// For the adaptive policy: the thread's clock, less `stood`, when results were last taken in.
    core_mark: Nanos,
    /// For the adaptive policy on one core: core time of this process when results were last taken in.
    process_mark: Nanos,
    /// For the adaptive policy: sessions of which the module has had a request.
    sessions: Sessions,
    /// For the adaptive policy: what clocks do not show of a request.
    unseen: Line,
    /// For the adaptive policy: results since there was nothing for the module.
    since_idle: usize,
    /// For the adaptive policy on one core: how often that had changed between work and rest at the last results, if it rested.
    core_rested: Option<u32>,
    /// For the adaptive policy: results of which it was not told yet.
    untold: Untold,
    /// For the adaptive policy: how long this worker may wait though jobs wait.
    patience_to_claim: Option<Nanos>,
    meter: Meter,
}

impl<'r, 'm> ModuleWorker<'r, 'm> {
    pub(crate) fn new(shared: &'r Shared<'m>, desk: usize, setup: ModuleSetup<'m>) -> Self {
        let mut redo = setup.redo;
        shared.adopt(&mut redo);
        Self {
            shared,
            desk,
            driver: setup.driver,
            redo,
            patience: setup.patience,
            deadline: setup.patience,
            shadow: Shadow::new(setup.check_every),
            tally: Tally::default(),
            quarantine: None,
            errors_in_row: 0,
            claimed: Vec::new(),
            done: Vec::new(),
            single: Vec::new(),
            progress: Nanos::ZERO,
            busy: Nanos::ZERO,
            stood: Nanos::ZERO,
            core_mark: Nanos::ZERO,
            process_mark: Nanos::ZERO,
            sessions: Sessions::default(),
            unseen: shared
                .weigher
                .as_ref()
                .map_or_else(Line::default, |it| it.unseen(desk - shared.cpu_workers)),
            since_idle: 0,
            core_rested: None,
            untold: Untold::default(),
            patience_to_claim: None,
            meter: Meter::default(),
        }
    }

    /// Serves the module until no more jobs will come.
    pub(crate) fn run(mut self) {
        let core_start = self.core_time();
        self.core_mark = core_start;
        while self.quarantine.is_none() && self.serve() {}
        let core = self.core_time() - core_start - self.stood;
        // All of it is known, so the sample is the whole: `d` per job is core / jobs, redone jobs included.
        self.tally.sample(Sample { jobs: self.tally.jobs, bytes: self.tally.bytes, core, wall: self.busy });
        if self.quarantine.is_some() && self.is_needed_without_module() {
            self.shared.work_as_core(self.desk, &self.shared.plan.module, &mut self.redo);
        }
        self.report();
    }

    /// One round. `false` when all is done.
    fn serve(&mut self) -> bool {
        self.shared.backlog.tell_ended(self.desk, |is_over| {
            self.driver.forget(is_over);
            self.redo.forget(is_over);
        });
        if self.holds_nothing() {
            self.stop_at_barrier();
            self.shared.keep_budget(&mut self.meter);
        }
        let has_claimed = self.fill();
        if !self.holds_nothing() {
            self.collect();
        } else if !has_claimed && self.quarantine.is_none() {
            if self.shared.backlog.is_over(self.desk) {
                return false;
            }
            self.since_idle = 0;
            self.shared.backlog.wait_for_work(self.desk, self.patience_to_claim);
            self.mark_core();
        }
        true
    }

    fn holds_nothing(&self) -> bool {
        self.driver.in_flight() == 0 && self.claimed.is_empty()
    }

    /// The time at the barrier is no cost of the module's. Under the adaptive policy this thread sleeps instead
    /// (`Backlog::is_left_asleep`).
    fn stop_at_barrier(&mut self) {
        if self.shared.backlog.is_held() && self.shared.weigher.is_none() {
            let start = self.shared.clock.thread_time();
            self.shared.backlog.stop_at_barrier(self.desk);
            self.stood += self.shared.clock.thread_time() - start;
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

    /// Claims what the plan gives the module, unless workers are to stop before their next claim.
    fn claim(&mut self) -> bool {
        let shared = self.shared;
        let may = !shared.backlog.is_held() && shared.charge(&mut self.meter).is_ok();
        let has_claimed = may && (self.claim_bound() || self.claim_by_plan());
        if has_claimed && self.driver.in_flight() == 0 {
            self.progress = shared.clock.now();
        }
        has_claimed
    }

    /// Claims a job that only this module may do.
    fn claim_bound(&mut self) -> bool {
        let shared = self.shared;
        let Some(job) = shared.backlog.take_bound(self.desk) else { return false };
        match &shared.weigher {
            Some(weigher) => self.claim_single(weigher, job, shared.clock.now()),
            None => {
                self.expect(Nanos::ZERO);
                self.claimed.push(job);
            }
        }
        true
    }

    fn claim_single(&mut self, weigher: &Weigher, job: Box<Job<'m>>, now: Nanos) {
        let claim = weigher.single(self.module(), self.shared.backlog.lanes(), job.class(), now);
        weigher.begins(self.desk, &claim, 1, now);
        self.expect(claim.each());
        self.claimed.push(job);
    }

    fn claim_by_plan(&mut self) -> bool {
        let (shared, take) = (self.shared, &self.shared.plan.module);
        let Some(weigher) = &shared.weigher else {
            return shared.backlog.claim(Some(self.desk), take, &mut self.claimed) > 0;
        };
        let (lanes, now) = (shared.backlog.lanes(), shared.clock.now());
        if let Some(job) = shared.backlog.take_given(self.desk) {
            self.claim_single(weigher, job, now);
            return true;
        }
        match weigher.module_takes(self.module(), lanes, now) {
            Ok(claim) => {
                self.patience_to_claim = Some(Nanos::ZERO);
                let claimed = shared.backlog.claim_of(claim.lane, take, claim.jobs_max, &mut self.claimed);
                if claimed > 0 {
                    weigher.begins(self.desk, &claim, claimed, now);
                    self.expect(claim.each());
                }
                claimed > 0
            }
            Err(patience) => {
                self.patience_to_claim = Some(patience);
                if self.driver.in_flight() == 0 && weigher.has_turn() {
                    weigher.module_is_drained(lanes, now);
                    // It may be the core's, which may be asleep.
                    shared.backlog.wake_cores();
                }
                false
            }
        }
    }

    /// Allows the module what it takes by what is known of it: all that it may hold, each many times as long as expected. Of
    /// jobs held together the longest counts.
    fn expect(&mut self, each: Nanos) {
        let allowed = match each {
            Nanos::ZERO => self.patience,
            each => {
                let all = Nanos(each.0.saturating_mul(TIMES_EXPECTED * self.width() as u64));
                all.max(SILENCE_MIN).min(self.patience)
            }
        };
        let is_alone = self.driver.in_flight() == 0;
        self.deadline = if is_alone { allowed } else { self.deadline.max(allowed) };
    }

    /// The number of the module among its like.
    fn module(&self) -> usize {
        self.desk - self.shared.cpu_workers
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
        self.shadow.before(&job);
        let class = job.class();
        match self.driver.submit(job) {
            Ok(()) => {
                if let (Some(weigher), 1) = (&self.shared.weigher, self.driver.in_flight()) {
                    weigher.holds(self.module(), Some((class, self.shared.clock.now())));
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
        self.shadow.forget(&job);
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
            // blames nobody.
            self.busy += silent;
            self.take_out_of_service(Quarantine::Hung);
        }
    }

    /// Settles all that came before the module is judged, because all that is to be checked is checked.
    fn settle_all(&mut self) {
        let now = self.shared.clock.now();
        self.teach(now);
        self.busy += now - self.progress;
        self.progress = now;
        let mut done = std::mem::take(&mut self.done);
        let checked = self.shadow.checked;
        let verdicts: Vec<_> = done.drain(..).filter_map(|job| self.settle(job)).collect();
        self.done = done;
        if self.shadow.checked != checked {
            // What a check costs a core is no cost of the module's path.
            self.mark_core();
            self.untold = Untold::default();
        }
        if let Some(&first) = verdicts.first() {
            self.take_out_of_service(first);
        }
    }

    /// Tells the adaptive policy what the jobs took that have just come back, some of them together.
    fn teach(&mut self, now: Nanos) {
        let shared = self.shared;
        let Some(weigher) = &shared.weigher else { return };
        let core_rests = weigher.core_rests();
        let opened_key = self.sessions.opened_key(self.done.iter().map(|job| job.session().id()));
        let is_busy = self.driver.in_flight() > 0;
        let held = self.driver.in_flight() + self.done.len();
        let class = self.done[0].class();
        let is_sound =
            self.done.iter().all(|job| job.class() == class && matches!(job.outcome(), Outcome::Done { .. }));
        if is_sound {
            let is_full = held >= self.width() && self.since_idle >= self.width();
            // Where turns are taken nothing is believed but of a core that rests.
            let rested = core_rests.is_some() && core_rests == self.core_rested;
            self.untold.add(Part {
                class,
                held: held as u64,
                is_alone: is_full && !opened_key && rested,
                opened_key,
                jobs: self.done.len() as u64,
                bytes: self.done.iter().map(|job| job.input_bytes() as u64).sum(),
                passed: now - self.progress,
                unseen: self.done.iter().map(|job| self.unseen.at(job.input_bytes() as u64)).sum(),
            });
        }
        let may_wait = is_sound && is_busy && weigher.takes_turns() && !weigher.has_turn();
        if !may_wait || self.untold.is_due() {
            self.tell(weigher, now);
        }
        weigher.holds(self.module(), is_busy.then_some((class, now)));
        if !is_busy && weigher.has_turn() {
            weigher.module_is_drained(self.shared.backlog.lanes(), now);
            self.shared.backlog.wake_cores();
        }
        self.since_idle += self.done.len();
        self.core_rested = core_rests;
    }

    /// Tells what was not told yet. Little's law: time in the module is requests in it times the time between two results. What of
    /// that is core time of the path is `d`: what clocks show, and what they miss. One core cannot have spent more than has passed,
    /// less what its own jobs took.
    fn tell(&mut self, weigher: &Weigher, now: Nanos) {
        let (core, all_jobs) = (self.mark_core(), self.untold.jobs().max(1));
        let wants_clock = weigher.cores() == 1 && !weigher.takes_turns();
        let beside = if wants_clock { self.mark_process() - core } else { Nanos::ZERO };
        for part in self.untold.take() {
            let Part { class, held, is_alone, opened_key, jobs, bytes, passed, unseen } = part;
            let seen = Nanos(core.0 * jobs / all_jobs);
            let all = seen + unseen;
            let most = if weigher.cores() == 1 { (passed - beside).max(seen) } else { all };
            let d = match weigher.takes_turns() {
                _ if cfg!(mutant = "more_than_passed") => all,
                true => all_of_passed(all, passed, held),
                false => all.min(most),
            };
            let h = Nanos(passed.0 * held) - if held == 1 { d } else { Nanos::ZERO };
            let sample = ModuleSample { jobs, bytes, d, h, now };
            let seen = Seen { sample, waited: Nanos(beside.0 * held), opened_key, is_alone };
            weigher.saw_module(self.module(), self.shared.backlog.lanes(), class, &seen);
        }
    }

    /// Core time of all threads of this process since the last call.
    fn mark_process(&mut self) -> Nanos {
        let process = SystemClock.process_time();
        process - std::mem::replace(&mut self.process_mark, process)
    }

    /// Core time of this thread since the last call.
    fn mark_core(&mut self) -> Nanos {
        if self.shared.weigher.is_none() {
            return Nanos::ZERO;
        }
        let core = self.core_time() - self.stood;
        core - std::mem::replace(&mut self.core_mark, core)
    }

    /// Core time of this thread and of the driver's own.
    fn core_time(&self) -> Nanos {
        self.shared.clock.thread_time() + self.driver.core_time()
    }

    /// Sends one result home: as it is, corrected, or redone. Returns what it says against the module.
    fn settle(&mut self, mut job: Box<Job<'m>>) -> Option<Quarantine> {
        if !self.shadow.after(&mut job, &mut self.redo) {
            self.redo.count_corrected(&job);
            self.bring_home(job);
            return Some(Quarantine::WrongResult);
        }
        match job.outcome() {
            Outcome::Failed(error) if error.is_the_modules_fault() => {
                self.redo(job);
                if error == JobError::ModuleFull { None } else { self.count_error(error) }
            }
            _ => {
                self.errors_in_row = 0;
                self.tally.bursts += 1;
                count(&mut self.tally, &job);
                self.bring_home(job);
                None
            }
        }
    }

    fn count_error(&mut self, error: JobError) -> Option<Quarantine> {
        self.errors_in_row += 1;
        match error {
            JobError::ModuleLost => Some(Quarantine::Lost),
            _ => (self.errors_in_row >= ERRORS_MAX).then_some(Quarantine::Errors(error)),
        }
    }

    fn bring_home(&mut self, job: Box<Job<'m>>) {
        self.single.push(job);
        self.shared.bring_home(&mut self.single);
    }

    fn run_on_core(&mut self, job: Box<Job<'m>>) {
        self.single.push(job);
        self.shared.run_on_core(&mut self.redo, &mut self.single);
    }

    /// Redoes a job on the CPU, from the same bytes: the driver has not touched them. One that is for modules only fails.
    fn redo(&mut self, mut job: Box<Job<'m>>) {
        if is_bound(&job) {
            count(&mut self.tally, &job);
            return self.bring_home(job);
        }
        job.retry();
        self.redo.count_redone();
        self.run_on_core(job);
    }

    /// Gives the module no more jobs and redoes what it holds.
    fn take_out_of_service(&mut self, reason: Quarantine) {
        self.quarantine.get_or_insert(reason);
        if let Some(weigher) = &self.shared.weigher {
            weigher.lost(self.module());
            weigher.is_free(self.desk);
            weigher.holds(self.module(), None);
            // What callers gave it: after `lost`, so that none is put here any more that nobody would find.
            self.claimed.extend(std::iter::from_fn(|| self.shared.backlog.take_given(self.desk)));
        }
        self.shared.backlog.go_out(self.desk);
        self.claimed.extend(std::iter::from_fn(|| self.shared.backlog.take_bound(self.desk)));
        let mut given_back = Vec::new();
        self.driver.abandon(&mut given_back);
        self.shadow.forget_all();
        given_back.into_iter().for_each(|job| self.redo(job));
        std::mem::take(&mut self.claimed).into_iter().for_each(|job| self.run_on_core(job));
    }

    /// Whether jobs come to this desk that no other worker would take.
    fn is_needed_without_module(&self) -> bool {
        let plan = &self.shared.plan;
        !matches!(plan.dispatch, Dispatch::Pull | Dispatch::Weigh)
            || plan.cpu.jobs_max == 0
            || self.shared.cpu_workers == 0
    }

    fn report(mut self) {
        let Profile { name, .. } = self.driver.profile().clone();
        let methods = self.redo.take_tallies();
        let module =
            ModuleReport { tally: self.tally, checked: self.shadow.checked, quarantine: self.quarantine };
        self.shared.report(WorkerReport { name, methods, module: Some(module) });
    }
}
