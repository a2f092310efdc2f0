//! Where finished jobs go: one completion queue per caller, stream or queue pair (`Ticket::owner`).
//!
//! `in_flight` counts jobs from their submission until their owner lets go of them, and never exceeds the
//! capacity of `done`; therefore a worker that pushes finished jobs always finds space and never waits.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

use evener_core::{Job, Nanos};
use evener_ring::{CachePadded, Doorbell, Ring};

use crate::queue::ready_event::ReadyEvent;

/// A completion queue.
pub(crate) struct Completions<'m> {
    /// Finished jobs, in the order in which they were finished. Workers write, the owner reads. By the logarithm of the capacity: each is made
    /// for its first owner and stays, for a worker that has brought the last job of an owner may look once more.
    rings: [OnceLock<Box<Ring<Box<Job<'m>>>>>; SIZES],
    /// Which of them is the owner's. Written by the owner before it has jobs under way.
    size: AtomicUsize,
    /// Rung when as many finished jobs are here as the owner wants, and by [`wake_all`](Completions::wake_all).
    arrived: Doorbell,
    /// How many finished jobs the owner wants to see before it is woken. Written by the owner, read by workers.
    wanted: CachePadded<AtomicU32>,
    /// Rung when the owner let go of jobs while there was no space for more.
    space: Doorbell,
    /// Jobs submitted and not yet let go of. Written by the submitter (up) and the collector (down).
    in_flight: CachePadded<AtomicU32>,
    /// Whether it has an owner: a caller, a stream or a queue pair.
    is_owned: AtomicBool,
    /// Jobs before this position are given up where no worker has begun them: the position, and [`SOME`]. Written by the owner.
    cancelled_before: AtomicU64,
    /// Readable while finished jobs wait, for an owner that wants that.
    pub(crate) ready: ReadyEvent,
}

/// Capacities of rings, from 1 to 2^17; the last is whatever its first owner needed, where that was more.
const SIZES: usize = 18;

/// Beside a position: there is one.
const SOME: u64 = 1 << 32;

impl<'m> Completions<'m> {
    pub(crate) fn new() -> Self {
        Self {
            rings: [const { OnceLock::new() }; SIZES],
            size: AtomicUsize::new(0),
            arrived: Doorbell::new(),
            wanted: CachePadded::new(AtomicU32::new(1)),
            space: Doorbell::new(),
            in_flight: CachePadded::new(AtomicU32::new(0)),
            is_owned: AtomicBool::new(false),
            cancelled_before: AtomicU64::new(0),
            ready: ReadyEvent::default(),
        }
    }

    /// Becomes its owner, if it has none, no job of the last owner is still on its way, and so many jobs fit.
    pub(crate) fn acquire(&self, jobs: usize) -> bool {
        // Acquire pairs with the Release in `vacate`: what the last owner counted is known.
        let came = self.is_owned.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok();
        let stays = came && self.clear_out() && self.choose_ring(jobs);
        if came && !stays {
            self.vacate();
        }
        stays
    }

    /// Has a ring for so many jobs; `false` where there is none, for so many that rings are not told apart by size.
    fn choose_ring(&self, jobs: usize) -> bool {
        let size = (jobs.next_power_of_two().trailing_zeros() as usize).min(SIZES - 1);
        let ring = self.rings[size].get_or_init(|| Box::new(Ring::with_capacity(jobs)));
        // Release: pairs with the Acquire in `done`; the ring is there.
        self.size.store(size, Ordering::Release);
        ring.capacity() >= jobs
    }

    /// Drops what the last owner left behind; `false` where some of it has not come back yet.
    fn clear_out(&self) -> bool {
        let left = self.in_flight();
        if left > 0 {
            let mut jobs = Vec::new();
            self.drain(&mut jobs);
            self.release(count(jobs.len()));
        }
        // Relaxed: jobs of the new owner bring it along.
        self.cancelled_before.store(0, Ordering::Relaxed);
        self.in_flight() == 0
    }

    /// Gives it up. What is still on its way keeps the next owner out until it has come.
    pub(crate) fn vacate(&self) {
        self.ready.close();
        self.is_owned.store(false, Ordering::Release);
    }

