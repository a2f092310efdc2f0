//! Sleeping until there is something to do, without missing it.
//!
//! The path of a sleeper: listen -> look once more -> wait. The path of a ringer: change what sleepers look at -> ring.

use std::time::Duration;

use crate::sync::atomic::Ordering::{Relaxed, SeqCst};
use crate::sync::atomic::fence;
use crate::{CachePadded, Word};

/// Wakes threads that found nothing to do.
///
/// ```
/// # use evener_ring::{Doorbell, Ring};
/// # let (ring, bell) = (Ring::with_capacity(2), Doorbell::new());
/// # ring.push(7).unwrap();
/// let item = loop {
///     if let Some(item) = ring.pop() {
///         break item;
///     }
///     let ticket = bell.listen();
///     if let Some(item) = ring.pop() {
///         break item; // the ticket is dropped: no longer listening
///     }
///     bell.wait(ticket, None);
/// };
/// # assert_eq!(item, 7);
/// ```
///
/// A ring that comes after `listen` ends the `wait`; one that came before is covered by the second look. Ringing costs a
/// fence and a load while no thread listens.
///
/// Where rings are for one, a woken thread that took an item and leaves others rings on. Otherwise an item may lie
/// beside a sleeper: the one that a ring was for may have stood behind one still being moved in, so that the woken
/// thread found nothing, and the ring that followed was its second.
#[derive(Debug, Default)]
pub struct Doorbell {
    words: CachePadded<Words>,
}

#[derive(Debug, Default)]
struct Words {
    /// How many tickets exist. Sleepers write it, ringers read it.
    listeners: Word,
    /// Moves with each ring that found a listener. Ringers write it, the kernel compares it before a sleep.
    epoch: Word,
    /// Where sleepers lie.
    bed: Bed,
}

/// The promise to wake its holder; made by [`Doorbell::listen`]. Dropping it ends the listening.
#[derive(Debug)]
#[must_use = "a ticket that is dropped listens no longer"]
pub struct Ticket<'a> {
    words: &'a Words,
    epoch: u32,
}

impl Doorbell {
    /// Makes a doorbell without listeners.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts listening: each ring from here on ends a [`wait`](Self::wait) with this ticket.
    ///
    /// The caller then looks for work once more, for a ring before this call may have gone unheard.
    pub fn listen(&self) -> Ticket<'_> {
        // Relaxed: the fence below orders it, the load of the epoch and the caller's second look.
        self.words.listeners.fetch_add(1, Relaxed);
        let epoch = self.words.epoch.load(Relaxed);
        if !cfg!(mutant = "listen_unfenced") {
            // Pairs with the fence in `is_heard`: of two fences one is first, so either the ringer sees the listener or
            // the second look sees what the ringer changed.
            fence(SeqCst);
        }
        Ticket { words: &self.words, epoch }
    }

    /// Sleeps until a ring that came after the ticket was made, or for `timeout` (none: without limit).
    ///
    /// Returns `false` where the time passed. It may return `true` early, for a ring that was meant for another or for a
    /// signal, so the caller looks again either way.
    ///
    /// # Panics
    ///
    /// Where the ticket is another doorbell's.
    #[expect(clippy::needless_pass_by_value, reason = "a ticket is good for one wait")]
    pub fn wait(&self, ticket: Ticket<'_>, timeout: Option<Duration>) -> bool {
        assert!(
            std::ptr::eq(ticket.words, &raw const *self.words),
            "a ticket is for the doorbell that made it"
        );
        self.words.bed.sleep(&self.words.epoch, ticket.epoch, timeout)
    }

    /// Ends the wait of at least one listener, if there is any.
    #[inline]
    pub fn ring_one(&self) {
        if self.is_heard() {
            self.wake(1);
        }
    }

    /// Ends the wait of every listener.
    #[inline]
    pub fn ring_all(&self) {
        if self.is_heard() {
            self.wake(u32::MAX);
        }
    }

    /// Returns whether a thread listens, counting each that will not see what the caller changed before.
    #[inline]
    fn is_heard(&self) -> bool {
        if !cfg!(mutant = "ring_unfenced") {
            // Pairs with the fence in `listen`.
            fence(SeqCst);
        }
        self.words.listeners.load(Relaxed) != 0
    }

    #[cold]
    fn wake(&self, count: u32) {
        if !cfg!(mutant = "epoch_stays") {
            // Before the wake-up: a listener not yet asleep finds the epoch moved and stays awake. Relaxed: the kernel
            // compares the epoch under the lock that the wake-up takes.
            self.words.epoch.fetch_add(1, Relaxed);
        }
        self.words.bed.wake(&self.words.epoch, count);
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        // Relaxed: a ringer that still counts this listener wakes once too often.
        self.words.listeners.fetch_sub(1, Relaxed);
    }
}

#[cfg(any(loom, miri))]
use model::Bed;

#[cfg(not(any(loom, miri)))]
use crate::wait::futex::Futex as Bed;

/// What the kernel's futex does, in the primitives that loom and Miri know.
#[cfg(any(loom, miri))]
mod model {
    use std::time::Duration;

    use crate::Word;
    use crate::sync::atomic::Ordering::Relaxed;
    use crate::sync::{Condvar, Mutex};

    #[derive(Debug, Default)]
    pub(super) struct Bed {
        lock: Mutex<()>,
        woken: Condvar,
    }

    impl Bed {
        pub(super) fn sleep(&self, word: &Word, expected: u32, timeout: Option<Duration>) -> bool {
            let guard = self.lock.lock().expect(UNPOISONED);
            if word.load(Relaxed) != expected {
                return true;
            }
            let Some(timeout) = timeout else {
                drop(self.woken.wait(guard).expect(UNPOISONED));
                return true;
            };
            !self.woken.wait_timeout(guard, timeout).expect(UNPOISONED).1.timed_out()
        }

        pub(super) fn wake(&self, _word: &Word, count: u32) {
            let _guard = self.lock.lock().expect(UNPOISONED);
            if count == 1 {
                self.woken.notify_one();
            } else {
                self.woken.notify_all();
            }
        }
    }

    const UNPOISONED: &str = "no thread panics while holding it";
}
