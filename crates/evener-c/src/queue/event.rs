//! The descriptor of a queue whose jobs are run where they are submitted.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};

use rustix::event::{EventfdFlags, eventfd};

/// An eventfd that is readable while jobs wait. One thread has it at a time.
pub(super) struct OwnEvent {
    fd: OwnedFd,
    is_readable: bool,
}

impl OwnEvent {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { fd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?, is_readable: false })
    }

    pub(super) fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    pub(super) fn set(&mut self, is_readable: bool) {
        // It never blocks: one is written, and read where it was. What else could fail is a descriptor that the program closed.
        match (self.is_readable, is_readable) {
            (false, true) => _ = rustix::io::write(&self.fd, &1_u64.to_ne_bytes()),
            (true, false) => _ = rustix::io::read(&self.fd, &mut [0; 8]),
            _ => {}
        }
        self.is_readable = is_readable;
    }
}
