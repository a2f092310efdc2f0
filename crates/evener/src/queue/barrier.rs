//! The barrier of a measurement: workers stop before their next claim, and are let go all at once.
//!
//! A measurement: [`hold`](Barrier::hold) -> each worker finishes what it has, [stops](Barrier::stop)
//! and records for which hold and on which core -> [`all_stand`](Barrier::all_stand) ->
//! [`spread`](Barrier::spread) -> [`release`](Barrier::release) -> modules' workers leave, then the others: where they share a core,
//! it is no chance which of them has it first.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use evener_core::Nanos;
use evener_core::driver::Clock as _;
use evener_ring::CachePadded;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::SystemClock;

/// A barrier for a known number of workers.
pub struct Barrier {
    /// Odd while workers are to stop; one more with each hold and each release. The holder writes it.
    turn: AtomicU32,
    /// For each worker the last hold that it stopped for, or [`GONE`]. The worker writes it, the holder reads it.
    ///
    /// A count of stopped workers would not do: one that is slow to leave would still be counted by the next hold.
    stopped_at: Vec<CachePadded<AtomicU32>>,
    /// For each worker the core that it ran on when it last looked. The worker writes it, the holder reads it.
    cores: Vec<CachePadded<AtomicU32>>,
    /// For each worker the core that it is to move to, or [`NOWHERE`]. The holder writes it, the worker takes it away.
    places: Vec<CachePadded<AtomicU32>>,
    /// The first of the workers that leave before the others.
    first: usize,
    /// Nanoseconds that the next [`Barrier::spread`] takes, about, at most. The holder writes it.
    timeout: AtomicU64,
}

/// What a worker that ended leaves: the holder does not wait for it. Even, so that no hold has this number.
const GONE: u32 = u32::MAX - 1;

/// No core: the worker stays where it is.
const NOWHERE: u32 = u32::MAX;

/// How long the holder sleeps before it looks where the workers are. Short, so that what was prepared for them
/// is still in the caches.
const SPREAD_NAP: Duration = Duration::from_micros(50);

/// Time after which the holder gives up: several times what Linux takes to balance two cores (measured: up to 4 ms).
const TIMEOUT: Nanos = Nanos::from_millis(20);

/// The same where it was in vain lately. Workers that cannot have cores of their own, because others want the cores too, will not be
/// able to in the next round either.
const TIMEOUT_MIN: Nanos = Nanos::from_millis(1);

/// Looks between two offers of the core to others. Assumed, not measured: 64, because a yield takes about half a microsecond, as long as so many looks.
const LOOKS_PER_YIELD: u32 = 64;

