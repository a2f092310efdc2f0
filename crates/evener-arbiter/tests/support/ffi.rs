//! Processes of a test: forked, signalled, waited for.
#![allow(unsafe_code, reason = "room: fork, and what a process may do to itself")]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::panic::{AssertUnwindSafe, catch_unwind};

/// A child of this process, killed and reaped when this is dropped.
#[derive(Debug)]
pub struct Child(libc::pid_t);

/// Forks a child that does `work` and ends with 0 if that says that all was well.
pub fn child(work: impl FnOnce() -> bool) -> Child {
    // SAFETY: the child runs the closure, whose allocations glibc prepares a fork for, and ends without destructors of the parent's.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        // In its parent the same closure is forgotten below.
        let well = catch_unwind(AssertUnwindSafe(work)).unwrap_or(false);
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(!well)) };
    }
    // What it owns is the child's to drop.
    std::mem::forget(work);
    Child(pid)
}

impl Child {
    pub fn pid(&self) -> u32 {
        self.0.unsigned_abs()
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: takes numbers; the child is not reaped, so its number is still its own.
        assert_eq!(unsafe { libc::kill(self.0, signal) }, 0);
    }

    pub fn kill(self) {
        drop(self);
    }

    /// Waits for its end; says whether it ended by itself and well.
    pub fn ends_well(self) -> bool {
        let status = reap(self.0);
        std::mem::forget(self);
        status == 0
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.signal(libc::SIGKILL);
        reap(self.0);
    }
}

fn reap(pid: libc::pid_t) -> i32 {
    let mut status = -1;
    // SAFETY: the child is ours and not reaped yet, and the place is ours.
    while unsafe { libc::waitpid(pid, &raw mut status, 0) } != pid {}
    status
}

/// Effective user of this process.
pub fn uid() -> u32 {
    // SAFETY: always succeeds.
    unsafe { libc::geteuid() }
}

/// Becomes another user for good.
pub fn become_user(uid: u32) -> bool {
    // SAFETY: takes a number.
    unsafe { libc::setuid(uid) == 0 }
}

/// Children of this process are in a namespace of process ids of their own from now on.
pub fn number_children_anew() -> bool {
    // SAFETY: takes a number.
    unsafe { libc::unshare(libc::CLONE_NEWPID) == 0 }
}

/// Closes every descriptor above the standard ones, as daemons do.
pub fn close_all_descriptors() {
    // SAFETY: that this closes what others opened is what the test is about.
    assert_eq!(unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) }, 0);
}

/// Ends this process at once, as a death does that runs no code.
pub fn die() -> ! {
    // SAFETY: a signal to oneself.
    unsafe { libc::raise(libc::SIGKILL) };
    // The first process of a namespace does not hear its own signals.
    // SAFETY: ends this process.
    unsafe { libc::_exit(9) };
}
