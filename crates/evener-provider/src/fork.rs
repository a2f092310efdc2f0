//! Whether this process is still the one that something was made in.
//!
//! A child of `fork` has its parent's memory and none of its threads: what the parent's workers hold is lost to the
//! child, which leaks it and starts anew. Asking costs one load.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

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

dispatch! {
    /// Runs in the child before `fork` returns there: only what is safe in a signal handler.
    fn forked() {
        GENERATION.fetch_add(1, Relaxed);
        thread_table::clear_after_fork();
    }
}
