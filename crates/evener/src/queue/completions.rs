//! Where finished jobs go: one completion queue per caller or stream (`Ticket::owner`).
//!
//! `in_flight` counts jobs from their submission until their owner lets go of them, and never exceeds the
//! capacity of `done`; therefore a worker that pushes finished jobs always finds space and never waits.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};

use evener_core::{Job, Nanos};
use evener_ring::{CachePadded, Doorbell, Ring};

/// A completion queue.
pub(crate) struct Completions<'m> {
    /// Finished jobs, in the order in which they were finished. Workers write, the owner reads.
    done: Ring<Box<Job<'m>>>,
    /// Rung when as many finished jobs are here as the owner wants, and by [`wake_all`](Completions::wake_all).
    arrived: Doorbell,
    /// How many finished jobs the owner wants to see before it is woken. Written by the owner, read by workers.
    wanted: CachePadded<AtomicU32>,
    /// Rung when the owner let go of jobs while there was no space for more.
    space: Doorbell,
    /// Jobs submitted and not yet let go of. Written by the submitter (up) and the collector (down).
    in_flight: CachePadded<AtomicU32>,
    /// Whether it has an owner, a caller or a stream.
    is_owned: AtomicBool,
}

impl<'m> Completions<'m> {
    pub(crate) fn new(jobs: usize) -> Self {
        Self {
            done: Ring::with_capacity(jobs),
            arrived: Doorbell::new(),
            wanted: CachePadded::new(AtomicU32::new(1)),
            space: Doorbell::new(),
            in_flight: CachePadded::new(AtomicU32::new(0)),
            is_owned: AtomicBool::new(false),
        }
    }

    /// Becomes its owner, if it has none and no job of the last owner is still on its way.
    pub(crate) fn acquire(&self) -> bool {
        // Acquire pairs with the Release in `vacate`: what the last owner counted is known.
        let came = self.is_owned.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok();
        let stays = came && self.clear_out();
        if came && !stays {
            self.vacate();
        }
        stays
    }

    /// Drops what the last owner left behind; `false` where some of it has not come back yet.
    fn clear_out(&self) -> bool {
        let left = self.in_flight();
        if left > 0 {
            let mut jobs = Vec::new();
            self.drain(&mut jobs);
            self.release(count(jobs.len()));
        }
        self.in_flight() == 0
    }

    /// Gives it up. What is still on its way keeps the next owner out until it has come.
    pub(crate) fn vacate(&self) {
        self.is_owned.store(false, Ordering::Release);
    }

    pub(crate) fn capacity(&self) -> usize {
        self.done.capacity()
    }

    pub(crate) fn in_flight(&self) -> u32 {
        // Relaxed: a count for the owner's own decisions; the jobs themselves travel through rings.
        self.in_flight.load(Ordering::Relaxed)
    }

    /// How many more jobs may be submitted now.
    pub(crate) fn free_slots(&self) -> usize {
        self.capacity().saturating_sub(self.in_flight() as usize)
    }

    /// Counts jobs that are about to be submitted.
    pub(crate) fn reserve(&self, jobs: u32) {
        self.in_flight.fetch_add(jobs, Ordering::Relaxed);
    }

    /// Takes back the reservation of jobs that could not be submitted.
    pub(crate) fn cancel(&self, jobs: u32) {
        self.in_flight.fetch_sub(jobs, Ordering::Relaxed);
    }

    /// Puts finished jobs in.
    pub(crate) fn push(&self, jobs: &mut Vec<Box<Job<'m>>>) {
        while !jobs.is_empty() {
            // Space there is (see the module's head); a push that moves nothing only means that the owner is in
            // the middle of taking jobs out.
            if self.done.push_all(jobs) == 0 {
                std::hint::spin_loop();
            }
        }
        // Pairs with the fence in `Doorbell::listen`: of two fences one is first, so either the owner's last look
        // sees these jobs, or what it wants is seen here.
        fence(Ordering::SeqCst);
        if self.done.len() >= self.wanted.load(Ordering::Relaxed) as usize {
            self.arrived.ring_all();
        }
    }

    /// Takes finished jobs out. They count as in flight until they are [released](Completions::release).
    pub(crate) fn drain(&self, jobs: &mut Vec<Box<Job<'m>>>) -> usize {
        self.done.pop_many(jobs, usize::MAX)
    }

    /// Finished jobs that wait to be collected.
    pub(crate) fn finished(&self) -> usize {
        self.done.len()
    }

    /// Counts jobs out that were collected, which makes space for as many.
    pub(crate) fn release(&self, jobs: u32) {
        // Relaxed: all changes of one word have one order, so either the submitter's look at it sees this one, or it
        // was full before; the fences of the doorbell do the rest. Ringing each time would cost a fence per job.
        let before = self.in_flight.fetch_sub(jobs, Ordering::Relaxed);
        if before as usize >= self.capacity() {
            self.space.ring_all();
        }
    }

    /// Sleeps until `wanted` finished jobs are here (at most once for all of them), unless `enough` says that
    /// waiting has no point or `timeout` is over. The owner looks again either way.
    pub(crate) fn wait_for_jobs(&self, wanted: u32, timeout: Option<Nanos>, enough: impl Fn() -> bool) {
        // Relaxed: the fence in `listen` follows.
        self.wanted.store(wanted, Ordering::Relaxed);
        let ticket = self.arrived.listen();
        if self.done.len() < wanted as usize && !enough() {
            self.arrived.wait(ticket, timeout.map(Into::into));
        }
    }

    /// Sleeps until there may be space, unless `enough` says that waiting has no point.
    pub(crate) fn wait_for_space(&self, enough: impl Fn() -> bool) {
        let ticket = self.space.listen();
        if self.free_slots() == 0 && !enough() {
            self.space.wait(ticket, None);
        }
    }

    /// Wakes every thread that waits here, for a reason other than a job.
    pub(crate) fn wake_all(&self) {
        self.arrived.ring_all();
        self.space.ring_all();
    }
}

/// A number of homes or jobs in the width of a ticket.
pub(crate) fn count(n: usize) -> u32 {
    u32::try_from(n).expect("bursts and homes are far below 2^32")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::test_support::{returns, unarmed_job};

    #[test]
    fn nobody_sleeps_over_jobs_or_space_that_are_there() {
        let completions = Completions::new(2);
        completions.reserve(1);
        completions.push(&mut vec![unarmed_job()]);
        returns(move || {
            completions.wait_for_jobs(1, None, || false);
            completions.wait_for_space(|| false);
            completions.wait_for_jobs(2, None, || true);
        });
    }
}