impl Barrier {
    /// An open barrier for so many workers.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        let words = |word| (0..workers).map(|_| CachePadded::new(AtomicU32::new(word))).collect();
        Self {
            turn: AtomicU32::new(0),
            stopped_at: words(0),
            cores: words(0),
            places: words(NOWHERE),
            first: workers,
            timeout: AtomicU64::new(TIMEOUT.0),
        }
    }

    /// Lets workers from `first` on leave before the others.
    #[must_use]
    pub(crate) fn led_by(self, first: usize) -> Self {
        Self { first, ..self }
    }

    /// Asks every worker to stop. Workers that sleep must be woken by the caller.
    pub fn hold(&self) {
        self.turn.fetch_or(1, Ordering::AcqRel);
    }

    /// Lets them go. Two callers at once would be two measurements at once: not meant.
    pub fn release(&self) {
        let turn = self.turn.load(Ordering::Relaxed);
        if is_hold(turn) {
            // Release pairs with the Acquire in `stop`: workers see what was submitted while they stood.
            self.turn.store(turn.wrapping_add(1), Ordering::Release);
        }
    }

    /// Whether workers are to stop.
    #[must_use]
    pub fn is_held(&self) -> bool {
        is_hold(self.turn.load(Ordering::Acquire))
    }

    /// Whether every worker that has not ended has stopped.
    #[must_use]
    pub fn all_stand(&self) -> bool {
        let turn = self.turn.load(Ordering::Relaxed);
        // Acquire pairs with the Release in `stop`: what the worker did before it stopped is over.
        self.stopped_at
            .iter()
            .map(|stop_turn| stop_turn.load(Ordering::Acquire))
            .all(|at| at == turn || at == GONE)
    }

    /// The worker runs again, and will stop at the next hold.
    pub(crate) fn come_back(&self, worker: usize) {
        self.stopped_at[worker].store(0, Ordering::Release);
    }

    /// Whether stopped workers are on different cores. Two on one core would start one after the other.
    fn are_spread(&self) -> bool {
        let at_work = self
            .stopped_at
            .iter()
            .zip(&self.cores)
            .filter(|(stop_turn, _)| is_hold(stop_turn.load(Ordering::Acquire)));
        // Relaxed: a hint; the scheduler may move a thread at any time.
        let mut cores: Vec<u32> = at_work.map(|(_, core)| core.load(Ordering::Relaxed)).collect();
        let workers = cores.len();
        cores.sort_unstable();
        cores.dedup();
        cores.len() == workers
    }

    /// Assigns a core to each stopped worker, if there are as many.
    fn assign_cores(&self) {
        let Ok(allowed) = sched_getaffinity(None) else { return };
        let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core)).collect();
        let at_work = self.stopped_at.iter().zip(&self.places);
        let places = at_work
            .filter(|(stop_turn, _)| is_hold(stop_turn.load(Ordering::Acquire)))
            .map(|(_, place)| place);
        let places: Vec<_> = places.collect();
        if places.len() <= cores.len() {
            for (place, core) in places.iter().zip(cores) {
                // Relaxed: a hint, as the cores that they are on.
                place.store(u32::try_from(core).unwrap_or(NOWHERE), Ordering::Relaxed);
            }
        }
    }

    /// Waits, asleep, until stopped workers are on different cores, and assigns them cores where the system has not
    /// put them; returns whether they are. Not longer than 20 ms, for workers may be more than cores, and half as
    /// long after each time in vain.
    ///
    /// Without it a measurement of some milliseconds is one of the kernel's balancing: two threads that stopped or
    /// woke while the holder was awake often share a core, and the second starts up to 4 ms late.
    #[must_use]
    pub fn spread(&self) -> bool {
        // Relaxed: only the holder reads it.
        let timeout = Nanos(self.timeout.load(Ordering::Relaxed));
        let start = SystemClock.now();
        let is_spread = loop {
            // First asleep, so that the holder's core is free for a worker.
            thread::sleep(SPREAD_NAP);
            if self.are_spread() {
                break true;
            } else if SystemClock.now() - start >= timeout {
                break false;
            }
            self.assign_cores();
        };
        let next = if is_spread { TIMEOUT } else { Nanos(timeout.0 / 2).max(TIMEOUT_MIN) };
        self.timeout.store(next.0, Ordering::Relaxed);
        is_spread
    }

    /// Spins while workers are held, unless `end` comes; returns at once where no measurement runs.
    pub fn stop(&self, worker: usize, end: impl Fn() -> bool) {
        for look in 1u32.. {
            let turn = self.turn.load(Ordering::Acquire);
            if end() {
                return;
            }
            if !is_hold(turn) {
                if worker >= self.first || self.first_have_left(turn) {
                    if is_hold(self.stopped_at[worker].load(Ordering::Relaxed)) {
                        self.come_back(worker);
                    }
                    return;
                }
                thread::yield_now();
                continue;
            }
            if self.places[worker].load(Ordering::Relaxed) != NOWHERE {
                move_to(self.places[worker].swap(NOWHERE, Ordering::Relaxed));
            }
            self.cores[worker].store(core_now(), Ordering::Relaxed);
            self.stopped_at[worker].store(turn, Ordering::Release);
            std::hint::spin_loop();
            // Where workers and holder are more than cores, the holder must come to submit. Costs the start of
            // the measurement half a microsecond at most where they are not.
            if look % LOOKS_PER_YIELD == 0 {
                thread::yield_now();
            }
        }
    }

    /// Whether the workers that leave first have left, after the release that made `turn`.
    fn first_have_left(&self, turn: u32) -> bool {
        let held = turn.wrapping_sub(1);
        self.stopped_at[self.first..].iter().all(|stop_turn| stop_turn.load(Ordering::Relaxed) != held)
    }

    /// The worker ended and stops no more.
    pub fn leave(&self, worker: usize) {
        self.stopped_at[worker].store(GONE, Ordering::Release);
    }
}

