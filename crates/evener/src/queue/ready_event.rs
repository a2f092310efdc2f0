//! An eventfd that is readable while finished jobs wait, for owners that wait in poll, epoll or io_uring.
//!
//! It is written once for all jobs that come until the owner has taken everything: [`Readiness`] has the protocol. Who has no such descriptor
//! pays one load per push.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evener_ring::Readiness;
use rustix::event::{EventfdFlags, eventfd};

/// The event.
#[derive(Default)]
pub(crate) struct ReadyEvent {
    is_open: AtomicBool,
    readiness: Readiness,
    /// Held while it is written and read.
    fd: Mutex<Option<Arc<OwnedFd>>>,
}

impl ReadyEvent {
    /// Opens it, where it is not open: readable at first, whatever a thread is about to do that raised the last one. The owner looks afterwards
    /// and [lowers](Self::lower) it.
    pub(crate) fn open(&self) -> io::Result<Arc<OwnedFd>> {
        let mut fd = self.fd();
        if let Some(fd) = &*fd {
            return Ok(Arc::clone(fd));
        }
        let opened = Arc::new(eventfd(1, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        *fd = Some(Arc::clone(&opened));
        self.readiness.raise(|| ());
        self.is_open.store(true, Ordering::SeqCst);
        Ok(opened)
    }

    /// Closes it: its owner goes.
    pub(crate) fn close(&self) {
        if self.is_open.load(Ordering::Relaxed) {
            let mut fd = self.fd();
            self.is_open.store(false, Ordering::Relaxed);
            *fd = None;
        }
    }

    /// Makes it readable, where it is not: jobs wait.
    #[inline]
    pub(crate) fn raise(&self) {
        if self.is_open.load(Ordering::Acquire) {
            self.readiness.raise(|| self.with(|fd| rustix::io::write(fd, &1_u64.to_ne_bytes())));
        }
    }

    /// Makes it unreadable, where it is readable; whether it did, and the owner must look once more.
    pub(crate) fn lower(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
            && self.readiness.lower(|| self.with(|fd| rustix::io::read(fd, &mut [0; 8])))
    }

    fn with(&self, act: impl FnOnce(BorrowedFd<'_>) -> rustix::io::Result<usize>) {
        if let Some(fd) = self.fd().as_ref() {
            // It never blocks: a count of one at most is written, and read where it was. A descriptor that the program closed answers
            // with an error upon which nothing here could act.
            act(fd.as_fd()).ok();
        }
    }

    fn fd(&self) -> MutexGuard<'_, Option<Arc<OwnedFd>>> {
        self.fd.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
