//! A child process that goes on where its parent is.
//!
//! Path of a child that hangs: a tick each second that it can run -> after [`TICKS_MAX`] of them it says where it
//! stands and ends -> its parent reports how it ended. Time in which the system does not let it run is no fault of it: while a process
//! is stopped or starved, ticks become one.

use std::backtrace::Backtrace;
use std::ffi::c_int;
use std::io::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::{mem, ptr};

/// Runs `body` in a child.
///
/// # Errors
///
/// How the child ended, where it did not come to the end of `body`: by a panic, by a signal, or standing still.
///
/// # Panics
///
/// Where there can be no child.
pub fn forked(body: impl FnOnce()) -> Result<(), String> {
    // SAFETY: the child runs `body` and leaves by `_exit`. What it needs of libc works after a fork among threads:
    // glibc takes its allocator's locks itself.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "no child process");
    if child == 0 {
        watch();
        let failed = catch_unwind(AssertUnwindSafe(body)).is_err();
        let code = if failed { PANICKED } else { 0 };
        // SAFETY: nothing of the parent's runs at this exit.
        unsafe { libc::_exit(code) }
    }
    let mut status = 0;
    // SAFETY: `status` is written; no other thread waits for this child.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(waited, child, "no other thread waits for a child");
    match (libc::WIFEXITED(status), libc::WEXITSTATUS(status)) {
        (true, 0) => Ok(()),
        (true, PANICKED) => Err("panicked".to_owned()),
        (true, STOOD) => Err(format!("ran for {TICKS_MAX} s and stood where it says")),
        (true, code) => Err(format!("ended with {code}")),
        _ => Err(format!("was ended by signal {}", libc::WTERMSIG(status))),
    }
}

const PANICKED: c_int = 1;
const STOOD: c_int = 2;

/// Assumed, not measured: 60 s, because a child has one sequence's rest to run, which takes milliseconds.
const TICKS_MAX: u32 = 60;

/// Seconds of the child's own.
static TICKS: AtomicU32 = AtomicU32::new(0);

/// Has this process looked at each second.
fn watch() {
    TICKS.store(0, Relaxed);
    // SAFETY: all zeros is an action without flags and with an empty mask.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_flags = libc::SA_RESTART;
    action.sa_sigaction = tick as extern "C" fn(c_int) as usize;
    let second = libc::timeval { tv_sec: 1, tv_usec: 0 };
    let timer = libc::itimerval { it_interval: second, it_value: second };
    // SAFETY: the handler below takes a number.
    unsafe { libc::sigaction(libc::SIGALRM, &raw const action, ptr::null_mut()) };
    // SAFETY: a timer of this process alone.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, ptr::null_mut()) };
}

extern "C" fn tick(_signal: c_int) {
    if TICKS.fetch_add(1, Relaxed) < TICKS_MAX {
        return;
    }
    // What follows may want what the thread under this handler holds: then the signal ends it.
    // SAFETY: takes numbers.
    unsafe { libc::signal(libc::SIGALRM, libc::SIG_DFL) };
    let place = format!("a child stands still at:\n{}\n", Backtrace::force_capture());
    // Whether it is read or not, the child ends.
    io::stderr().write_all(place.as_bytes()).unwrap_or_default();
    // SAFETY: as above, in `forked`.
    unsafe { libc::_exit(STOOD) };
}
