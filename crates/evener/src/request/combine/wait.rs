//! A caller's wait for its result: it yields, runs a burst where one is due, and gives up where no other comes.
//!
//! | it finds | and does |
//! |---|---|
//! | that callers do not combine any more, or that it waits for too long, and its request not taken | clears the list: each on it works alone |
//! | as many as make a burst, or that it has yielded long enough, and a permit | runs the burst |
//! | anything else | yields, and looks at the clock every fourth time |

use std::thread;

use evener_core::Nanos;
use evener_core::driver::Clock as _;
use evener_ring::Look;

use super::Group;
use super::bursts::MakeDriver;
use crate::SystemClock;

/// How long a caller waits for another to take its request before it clears the list, and everyone on it works alone.
/// Reached only where every permit is held by threads that do not run. Assumed, not measured: 20 ms, several slices of
/// the scheduler.
const TIMEOUT: Nanos = Nanos::from_millis(20);

/// Yields between two looks at the clock, which costs a tenth of a yield.
const LOOK_EVERY: u32 = 4;

/// A caller that waits.
pub(super) struct Wait<'w> {
    group: &'w Group,
    make_driver: &'w MakeDriver,
    began: Nanos,
    /// No caller took its request for too long.
    is_late: bool,
    /// Yields since it last ran a burst, and in all.
    yields: u32,
    turns: u32,
}

impl<'w> Wait<'w> {
    pub(super) fn new(group: &'w Group, make_driver: &'w MakeDriver) -> Self {
        Self { group, make_driver, began: SystemClock.now(), is_late: false, yields: 0, turns: 0 }
    }

    /// One turn of waiting: runs a burst where one is due, or else lets another thread run.
    pub(super) fn step(&mut self, look: Look) {
        let throughput = &self.group.throughput;
        let group_size = throughput.group_size();
        let is_over = group_size == 0 || self.is_late;
        if is_over && !look.is_taken {
            // Callers do not combine any more: everyone on the list works alone.
            drop(self.group.list.take());
            return;
        }
        // Whose request is under way leaves a small rest to those who wait for it.
        let is_due =
            look.waiting >= group_size as usize || (self.yields >= throughput.yields() && !look.is_taken);
        if is_due && group_size > 0 {
            if let Some(permit) = self.group.permits.try_take() {
                self.group.serve(permit, self.make_driver);
                self.yields = 0;
                return;
            }
        }
        thread::yield_now();
        self.yields = self.yields.saturating_add(1);
        self.turns = self.turns.wrapping_add(1);
        if self.turns % LOOK_EVERY == 0 {
            let now = SystemClock.now();
            self.is_late = now - self.began > TIMEOUT;
            self.group.throughput.look(now);
        }
    }
}
