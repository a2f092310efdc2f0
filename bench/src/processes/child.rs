//! A forked process of a measurement, which ends by itself: at the end of its work, or by an alarm that the kernel rings.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A child of this process. Killed and reaped when this is dropped, unless it has ended.
#[derive(Debug)]
pub(super) struct Child {
    pid: libc::pid_t,
    is_reaped: bool,
}

impl Child {
    /// Forks a child that does `work`, and ends well where that says so. It lives for so many seconds at most, whatever happens to its parent.
    pub(super) fn fork(seconds_max: u32, work: impl FnOnce() -> bool) -> io::Result<Self> {
        // SAFETY: the child runs the closure, whose allocations glibc prepares a fork for, and leaves by `_exit`, which runs nothing of the parent's.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: takes a number; the signal's action is the default one, which ends the child.
            unsafe { libc::alarm(seconds_max) };
            let is_well = catch_unwind(AssertUnwindSafe(work)).unwrap_or(false);
            // SAFETY: ends the child.
            unsafe { libc::_exit(i32::from(!is_well)) };
        }
        if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(Self { pid, is_reaped: false }) }
    }

    /// Its process id.
    pub(super) const fn id(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Waits for its end; says whether it ended by itself and well.
    pub(super) fn ends_well(mut self) -> bool {
        self.reap() == 0
    }

    fn reap(&mut self) -> libc::c_int {
        self.is_reaped = true;
        let mut status = -1;
        // SAFETY: the place is this frame's; no other thread waits for this child.
        while unsafe { libc::waitpid(self.pid, &raw mut status, 0) } < 0 {
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return -1;
            }
        }
        status
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.is_reaped {
            // SAFETY: takes numbers; the child is not reaped, so the number is still its own.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
            self.reap();
        }
    }
}