    pub(crate) fn capacity(&self) -> usize {
        self.done().capacity()
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
            if self.done().push_all(jobs) == 0 {
                std::hint::spin_loop();
            }
        }
        // Pairs with the fence in `Doorbell::listen`: of two fences one is first, so either the owner's last look
        // sees these jobs, or what it wants is seen here.
        fence(Ordering::SeqCst);
        if self.done().len() >= self.wanted.load(Ordering::Relaxed) as usize {
            self.arrived.ring_all();
        }
        self.ready.raise();
    }

    /// Takes finished jobs out. They count as in flight until they are [released](Completions::release).
    pub(crate) fn drain(&self, jobs: &mut Vec<Box<Job<'m>>>) -> usize {
        self.drain_some(jobs, usize::MAX)
    }

    /// The same of at most so many.
    pub(crate) fn drain_some(&self, jobs: &mut Vec<Box<Job<'m>>>, max: usize) -> usize {
        self.done().pop_many(jobs, max)
    }

    fn done(&self) -> &Ring<Box<Job<'m>>> {
        self.rings[self.size.load(Ordering::Acquire)].get().expect("who has jobs here has acquired it")
    }

    /// Finished jobs that wait to be collected.
    pub(crate) fn finished(&self) -> usize {
        self.done().len()
    }

    /// As many of them as can be collected now, counted up to `max`: the last may still be on its way in.
    pub(crate) fn ready(&self, max: usize) -> usize {
        self.done().ready(max)
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
        if self.done().len() < wanted as usize && !enough() {
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

    /// Gives up jobs before this position that no worker has begun.
    pub(crate) fn cancel_before(&self, position: u32) {
        // Relaxed: who says that there are such jobs publishes it.
        self.cancelled_before.store(u64::from(position) | SOME, Ordering::Relaxed);
    }

    /// Where nothing before the mark can be under way any more, and positions have gone far on, there is none: half their range further it
    /// would have them all before it.
    pub(crate) fn forget_mark_behind(&self, position: u32) {
        let mark = self.cancelled_before.load(Ordering::Relaxed);
        let distance = u32::try_from(mark & !SOME).map_or(0, |mark| position.wrapping_sub(mark));
        if mark & SOME != 0 && (MARK_FORGOTTEN_AT..u32::MAX / 2).contains(&distance) {
            self.cancelled_before.store(0, Ordering::Relaxed);
        }
    }

    /// Whether the job at this position is given up. Positions wrap, and half their range before a mark counts as before it.
    pub(crate) fn was_cancelled(&self, position: u32) -> bool {
        let mark = self.cancelled_before.load(Ordering::Relaxed);
        let before = u32::try_from(mark & !SOME).map_or(0, |mark| mark.wrapping_sub(position));
        mark & SOME != 0 && before != 0 && before < u32::MAX / 2
    }

    /// After its owner has taken all that was there: the event is no longer readable, unless more came meanwhile.
    pub(crate) fn lower_event(&self) {
        if self.finished() == 0 && self.ready.lower() && self.finished() > 0 {
            self.ready.raise();
        }
    }

    /// Wakes every thread that waits here, for a reason other than a job.
    pub(crate) fn wake_all(&self) {
        self.arrived.ring_all();
        self.space.ring_all();
        self.ready.raise();
    }
}

/// Far more positions than jobs can be under way, and far fewer than half of all.
const MARK_FORGOTTEN_AT: u32 = 1 << 30;

/// A number of homes or jobs in the width of a ticket.
pub(crate) fn count(n: usize) -> u32 {
    u32::try_from(n).expect("bursts and homes are far below 2^32")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::test_support::{returns, unarmed_job};

    #[test]
    fn what_was_given_up_once_is_not_what_comes_two_thousand_million_jobs_later() {
        let completions = Completions::new();
        assert!(completions.acquire(2));
        completions.cancel_before(1_000);
        assert!(completions.was_cancelled(999) && !completions.was_cancelled(1_000));
        let mut position = 1_000_u32;
        for _ in 0..9 {
            position = position.wrapping_add(1 << 29);
            completions.forget_mark_behind(position);
            assert!(!completions.was_cancelled(position), "at {position}");
        }
    }

    #[test]
    fn each_owner_has_space_for_as_many_as_it_wants_whoever_came_before() {
        let completions = Completions::new();
        for jobs in [2, 300, 1, 65_536, 3, 1 << 18] {
            assert!(completions.acquire(jobs));
            assert_eq!(completions.capacity(), jobs.next_power_of_two().max(2));
            completions.reserve(1);
            completions.push(&mut vec![unarmed_job()]);
            assert_eq!(completions.finished(), 1);
            // What is left behind is the next one's to clear out.
            completions.vacate();
        }
    }

    #[test]
    fn nobody_sleeps_over_jobs_or_space_that_are_there() {
        let completions = Completions::new();
        assert!(completions.acquire(2));
        completions.reserve(1);
        completions.push(&mut vec![unarmed_job()]);
        returns(move || {
            completions.wait_for_jobs(1, None, || false);
            completions.wait_for_space(|| false);
            completions.wait_for_jobs(2, None, || true);
        });
    }
}
