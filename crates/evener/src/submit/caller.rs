//! A thread that brings bursts and waits for them.

use std::marker::PhantomData;
use std::sync::Arc;

use evener_core::job::Ticket;
use evener_core::plan::Dispatch;
use evener_core::{Job, Nanos, SessionId};

use crate::CoreDrivers;
use crate::adaptive::Single;
use crate::cpu::is_module_only;
use crate::queue::completions::count;
use crate::queue::ended_sessions::Cursor;
use crate::state::{CoreTimeMeter, Shared};

/// A way in for one thread. Where no module could take a job it runs on this thread, without queue, lock or
/// other thread; else it is queued, and this thread helps with whatever waits until its own jobs are done.
pub struct Caller<'r, 'm> {
    shared: Arc<Shared<'m>>,
    /// It may live as long as the run's body, or where the run is [resident](crate::Resident), as it likes.
    run: PhantomData<&'r Shared<'m>>,
    owner: usize,
    number: u32,
    core_drivers: CoreDrivers,
    /// The burst in work, kept for its memory.
    burst: Vec<Box<Job<'m>>>,
    /// Jobs to be submitted, kept for its memory.
    waiting: Vec<Box<Job<'m>>>,
    /// Jobs brought so far where jobs are dealt out, to know whose turn it is.
    dealt: usize,
    meter: CoreTimeMeter,
    /// How far it has read the list of sessions that ended.
    cursor: Cursor,
}

/// The name of a caller in reports.
pub(crate) fn caller_name(number: u32) -> String {
    format!("caller {number}")
}

