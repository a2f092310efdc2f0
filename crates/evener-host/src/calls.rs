//! Calls to clients: eventfds that are raised without ever waiting for who reads them.
//!
//! A client has the same eventfd open. It may fill the count and make the file blocking at any moment, also between a look and a
//! write; a write would then wait for it, and every other client with it. What the kernel raises by itself when an asynchronous
//! read ends never waits: a full count stays full. So a call is a read of nothing from `/dev/null` that ends in a call; where
//! the system has no asynchronous reads it is a write, and the report says so.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use evener_aio::{Place, Read};

/// Raises eventfds.
pub(crate) struct Calls {
    reads: Option<Reads>,
}

impl Calls {
    /// With asynchronous reads where the system has them.
    pub(crate) fn new() -> Self {
        Self { reads: Reads::new().ok().filter(|_| !cfg!(mutant = "host_call_waits")) }
    }

    /// Whether a client could make [`Calls::raise`] wait.
    pub(crate) const fn may_wait(&self) -> bool {
        self.reads.is_none()
    }

    /// Raises each by one.
    pub(crate) fn raise(&mut self, calls: &[Arc<OwnedFd>]) {
        for some in calls.chunks(READS_MAX) {
            match &mut self.reads {
                Some(reads) => reads.raise(some),
                // It fails where the count is full, which is enough of a call.
                None => some.iter().for_each(|call| {
                    rustix::io::write(call, &1_u64.to_ne_bytes()).ok();
                }),
            }
        }
    }
}

/// The kernel's place for asynchronous reads that have ended, and what is read.
struct Reads {
    place: Place,
    nothing: File,
    /// Ends that were not taken away.
    ended: usize,
}

/// Reads of one system call. The place has room for four times as many, so that it is emptied in time.
const READS_MAX: usize = 64;
const ROOM: u16 = 256;
const _: () = assert!(ROOM as usize == 4 * READS_MAX);

impl Reads {
    fn new() -> io::Result<Self> {
        let nothing = File::open("/dev/null")?;
        Ok(Self { place: Place::new(ROOM)?, nothing, ended: 0 })
    }

    /// Raises up to [`READS_MAX`] eventfds.
    fn raise(&mut self, calls: &[Arc<OwnedFd>]) {
        if self.ended + calls.len() > 2 * READS_MAX {
            self.ended -= self.place.take_ends().min(self.ended);
        }
        let nothing = self.nothing.as_fd();
        let reads: Vec<Read> = calls.iter().map(|call| Read::raising(nothing, call.as_fd())).collect();
        let mut rest = &reads[..];
        while !rest.is_empty() {
            // SAFETY: they are of no bytes, so they write nowhere.
            let begun = unsafe { self.place.submit(rest) }.unwrap_or(0);
            self.ended += begun;
            // Where the kernel refuses the first, that one goes without its call: its client has closed nothing of ours, so
            // only a kernel without memory does that.
            rest = &rest[begun.max(1)..];
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{EventfdFlags, eventfd};
    use rustix::io::{ioctl_fionbio, read, write};

    use super::*;

    fn value(file: &OwnedFd) -> u64 {
        let mut bytes = [0; 8];
        ioctl_fionbio(file, true).unwrap();
        read(file, &mut bytes).map_or(0, |_| u64::from_ne_bytes(bytes))
    }

    #[test]
    fn each_call_arrives_once_however_many_there_are() {
        let calls: Vec<Arc<OwnedFd>> =
            (0..150).map(|_| Arc::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap())).collect();
        let mut all = Calls::new();
        assert!(!all.may_wait(), "this system has asynchronous reads");
        (0..5).for_each(|_| all.raise(&calls));
        assert!(calls.iter().all(|call| value(call) == 5));
    }

    #[test]
    fn a_full_count_of_a_blocking_eventfd_makes_nobody_wait() {
        let full = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        write(&full, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        let other = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        let mut all = Calls::new();
        assert!(!all.may_wait(), "or the next line would");
        all.raise(&[Arc::clone(&full), Arc::clone(&other)]);
        assert_eq!(value(&other), 1);
        assert!(value(&full) >= u64::MAX - 1);
    }
}
