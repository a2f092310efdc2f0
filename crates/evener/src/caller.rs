//! A thread that brings bursts and waits for them.

use evener_core::job::Ticket;
use evener_core::plan::Dispatch;
use evener_core::{Job, JobError, Nanos};

use crate::CpuKit;
use crate::report::WorkerReport;
use crate::runtime::Shared;

/// A way in for one thread. Where no module could take a job it runs on this thread, without queue, lock or
/// other thread; else it is queued, and this thread helps with whatever waits until its own jobs are done.
pub struct Caller<'r, 'm> {
    shared: &'r Shared<'m>,
    home: usize,
    number: u32,
    kit: CpuKit,
    /// Bursts in work, kept for their memory.
    burst: Vec<Box<Job<'m>>>,
}

impl<'r, 'm> Caller<'r, 'm> {
    pub(crate) fn new(shared: &'r Shared<'m>, home: usize, number: u32, kit: CpuKit) -> Self {
        Self { shared, home, number, kit, burst: Vec::new() }
    }

    /// Runs a burst of armed jobs and returns when each is Done or Failed; their order is as before.
    ///
    /// When the run is cancelled, jobs not yet started fail with
    /// [`JobError::Cancelled`](evener_core::JobError::Cancelled).
    pub fn crypt(&mut self, jobs: &mut Vec<Box<Job<'m>>>) {
        for (turn, job) in jobs.iter_mut().enumerate() {
            job.ticket = Ticket { home: count(self.home), turn: count(turn) };
        }
        let for_modules =
            !self.shared.plan.is_cpu_only() && jobs.iter().any(|job| self.shared.module_does(job));
        if for_modules {
            self.crypt_queued(jobs);
        } else if self.shared.cancel.is_cancelled() {
            jobs.iter_mut().for_each(|job| job.fail(JobError::Cancelled));
        } else {
            self.kit.run(jobs, &*self.shared.clock);
        }
        jobs.sort_by_key(|job| job.ticket.turn);
    }

    /// The time, by the run's clock.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.shared.clock.now()
    }

    /// Jobs that the caller's own kit runs side by side at its best.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.kit.width()
    }

    fn crypt_queued(&mut self, jobs: &mut Vec<Box<Job<'m>>>) {
        let home = &self.shared.homes[self.home];
        let total = jobs.len();
        let mut waiting = std::mem::take(jobs);
        while jobs.len() < total {
            let submitted = submit(self.shared, self.home, &mut waiting);
            let came = home.collect(jobs, total);
            if submitted == 0 && came == 0 && !self.help() {
                self.rest(!waiting.is_empty() && home.room() > 0);
            }
        }
    }

    /// Runs one claim of what waits, be it one's own or not. `false` where nothing waits or the plan gives
    /// callers nothing.
    fn help(&mut self) -> bool {
        let plan = &self.shared.plan;
        let helped = plan.dispatch == Dispatch::Pull
            && self.shared.backlog.claim(None, &plan.cpu, &mut self.burst) > 0;
        if helped {
            self.shared.run_on_core(&mut self.kit, &mut self.burst);
        }
        helped
    }

    /// Sleeps until something may have changed.
    fn rest(&self, wants_room: bool) {
        if wants_room {
            self.shared.backlog.wait_for_room(ROOM_PATIENCE);
        } else {
            self.shared.homes[self.home].wait_for_jobs();
        }
    }
}

/// How long a submitter sleeps at most before it looks again: room can appear in the backlog or at home, and
/// it listens to one of them.
pub(crate) const ROOM_PATIENCE: std::time::Duration = std::time::Duration::from_millis(1);

/// Submits from the front of `waiting` as many as backlog and home have room for.
pub(crate) fn submit<'m>(shared: &Shared<'m>, home: usize, waiting: &mut Vec<Box<Job<'m>>>) -> usize {
    let place = &shared.homes[home];
    let fits = place.room().min(waiting.len());
    if fits == 0 {
        return 0;
    }
    let rest = waiting.split_off(fits);
    place.expect(count(fits));
    let submitted = shared.backlog.submit(waiting);
    place.forget(count(fits - submitted));
    waiting.extend(rest);
    submitted
}

/// A number of homes or jobs in the width of a ticket.
pub(crate) fn count(n: usize) -> u32 {
    u32::try_from(n).expect("bursts and homes are far below 2^32")
}

impl Drop for Caller<'_, '_> {
    fn drop(&mut self) {
        let name = format!("caller {}", self.number);
        self.shared.report(WorkerReport { name, methods: self.kit.take_tallies(), module: None });
        self.shared.homes[self.home].leave();
    }
}
