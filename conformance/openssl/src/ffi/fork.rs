//! A child process that goes on where its parent is.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `body` in a child and says whether it came to its end there, without a panic and in time.
///
/// # Panics
///
/// Where there can be no child.
pub fn forked(body: impl FnOnce()) -> bool {
    // SAFETY: the child runs `body` and leaves by `_exit`. What it needs of libc works after a fork among threads:
    // glibc takes its allocator's locks itself.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no child process");
    if child == 0 {
        // SAFETY: no handler is set for the signal: the child ends, which its parent sees.
        unsafe { libc::alarm(CHILD_SECONDS_MAX) };
        let failed = catch_unwind(AssertUnwindSafe(body)).is_err();
        // SAFETY: nothing of the parent's runs at this exit.
        unsafe { libc::_exit(failed.into()) }
    }
    let mut status = 0;
    // SAFETY: `status` is written; nobody else waits for this child.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    waited == child && status == 0
}

/// A guess: a child has one story's rest to tell, which takes milliseconds.
const CHILD_SECONDS_MAX: u32 = 60;
