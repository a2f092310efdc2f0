//! Whether this process is still the one that something was made in.
//!
//! A child of `fork` has its parent's memory and none of its threads: what the parent's workers hold is lost to the
//! child, which leaks it and starts anew. Asking costs one load.

use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::thread;
use std::time::Duration;

use crate::counters::thread_table;
use crate::ffi::{self, dispatch};

static GENERATION: AtomicU32 = AtomicU32::new(0);
static WATCHED: OnceLock<bool> = OnceLock::new();

/// How many forks lie between this process and the one that loaded the provider; wraps after 2^32.
#[must_use]
pub fn generation() -> u32 {
    GENERATION.load(Relaxed)
}

/// Starts counting, once per process; false where the system refused, and nothing may be shared with a thread then.
pub fn watch() -> bool {
    *WATCHED.get_or_init(|| ffi::at_fork_in_child(forked))
}

/// A lock for what takes long (a connection, a library that is loaded). A fork frees it: in the child the thread that held it does not run.
pub(crate) struct ForkLock(AtomicU64);

/// Holds a [`ForkLock`].
pub(crate) struct ForkGuard<'l>(&'l ForkLock);

impl ForkLock {
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(FREE))
    }

    /// Waits until no other thread of this process has it. It is not to be taken twice by one thread.
    pub(crate) fn lock(&self) -> ForkGuard<'_> {
        let own = u64::from(generation()) + 1;
        loop {
            let seen = self.0.load(Relaxed);
            // Acquire: pairs with the Release of the thread that had it.
            if seen != own && self.0.compare_exchange(seen, own, Acquire, Relaxed).is_ok() {
                return ForkGuard(self);
            }
            // Asleep, so that the one who has it gets a core whatever the priorities of the two are.
            thread::sleep(LOOK_AGAIN);
        }
    }
}

impl Drop for ForkGuard<'_> {
    fn drop(&mut self) {
        self.0.0.store(FREE, Release);
    }
}

/// Beside the numbers of generations, from 1 on.
const FREE: u64 = 0;

/// Assumed, not measured: 50 us, a fraction of what the lock is held for, once in a process.
const LOOK_AGAIN: Duration = Duration::from_micros(50);

dispatch! {
    /// Runs in the child before `fork` returns there: only what is safe in a signal handler.
    fn forked() {
        GENERATION.fetch_add(1, Relaxed);
        thread_table::clear_after_fork();
    }
}

#[cfg(test)]
mod tests {
    use super::{ForkLock, GENERATION, Relaxed};

    #[test]
    fn a_lock_that_a_fork_left_held_is_free_in_the_child() {
        let lock = ForkLock::new();
        drop(lock.lock());
        let held = lock.lock();
        // As the child's handler does.
        GENERATION.fetch_add(1, Relaxed);
        drop(lock.lock());
        GENERATION.fetch_sub(1, Relaxed);
        drop(held);
    }
}
