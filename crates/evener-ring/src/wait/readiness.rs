//! Whether something is there, for a thread that waits where no doorbell is heard: in poll, by an eventfd.
//!
//! | state | the event | next |
//! |---|---|---|
//! | QUIET | not readable | RAISING: who brings something, and finds it so |
//! | RAISING | about to be readable | RAISED: the same thread has written |
//! | RAISED | readable | QUIET: the owner found nothing, and has read; it looks once more |
//!
//! So the event is written once for all that comes until the owner has taken everything, and no thread reads what was not written.

use crate::Word;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use crate::sync::atomic::fence;

const QUIET: u32 = 0;
const RAISING: u32 = 1;
const RAISED: u32 = 2;

/// The state of an event that one thread waits for and others raise.
#[derive(Debug, Default)]
pub struct Readiness {
    state: Word,
}

impl Readiness {
    /// Lets `signal` make the event readable, where it is not: something was put where the owner looks.
    #[inline]
    pub fn raise(&self, signal: impl FnOnce()) {
        if !cfg!(mutant = "raise_unfenced") {
            // Pairs with the fence in `lower`: of two fences one is first, so either the owner's last look sees what was put
            // there, or it is seen here that the event is not readable.
            fence(SeqCst);
        }
        // Acquire pairs with the Release in `lower`: what is signalled now is not read by the read before.
        if self.state.load(Relaxed) == QUIET
            && self.state.compare_exchange(QUIET, RAISING, Acquire, Relaxed).is_ok()
        {
            signal();
            // Release pairs with the Acquire in `lower`: the owner's read finds the signal.
            self.state.store(RAISED, Release);
        }
    }

    /// For the owner that found nothing: lets `clear` make the event unreadable, where it is readable. Where this returns `true` the owner
    /// looks once more, and [raises](Self::raise) it itself where something is there.
    #[must_use]
    pub fn lower(&self, clear: impl FnOnce()) -> bool {
        if self.state.load(Acquire) != RAISED {
            return false;
        }
        clear();
        self.state.store(QUIET, Release);
        if !cfg!(mutant = "lower_unfenced") {
            // Pairs with the fence in `raise`.
            fence(SeqCst);
        }
        true
    }
}
