//! Signals that ask a program to end: the first is noted, sets a flag and wakes who waits for it; a later one ends the program where it does
//! not come to its end by itself.
//!
//! Path: [`Caught::new`] -> the handler -> [`Caught::wait`] or [`Caught::signal`] -> clean up -> [`end_by`].

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64};

use libc::siginfo_t;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::time::{ClockId, clock_gettime};
use signal_hook::low_level::emulate_default_handler;

use crate::was_ignored;

/// After this many seconds a further signal ends the program at once. Two that come together are one: a shell and a terminal may both send one.
/// Assumed, not measured: 1 s, more than cleaning up takes.
const PATIENCE_SECONDS: i64 = 1;

/// Signals that were caught.
#[derive(Debug)]
pub struct Caught {
    /// Who waits.
    wakes: UnixStream,
    noted: Arc<Noted>,
}

/// What the handler writes; everybody reads.
#[derive(Debug)]
struct Noted {
    /// The first signal; 0 while there was none.
    signal: AtomicI32,
    /// When it came, in seconds of the monotonic clock.
    at_seconds: AtomicI64,
    flag: Arc<AtomicBool>,
    wake: UnixStream,
}

impl Caught {
    /// Catches `signals` from now on, but for those that were ignored when the program was started; the first of them sets `flag`.
    ///
    /// # Errors
    ///
    /// Where the system refuses a handler or a pair of sockets.
    pub fn new(signals: &[i32], flag: Arc<AtomicBool>) -> io::Result<Self> {
        let (wakes, wake) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let noted = Arc::new(Noted { signal: AtomicI32::new(0), at_seconds: AtomicI64::new(0), flag, wake });
        for &signal in signals.iter().filter(|&&signal| !was_ignored(signal)) {
            let noted = Arc::clone(&noted);
            let handler = move |info: &siginfo_t| {
                if !is_of_own_write(signal, info) {
                    noted.note(signal);
                }
            };
            // SAFETY: the handler stores to atomics, reads a clock and writes to a socket that does not block: all may be done in a signal handler.
            unsafe { signal_hook_registry::register_sigaction(signal, handler) }?;
        }
        Ok(Self { wakes, noted })
    }

    /// The first signal that came.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        Some(self.noted.signal.load(SeqCst)).filter(|&signal| signal != 0)
    }

    /// Waits until one comes. One thread waits.
    pub fn wait(&self) -> i32 {
        loop {
            if let Some(signal) = self.signal() {
                return signal;
            }
            // Whatever it answers: what was noted is looked at next.
            (&self.wakes).read_exact(&mut [0]).ok();
        }
    }
}

impl Noted {
    fn note(&self, signal: i32) {
        if self.signal.load(SeqCst) == 0 {
            // Before the signal itself, or another one in between would find that a second has passed.
            self.at_seconds.store(seconds(), SeqCst);
        }
        if self.signal.compare_exchange(0, signal, SeqCst, SeqCst).is_ok() {
            self.flag.store(true, SeqCst);
            (&self.wake).write_all(&[1]).ok();
        } else if seconds() - self.at_seconds.load(SeqCst) > PATIENCE_SECONDS {
            end_without_core(signal);
        }
    }
}

fn seconds() -> i64 {
    clock_gettime(ClockId::Monotonic).tv_sec
}

/// Whether a `SIGPIPE` is the kernel's answer to a write of this process, which gets `EPIPE` besides: the writer knows what that means.
fn is_of_own_write(signal: i32, info: &siginfo_t) -> bool {
    // SAFETY: such a signal always carries the process that it is from.
    let from = || unsafe { info.si_pid() };
    signal == libc::SIGPIPE
        && info.si_code == libc::SI_USER
        && from() == rustix::process::getpid().as_raw_pid()
}

/// Ends the program by `signal`, as if it had never been caught, so that who waits for it sees that. Memory is not dumped: keys are in it.
pub fn end_by(signal: i32) -> ! {
    end_without_core(signal);
    // Blocked or ignored, against the habit: what a shell says of such an end.
    std::process::exit(128 + signal)
}

/// All of it may be done in a signal handler.
fn end_without_core(signal: i32) {
    // Not RLIMIT_CORE: a program that the kernel hands dumps to gets them whatever the limit is.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).ok();
    emulate_default_handler(signal).ok();
}
