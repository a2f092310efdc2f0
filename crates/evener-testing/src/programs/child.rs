//! A child process that goes on where its parent is.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Assumed, not measured: 120 s, because what children have to do takes milliseconds; one that stands still is ended then.
const CHILD_SECONDS_MAX: u32 = 120;

/// The code of a child whose body panicked.
const PANICKED: u8 = u8::MAX;

/// Runs `body` in a child: what it gave, less than 255; nothing where the child ended otherwise: by a panic, by a signal, standing still.
pub fn code_of_child(body: impl FnOnce() -> u8) -> Option<u8> {
    // SAFETY: the child runs `body` and leaves by `_exit`. What it needs of libc works after a fork among threads: glibc takes its
    // allocator's locks itself.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no child process");
    if child == 0 {
        // SAFETY: takes a number; the signal's action is the default one, which ends the child.
        unsafe { libc::alarm(CHILD_SECONDS_MAX) };
        let code = catch_unwind(AssertUnwindSafe(body)).unwrap_or(PANICKED);
        // SAFETY: nothing of the parent's runs at this exit.
        unsafe { libc::_exit(code.into()) }
    }
    let mut status = -1;
    // SAFETY: `status` is written; no other thread waits for this child.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(waited, child, "no other thread waits for it");
    let code = libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status));
    code.and_then(|code| u8::try_from(code).ok()).filter(|&code| code != PANICKED)
}

/// Runs `body` in a child; whether it gave true there, in time.
pub fn in_child(body: impl FnOnce() -> bool) -> bool {
    code_of_child(|| u8::from(!body())) == Some(0)
}

/// Runs `body` in a child; whether the child came to its end without a panic.
pub fn is_right_in_child(body: impl FnOnce()) -> bool {
    in_child(|| {
        body();
        true
    })
}
