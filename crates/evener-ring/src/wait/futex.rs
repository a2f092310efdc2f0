//! The kernel's futex: sleeping on a 32-bit word.

use std::io;
use std::ptr;
use std::time::Duration;

use crate::Word;

/// Sleeps on a word in memory that processes share, until one of them wakes it, not at all where it no longer holds `expected`, at most for
/// `timeout`; returns whether the time had not passed yet. A signal ends the sleep too.
pub fn sleep_shared(word: &Word, expected: u32, timeout: Duration) -> bool {
    sleep_on(word, expected, Some(timeout), libc::FUTEX_WAIT)
}

/// Wakes one that sleeps on a word by [`sleep_shared`], in whichever process; returns whether there was one.
pub fn wake_shared(word: &Word) -> bool {
    wake_on(word, 1, libc::FUTEX_WAKE) > 0
}

/// The kernel's queue of sleepers, which it finds by the address of the word.
#[derive(Debug, Default)]
pub(crate) struct Futex;

impl Futex {
    /// Sleeps until woken, not at all where `word` no longer holds `expected`, at most for `timeout`; returns whether the
    /// time had not passed yet. A signal ends the sleep too.
    pub(crate) fn sleep(&self, word: &Word, expected: u32, timeout: Option<Duration>) -> bool {
        sleep_on(word, expected, timeout, libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG)
    }

    /// Wakes up to `count` of the threads that sleep on `word`.
    pub(crate) fn wake(&self, word: &Word, count: u32) {
        wake_on(word, count, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG);
    }
}

fn sleep_on(word: &Word, expected: u32, timeout: Option<Duration>, wait: libc::c_int) -> bool {
    let timeout = timeout.map(|span| libc::timespec {
        // The C library says how wide these are; what does not fit is a sleep of decades.
        tv_sec: span.as_secs().try_into().unwrap_or_else(|_| i32::MAX.into()),
        tv_nsec: i32::try_from(span.subsec_nanos()).expect("below 10^9").into(),
    });
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the word is borrowed and the time, if any, is this frame's: both outlive the call, which reads them only.
    let code = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), wait, expected, timeout) };
    // The other errors of a valid word and time are EAGAIN (the word had moved) and EINTR.
    code == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ETIMEDOUT)
}

/// Returns how many were woken.
fn wake_on(word: &Word, count: u32, wake: libc::c_int) -> libc::c_long {
    let count = libc::c_int::try_from(count).unwrap_or(libc::c_int::MAX);
    // SAFETY: a wake-up takes the word's address as a name and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), wake, count) }
}
