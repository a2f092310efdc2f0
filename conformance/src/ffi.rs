//! A child process that goes on where its parent is.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Seconds after which a child that stands still is ended. Assumed, not measured: what children have to do takes milliseconds.
const CHILD_SECONDS_MAX: u32 = 120;

/// Runs `body` in a child; whether the child came to its end without a panic.
///
/// # Panics
///
/// Where there can be no child.
pub fn is_right_in_child(body: impl FnOnce()) -> bool {
    // SAFETY: the child runs `body` and leaves by `_exit`. What it needs of libc works after a fork among threads: glibc takes its
    // allocator's locks itself.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no child process");
    if child == 0 {
        // SAFETY: takes a number; the signal ends the child.
        unsafe { libc::alarm(CHILD_SECONDS_MAX) };
        let failed = catch_unwind(AssertUnwindSafe(body)).is_err();
        // SAFETY: nothing of the parent's runs at this exit.
        unsafe { libc::_exit(i32::from(failed)) }
    }
    let mut status = -1;
    // SAFETY: `status` is written; nobody else waits for this child.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    waited == child && status == 0
}
