//! The state in which the program was started: [`look`] (before `main`) -> [`was_closed`], [`was_ignored`].
//!
//! Rust's runtime has `SIGPIPE` ignored and opens `/dev/null` in place of a standard descriptor that is closed, both before `main`. So a program cannot
//! see any more whether `nohup` or `trap ''` had a signal ignored, or whether what it writes will ever be read.

use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// Bit `n`: signal `n` was ignored. Written before `main`, by the only thread.
static IGNORED: AtomicU32 = AtomicU32::new(0);

/// Bit `n`: descriptor `n` was closed. Written before `main`, by the only thread.
static CLOSED: AtomicU32 = AtomicU32::new(0);

/// Whether a standard descriptor (0 to 2) was closed when the program was started. What is written there since is not read.
#[must_use]
pub fn was_closed(descriptor: RawFd) -> bool {
    is_set(&CLOSED, descriptor)
}

/// Whether a signal (1 to 31) was ignored when the program was started. It is to stay so.
#[must_use]
pub fn was_ignored(signal: i32) -> bool {
    is_set(&IGNORED, signal)
}

fn is_set(bits: &AtomicU32, number: i32) -> bool {
    // Relaxed: written before there was a second thread.
    u32::try_from(number).ok().and_then(|number| bits.load(Relaxed).checked_shr(number)).unwrap_or(0) & 1 == 1
}

/// What the loader calls before `main`.
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
#[used]
static BEFORE_MAIN: extern "C" fn() = look;

/// Asks the system only; nothing of Rust's runtime is there yet.
extern "C" fn look() {
    let ignored = (1..32).filter(|&signal| is_ignored(signal)).fold(0, |bits, signal| bits | (1 << signal));
    IGNORED.store(ignored, Relaxed);
    let closed = (0..3).filter(|&descriptor| is_closed(descriptor));
    CLOSED.store(closed.fold(0, |bits, descriptor| bits | (1 << descriptor)), Relaxed);
}

fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: nothing is set; the place has the size that the call fills.
    if unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: the call succeeded, so it filled the place.
    unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

fn is_closed(descriptor: RawFd) -> bool {
    // SAFETY: asks for flags only, of any number.
    unsafe { libc::fcntl(descriptor, libc::F_GETFD) == -1 }
}