impl<'m> Caller<'_, 'm> {
    pub(crate) fn new(
        shared: &Arc<Shared<'m>>,
        owner: usize,
        number: u32,
        core_drivers: CoreDrivers,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            run: PhantomData,
            owner,
            number,
            core_drivers,
            burst: Vec::new(),
            waiting: Vec::new(),
            dealt: 0,
            meter: CoreTimeMeter::default(),
            cursor: Cursor::default(),
        }
    }

    /// Runs a burst of armed jobs and returns when each is Done or Failed; their order is as before.
    ///
    /// When the run is cancelled, jobs not yet started fail with
    /// [`JobError::Cancelled`](evener_core::JobError::Cancelled).
    ///
    /// # Panics
    ///
    /// Where a job was never armed, or where a worker panicked, with which jobs are lost: bugs.
    pub fn crypt(&mut self, jobs: &mut Vec<Box<Job<'m>>>) {
        let owner = count(self.owner);
        let mut is_bound = false;
        for (position, job) in (0..).zip(jobs.iter_mut()) {
            job.ticket = Ticket { owner, position };
            is_bound |= is_module_only(job);
        }
        self.poll_ended();
        self.shared.wait_for_budget(&mut self.meter);
        match jobs[..] {
            _ if is_bound => self.crypt_queued(jobs),
            [ref job] if self.shared.adaptive.is_some() => {
                if self.is_weighed_alone(job) {
                    self.crypt_single(jobs);
                } else {
                    self.crypt_here(jobs);
                }
            }
            _ if self.is_for_modules(jobs) => self.crypt_queued(jobs),
            _ => self.crypt_here(jobs),
        }
        if !jobs.is_sorted_by_key(|job| job.ticket.position) {
            jobs.sort_unstable_by_key(|job| job.ticket.position);
        }
    }

    /// As [`Runtime::end_session`](crate::Runtime::end_session), and at once for this caller's own set of drivers.
    pub fn end_session(&mut self, session: SessionId) {
        self.shared.backlog.end_session(session);
        self.poll_ended();
    }

    /// Has its set of drivers wipe what it made of sessions that have ended, as each burst does.
    pub fn poll_ended(&mut self) {
        self.shared.backlog.ended().poll(&self.cursor, |has_ended| self.core_drivers.evict(has_ended));
    }

    /// Runs jobs on the caller's thread.
    fn crypt_here(&mut self, jobs: &mut [Box<Job<'m>>]) {
        self.shared.work_on(&mut self.core_drivers, jobs);
        self.shared.learn_from(&mut self.core_drivers, count(jobs.len()));
    }

    /// Whether the adaptive policy is to say where this single request goes.
    fn is_weighed_alone(&self, job: &Job<'_>) -> bool {
        !self.shared.backlog.class_queues().is_alone(job.class()) && self.shared.module_does(job)
    }

    /// Whether a burst is worth its way through the queue: some module may take a part of it.
    fn is_for_modules(&self, jobs: &[Box<Job<'m>>]) -> bool {
        if self.shared.plan.is_cpu_only() || !jobs.iter().any(|job| self.shared.module_does(job)) {
            return false;
        }
        let Some(adaptive) = &self.shared.adaptive else { return true };
        let queues = self.shared.backlog.class_queues();
        let mut classes = jobs.iter().map(|job| job.class());
        if classes.clone().all(|class| queues.is_alone(class)) {
            return false;
        }
        adaptive.modules_matter(queues, &mut classes, count(jobs.len()), self.shared.clock.now())
    }

    /// Runs one request where the adaptive policy says.
    fn crypt_single(&mut self, jobs: &mut Vec<Box<Job<'m>>>) {
        let shared = Arc::clone(&self.shared);
        let Some(adaptive) = &shared.adaptive else { return self.crypt_here(jobs) };
        let (start, class, bytes) = (self.shared.clock.now(), jobs[0].class(), jobs[0].input_bytes());
        let single = adaptive.route_single(self.shared.backlog.class_queues(), class, start);
        let core = match single {
            Single::Inline => return self.crypt_here(jobs),
            Single::Control(_) => {
                let core = self.shared.clock.thread_time();
                self.crypt_here(jobs);
                self.shared.clock.thread_time() - core
            }
            Single::Module(key) => {
                self.crypt_by_module(key.module, jobs);
                adaptive.core_of(key, class, bytes)
            }
        };
        let now = self.shared.clock.now();
        adaptive.record_single(single, now - start, core, now);
    }

    /// Gives one request to a module and waits for it.
    fn crypt_by_module(&mut self, module: usize, jobs: &mut Vec<Box<Job<'m>>>) {
        let Some(job) = jobs.pop() else { return };
        let shared = Arc::clone(&self.shared);
        let completions = &shared.completions[self.owner];
        let worker = shared.cpu_workers + module;
        completions.reserve(1);
        if let Err(job) = shared.backlog.push_to(worker, job) {
            completions.cancel(1);
            jobs.push(job);
            return self.crypt_here(jobs);
        }
        shared.check_end();
        if shared.adaptive.as_ref().is_some_and(|adaptive| adaptive.is_lost(module)) {
            let mut given: Vec<_> = std::iter::from_fn(|| shared.backlog.pop_given(worker)).collect();
            shared.run_on_core(&mut self.core_drivers, &mut given);
        }
        while completions.drain(jobs) == 0 {
            shared.assert_whole();
            completions.wait_for_jobs(1, None, || shared.backlog.is_broken());
        }
        completions.release(1);
    }

    /// The time, by the run's clock.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.shared.clock.now()
    }

    /// Jobs that the caller's own set of drivers runs side by side at its best.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.core_drivers.width()
    }

    fn crypt_queued(&mut self, jobs: &mut Vec<Box<Job<'m>>>) {
        let shared = Arc::clone(&self.shared);
        let completions = &shared.completions[self.owner];
        let total = jobs.len();
        let mut waiting = std::mem::take(&mut self.waiting);
        std::mem::swap(&mut waiting, jobs);
        self.keep_share(&mut waiting, jobs);
        let mut submitted = submit(&shared, self.owner, &mut waiting);
        self.shared.work_on(&mut self.core_drivers, jobs);
        while jobs.len() < total {
            let came = completions.drain(jobs);
            completions.release(count(came));
            if submitted == 0 && came == 0 {
                self.help().unwrap_or_else(|timeout| self.rest(!waiting.is_empty(), timeout));
            }
            submitted = submit(&shared, self.owner, &mut waiting);
        }
        self.waiting = waiting;
    }

    /// Where jobs are dealt out, moves those into `share` that fall to the callers that work for themselves. Each
    /// brings its own jobs, so of the jobs of each the share of all callers stays.
    fn keep_share(&mut self, waiting: &mut Vec<Box<Job<'m>>>, share: &mut Vec<Box<Job<'m>>>) {
        let own = self.shared.callers_work;
        if self.shared.plan.dispatch != Dispatch::RoundRobin || own == 0 {
            return;
        }
        let hands = own + self.shared.backlog.worker_count();
        for job in std::mem::take(waiting) {
            let is_own = self.dealt % hands < own && !is_module_only(&job);
            self.dealt += 1;
            if is_own { share.push(job) } else { waiting.push(job) }
        }
    }

    /// Runs one claim of what waits, be it one's own or not. Fails where nothing waits or the plan gives callers
    /// nothing, with the time after which that may be otherwise.
    fn help(&mut self) -> Result<(), Option<Nanos>> {
        let plan = &self.shared.plan;
        if plan.dispatch == Dispatch::RoundRobin {
            return Err(None);
        }
        // The monitor would hand the next job to a worker that waits: a caller that waits takes it.
        self.shared.claim_for_core(None, &plan.cpu, &mut self.burst)?;
        self.shared.run_on_core(&mut self.core_drivers, &mut self.burst);
        Ok(())
    }

    /// Sleeps until something may have changed: space for what is still to be submitted, all of the rest done, or
    /// `timeout` over.
    fn rest(&self, has_more: bool, timeout: Option<Nanos>) {
        self.shared.assert_whole();
        let completions = &self.shared.completions[self.owner];
        let enough = || self.shared.backlog.is_broken();
        match (has_more, completions.free_slots()) {
            (true, 1..) => self.shared.backlog.wait_for_space(),
            (true, 0) => completions.wait_for_jobs(completions.in_flight().div_ceil(2), timeout, enough),
            (false, _) => completions.wait_for_jobs(completions.in_flight(), timeout, enough),
        }
    }
}

