//! Where finished jobs go: one home per caller or stream.
//!
//! `in_flight` counts jobs from their submission until they are taken out of `done`, and never exceeds the
//! capacity of `done`; therefore a worker that comes home with jobs always finds room and never waits.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use evener_core::Job;
use evener_ring::{Doorbell, Ring};

/// A place for finished jobs.
pub(crate) struct Home<'m> {
    /// Finished jobs, in the order in which they were finished. Workers write, the owner reads.
    done: Ring<Box<Job<'m>>>,
    /// Rung when jobs have come home.
    arrived: Doorbell,
    /// Rung when jobs were taken out, so that more may be submitted.
    room: Doorbell,
    /// Jobs submitted and not yet taken out. Written by the submitter (up) and the collector (down).
    in_flight: AtomicU32,
    /// Whether a caller or a stream lives here.
    taken: AtomicBool,
}

impl<'m> Home<'m> {
    pub(crate) fn new(jobs: usize) -> Self {
        Self {
            done: Ring::with_capacity(jobs),
            arrived: Doorbell::new(),
            room: Doorbell::new(),
            in_flight: AtomicU32::new(0),
            taken: AtomicBool::new(false),
        }
    }

    /// Moves in, if nobody lives here.
    pub(crate) fn take(&self) -> bool {
        // Acquire pairs with the Release in `leave`: the last owner's jobs are all out.
        self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Moves out. Nothing may be in flight.
    pub(crate) fn leave(&self) {
        self.taken.store(false, Ordering::Release);
    }

    pub(crate) fn in_flight(&self) -> u32 {
        // Relaxed: a count for the owner's own decisions; the jobs themselves travel through rings.
        self.in_flight.load(Ordering::Relaxed)
    }

    /// How many more jobs may be submitted now.
    pub(crate) fn room(&self) -> usize {
        self.done.capacity().saturating_sub(self.in_flight() as usize)
    }

    /// Counts jobs that are about to be submitted.
    pub(crate) fn expect(&self, jobs: u32) {
        self.in_flight.fetch_add(jobs, Ordering::Relaxed);
    }

    /// Takes back the expectation of jobs that could not be submitted.
    pub(crate) fn forget(&self, jobs: u32) {
        self.in_flight.fetch_sub(jobs, Ordering::Relaxed);
    }

    /// Brings finished jobs home.
    pub(crate) fn arrive(&self, jobs: &mut Vec<Box<Job<'m>>>) {
        while !jobs.is_empty() {
            // Room there is (see the module's head); a push that moves nothing only means that the owner is in
            // the middle of taking jobs out.
            if self.done.push_all(jobs) == 0 {
                std::hint::spin_loop();
            }
        }
        self.arrived.ring_all();
    }

    /// Takes finished jobs out; the first `in_flight` jobs of the world come out exactly once.
    pub(crate) fn collect(&self, jobs: &mut Vec<Box<Job<'m>>>, most: usize) -> usize {
        let came = self.done.pop_many(jobs, most);
        if came > 0 {
            self.in_flight.fetch_sub(
                u32::try_from(came).expect("a home holds fewer than 2^30 jobs"),
                Ordering::Relaxed,
            );
            self.room.ring_all();
        }
        came
    }

    /// Sleeps until jobs may have come home.
    pub(crate) fn wait_for_jobs(&self) {
        self.wait_for_jobs_or(|| false);
    }

    /// Sleeps until jobs may have come home, unless `enough` says that waiting has no point.
    pub(crate) fn wait_for_jobs_or(&self, enough: impl Fn() -> bool) {
        let ticket = self.arrived.listen();
        if self.done.is_empty() && !enough() {
            self.arrived.wait(ticket, None);
        }
    }

    /// Sleeps until there may be room, or until `timeout` where the reason may also lie elsewhere.
    pub(crate) fn wait_for_room(&self, timeout: Option<std::time::Duration>) {
        let ticket = self.room.listen();
        if self.room() == 0 || timeout.is_some() {
            self.room.wait(ticket, timeout);
        }
    }

    /// Wakes whoever waits for jobs, for a reason other than a job.
    pub(crate) fn knock(&self) {
        self.arrived.ring_all();
    }
}