/// The number of the core that this thread runs on.
fn core_now() -> u32 {
    u32::try_from(rustix::thread::sched_getcpu()).unwrap_or(u32::MAX)
}

/// Moves this thread to a core, which it may leave again. In vain where it may not go there.
fn move_to(core: u32) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let mut only = CpuSet::new();
    only.set(core as usize);
    // One that may not be had is no reason to measure nothing: the round counts as crowded.
    let moved = sched_setaffinity(None, &only);
    moved.and_then(|()| sched_setaffinity(None, &allowed)).unwrap_or_default();
}

const fn is_hold(turn: u32) -> bool {
    turn % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets `worker` look at the barrier once.
    fn look(barrier: &Barrier, worker: usize) {
        let looks = std::cell::Cell::new(0);
        barrier.stop(worker, || looks.replace(1) == 1);
    }

    #[test]
    fn a_worker_that_stopped_for_one_hold_must_stop_again_for_the_next() {
        let barrier = Barrier::new(2);
        for _ in 0..3 {
            barrier.hold();
            assert!(!barrier.all_stand());
            look(&barrier, 0);
            assert!(!barrier.all_stand());
            look(&barrier, 1);
            assert!(barrier.all_stand());
            barrier.release();
            assert!(!barrier.is_held());
        }
    }

    #[test]
    fn leading_workers_leave_before_the_others_and_an_ended_one_is_not_waited_for() {
        let barrier = Barrier::new(3).led_by(1);
        let leaves = |worker| {
            let looks = std::cell::Cell::new(0);
            barrier.stop(worker, || looks.replace(looks.get() + 1) == 3);
            looks.get() < 4
        };
        for _ in 0..2 {
            barrier.hold();
            (0..3).for_each(|worker| look(&barrier, worker));
            barrier.release();
            assert_eq!([leaves(0), leaves(2), leaves(0)], [false, true, false]);
            barrier.leave(1);
            assert!(leaves(0));
        }
    }

    #[test]
    fn workers_that_share_a_core_are_waited_for_less_each_time_until_they_stand_alone() {
        let barrier = Barrier::new(2);
        barrier.hold();
        // Both are this thread, which the kernel may move between the looks: so the cores are set by hand.
        (0..2).for_each(|worker| look(&barrier, worker));
        barrier.cores.iter().for_each(|core| core.store(7, Ordering::Relaxed));
        let patience_after = |is_spread: bool| {
            assert_eq!(barrier.spread(), is_spread);
            barrier.timeout.load(Ordering::Relaxed) / 1_000
        };
        assert_eq!([false; 6].map(patience_after), [10_000, 5_000, 2_500, 1_250, 1_000, 1_000]);
        barrier.cores[0].store(8, Ordering::Relaxed);
        assert_eq!(patience_after(true), TIMEOUT.0 / 1_000);
    }

    #[test]
    fn workers_that_share_a_core_are_asked_to_cores_of_their_own_and_may_go_anywhere_afterwards() {
        let allowed = sched_getaffinity(None).unwrap();
        let barrier = Barrier::new(allowed.count() as usize + 1);
        barrier.hold();
        (1..allowed.count() as usize + 1).for_each(|worker| look(&barrier, worker));
        barrier.assign_cores();
        let mut places: Vec<u32> = barrier.places.iter().map(|place| place.load(Ordering::Relaxed)).collect();
        assert_eq!(places.remove(0), NOWHERE, "it does not stand");
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), allowed.count() as usize);
        assert!(places.iter().all(|&place| allowed.is_set(place as usize)));
        for place in places.into_iter().chain([1_000]) {
            move_to(place);
            assert_eq!(sched_getaffinity(None).unwrap(), allowed);
        }
        // One more than there are cores has no better core.
        barrier.places.iter().for_each(|place| place.store(NOWHERE, Ordering::Relaxed));
        look(&barrier, 0);
        barrier.assign_cores();
        assert!(barrier.places.iter().all(|place| place.load(Ordering::Relaxed) == NOWHERE));
    }

    #[test]
    fn an_ended_worker_is_not_waited_for_and_holding_twice_is_holding_once() {
        let barrier = Barrier::new(2);
        barrier.leave(1);
        barrier.hold();
        look(&barrier, 0);
        barrier.hold();
        assert!(barrier.all_stand());
        barrier.release();
        barrier.release();
        assert!(!barrier.is_held());
    }
}
