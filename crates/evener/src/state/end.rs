//! The end of a run that is outlived by those who use it, and jobs that are given up: with the whole run, or of one queue pair.
//!
//! A run whose callers live as long as its body ends after them, and nothing here matters to it. A [resident](crate::Resident) one may end
//! while threads hold a way in. Its workers finish what was submitted before; then [`Shared::end`] says so and takes what came in
//! the last moment. Who submits looks afterwards ([`Shared::check_end`]): of two fences one is first, so one of both sees the job, which
//! comes home as cancelled.

use std::sync::atomic::{Ordering, fence};

use evener_core::{Job, JobError};

use super::Shared;

impl<'m> Shared<'m> {
    /// Whether jobs that no worker has begun are to be given up.
    pub(crate) fn is_cancelled(&self) -> bool {
        // Relaxed: a job that is run though the end was near is run well.
        self.cancel.is_cancelled() || self.has_ended.load(Ordering::Relaxed)
    }

    /// Whether this job is to be given up.
    pub(crate) fn is_given_up(&self, job: &Job<'_>) -> bool {
        self.is_cancelled() || self.may_be_given_up() && self.was_cancelled(job)
    }

    /// Moves jobs of cancelled queue pairs to the front; returns how many they are.
    pub(crate) fn sort_given_up(&self, burst: &mut [Box<Job<'m>>]) -> usize {
        if !self.may_be_given_up() || !burst.iter().any(|job| self.was_cancelled(job)) {
            return 0;
        }
        burst.sort_by_key(|job| !self.was_cancelled(job));
        burst.partition_point(|job| self.was_cancelled(job))
    }

    /// The jobs that the owner numbered `owner` submitted before `position` are given up where no worker has begun them.
    pub(crate) fn cancel_before(&self, owner: usize, position: u32) {
        self.completions[owner].cancel_before(position);
        // Release pairs with the Acquire in `may_be_given_up`: the position is known.
        self.has_cancelled.store(true, Ordering::Release);
    }

    fn may_be_given_up(&self) -> bool {
        self.has_cancelled.load(Ordering::Acquire)
    }

    fn was_cancelled(&self, job: &Job<'_>) -> bool {
        self.completions[job.ticket.owner as usize].was_cancelled(job.ticket.position)
    }

    /// The workers are gone, in order or not: what waits for them, or will, is given up.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.give_up_all();
    }

    /// After a submission: whether the workers have gone before they could see it.
    pub(crate) fn check_end(&self) {
        if self.is_resident && !cfg!(mutant = "end_not_seen") {
            fence(Ordering::SeqCst);
            if self.has_ended.load(Ordering::SeqCst) {
                self.give_up_all();
            }
        }
    }

    /// Sends home what waits in any queue.
    fn give_up_all(&self) {
        let mut jobs = Vec::new();
        while self.backlog.take_any(&mut jobs) > 0 {
            jobs.iter_mut().for_each(|job| job.fail(JobError::Cancelled));
            self.complete(&mut jobs);
        }
    }
}