/// Submits of `waiting` as many as backlog and completions have space for.
pub(crate) fn submit<'m>(shared: &Shared<'m>, owner: usize, waiting: &mut Vec<Box<Job<'m>>>) -> usize {
    submit_by(shared, owner, waiting, |jobs| {
        let mut left = Vec::new();
        let bound = shared.submit_module_only(jobs, &mut left);
        announce(shared, jobs);
        let submitted = bound + shared.backlog.submit(jobs);
        jobs.extend(left);
        submitted
    })
}

/// The same from the front: those that stay are the end of `waiting`, as they came.
pub(crate) fn submit_front<'m>(shared: &Shared<'m>, owner: usize, waiting: &mut Vec<Box<Job<'m>>>) -> usize {
    submit_by(shared, owner, waiting, |jobs| {
        if jobs.iter().any(|job| is_module_only(job)) {
            return one_by_one(shared, jobs);
        }
        announce(shared, jobs);
        shared.backlog.submit_front(jobs)
    })
}

fn submit_by<'m>(
    shared: &Shared<'m>,
    owner: usize,
    waiting: &mut Vec<Box<Job<'m>>>,
    push: impl FnOnce(&mut Vec<Box<Job<'m>>>) -> usize,
) -> usize {
    let place = &shared.completions[owner];
    let fits = place.free_slots().min(waiting.len());
    if fits == 0 {
        return 0;
    }
    let rest = waiting.split_off(fits);
    place.reserve(count(fits));
    let submitted = push(waiting);
    shared.check_end();
    place.cancel(count(fits - submitted));
    waiting.extend(rest);
    submitted
}

/// Tells the adaptive policy of jobs that are about to come.
fn announce(shared: &Shared<'_>, jobs: &[Box<Job<'_>>]) {
    if let (Some(adaptive), Some(first)) = (&shared.adaptive, jobs.first()) {
        let (queues, class) = (shared.backlog.class_queues(), first.class());
        if queues.is_alone(class) {
            adaptive.on_submit(queues, class, count(jobs.len()), shared.clock.now());
        }
    }
}

/// Submits jobs of which some are for modules only, to the first for which there is no space.
fn one_by_one<'m>(shared: &Shared<'m>, jobs: &mut Vec<Box<Job<'m>>>) -> usize {
    let (all, mut left, mut single) = (jobs.len(), std::mem::take(jobs).into_iter(), Vec::new());
    while single.is_empty() {
        let Some(job) = left.next() else { break };
        if is_module_only(&job) {
            single.extend(shared.push_module_only(job).err());
        } else {
            single.push(job);
            shared.backlog.submit_front(&mut single);
        }
    }
    single.extend(left);
    *jobs = single;
    all - jobs.len()
}

impl Drop for Caller<'_, '_> {
    fn drop(&mut self) {
        self.shared.report_caller(caller_name(self.number), &mut self.core_drivers);
        self.shared.completions[self.owner].vacate();
    }
}
