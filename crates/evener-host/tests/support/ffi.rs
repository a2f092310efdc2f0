//! Signals to every thread of this process, whose handler does nothing and restarts no call: whatever sleeps in the kernel wakes up
//! with EINTR, again and again. And leases on files (fcntl(2)), of which signals tell.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::os::fd::AsRawFd as _;
use std::os::raw::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fs, io, mem, process, ptr};

/// As long as it lives, each thread gets some thousand signals a second.
pub(crate) struct Storm {
    is_over: Arc<AtomicBool>,
    sender: Option<JoinHandle<()>>,
}

extern "C" fn nothing(_: c_int) {}

/// How often this process was told of a pipe or socket without a reader. By default that ends a process; Rust's own programs ignore it.
pub(crate) static BROKEN_PIPES: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_: c_int) {
    BROKEN_PIPES.fetch_add(1, Relaxed);
}

/// From now on counts [`BROKEN_PIPES`].
pub(crate) fn count_broken_pipes() {
    handle(libc::SIGPIPE, count);
}

fn handle(signal: c_int, handler: extern "C" fn(c_int)) {
    // SAFETY: all zero is an action without flags and mask.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = (handler as *const ()).expose_provenance();
    // SAFETY: the action is whole, and its handler may interrupt anything, for it does at most one atomic addition.
    assert_eq!(unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) }, 0);
}

/// A thread that opens the file from now on waits, until the lease is given back or its time is over.
pub(crate) fn write_lease(file: &fs::File) -> io::Result<()> {
    // SAFETY: takes numbers.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The signal by which a lease is asked back would end this process.
pub(crate) fn take_no_notice_of_leases() {
    handle(libc::SIGIO, nothing);
}

impl Storm {
    pub(crate) fn begin() -> Self {
        handle(libc::SIGUSR1, nothing);
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        let sender = thread::spawn(move || {
            while !seen.load(Relaxed) {
                signal_all_threads();
                thread::sleep(Duration::from_micros(200));
            }
        });
        Self { is_over, sender: Some(sender) }
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        self.sender.take().into_iter().for_each(|sender| drop(sender.join()));
    }
}

fn signal_all_threads() {
    // No wider than the words that `syscall` takes, be they of 32 bits.
    let process = libc::pid_t::try_from(process::id()).unwrap();
    let threads = fs::read_dir("/proc/self/task").unwrap().filter_map(Result::ok);
    for thread in threads.filter_map(|entry| entry.file_name().to_str()?.parse::<libc::pid_t>().ok()) {
        // SAFETY: takes numbers; a thread that has ended meanwhile gets nothing.
        unsafe { libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGUSR1) };
    }
}
