//! A turn: what a place may do once it was served in order, until it goes to the end of the queue again.
//!
//! Known to its process only. Where requests are short, a turn is a batch: its process may take a permit again although others wait. Where the process has a weight, it
//! may go by the express wait queue some times.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use crate::arrival_queue::Waiter;
use crate::layout::WaitQueue;
use crate::world::micros;

/// Requests predicted to take this long or longer are granted in the exact order of their arrival; below it a turn is a batch.
pub const EXACT_FROM_NS: u64 = 100_000;

/// How long a turn of short requests goes on.
pub const BATCH_NS: u64 = 200_000;

/// One thread at a time uses a place, and hands it on with what stands here.
#[derive(Debug, Default)]
pub struct Turn {
    /// In microseconds, modulo 2^32.
    began: AtomicU32,
    /// [`Waiter::mark`] of who stood in front when it was last rung in this turn; 0: not at all.
    rung: AtomicU32,
    /// Requests that may go by the express wait queue.
    credit: AtomicU32,
    /// The permit of last time.
    hint: AtomicU32,
}

// Relaxed, everywhere here: a thread that gets a place gets it by an exchange that orders these.
impl Turn {
    /// A turn of a place that was never served.
    #[must_use]
    pub fn new(hint: u32) -> Self {
        Self { hint: AtomicU32::new(hint), ..Self::default() }
    }

    #[inline]
    pub(super) fn hint(&self) -> usize {
        self.hint.load(Relaxed) as usize
    }

    #[inline]
    pub(super) fn keep_hint(&self, permit: usize) {
        self.hint.store(u32::try_from(permit).unwrap_or_default(), Relaxed);
    }

    #[inline]
    pub(super) fn begin(&self, now: u64) {
        self.began.store(micros(now), Relaxed);
        self.rung.store(0, Relaxed);
    }

    /// Whether a request may go before those who wait.
    pub(super) fn goes_on(&self, predicted_ns: u64, now: u64) -> bool {
        let since = micros(now).wrapping_sub(self.began.load(Relaxed));
        predicted_ns < EXACT_FROM_NS && u64::from(since) < BATCH_NS / 1_000
    }

    /// Whether who stands in front is rung at the end of a request: not where it was in this turn, and looks by itself when that is over. Who has come to the front
    /// since then was perhaps never rung: it sleeps for as long as one behind.
    pub(super) fn is_to_ring(&self, front: &Waiter, predicted_ns: u64, now: impl FnOnce() -> u64) -> bool {
        let was_rung = self.rung.load(Relaxed) == front.mark();
        if was_rung && self.goes_on(predicted_ns, now()) {
            return false;
        }
        self.rung.store(front.mark(), Relaxed);
        true
    }

    /// Where the next request waits.
    pub(super) fn wait_queue(&self) -> WaitQueue {
        match self.credit.load(Relaxed) {
            0 => WaitQueue::Main,
            _ => WaitQueue::Express,
        }
    }

    /// One was served in `wait_queue`.
    pub(super) fn served(&self, wait_queue: WaitQueue, weight: impl FnOnce() -> u32) {
        let credit = match wait_queue {
            WaitQueue::Main => weight().clamp(1, WEIGHT_MAX) - 1,
            WaitQueue::Express => self.credit.load(Relaxed).saturating_sub(1),
        };
        self.credit.store(credit, Relaxed);
    }
}

/// Largest weight of a process. Assumed, not measured: 64, because those of weight 1 then still get a request in for each 64.
pub const WEIGHT_MAX: u32 = 64;
