//! Notifies clients (vhost says "calls"): eventfds that are raised without ever waiting for who reads them.
//!
//! A client has the same eventfd open. It may fill the count and make the file blocking at any moment, also between a look and a
//! write; a write would then wait for it, and every other client with it. What the kernel raises by itself when an asynchronous
//! read ends never waits: a full count stays full. So a call is a read of nothing from `/dev/null` that ends in a call; where
//! the system has no asynchronous reads it is a write, and the report says so.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::ptr;
use std::sync::Arc;

/// Raises eventfds.
pub(crate) struct Notifier {
    reads: Option<Reads>,
}

impl Notifier {
    /// With asynchronous reads where the system has them.
    pub(crate) fn new() -> Self {
        Self { reads: Reads::new().ok().filter(|_| !cfg!(mutant = "host_call_waits")) }
    }

    /// Whether a client could make [`Notifier::raise`] wait.
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
    place: libc::c_ulong,
    nothing: File,
    /// Ends that were not taken away.
    ended: usize,
}

/// One read: `struct iocb` of `linux/aio_abi.h`. Of the two fields that some processors have the other way round both are 0.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Read {
    data: u64,
    key: u32,
    rw_flags: i32,
    opcode: u16,
    priority: i16,
    file: u32,
    into: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    raised: u32,
}

/// What the kernel says of a read that has ended: `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct End {
    data: u64,
    read: u64,
    results: [i64; 2],
}

const _: () = assert!(size_of::<Read>() == 64 && size_of::<End>() == 32, "as in linux/aio_abi.h");

/// `IOCB_CMD_PREAD`.
const PREAD: u16 = 0;
/// `IOCB_FLAG_RESFD`: the end of the read raises an eventfd.
const RAISES: u32 = 1;

/// Reads of one system call. The place has space for four times as many, so that it is emptied in time.
const READS_MAX: usize = 64;

impl Reads {
    fn new() -> io::Result<Self> {
        let nothing = File::open("/dev/null")?;
        let mut place: libc::c_ulong = 0;
        let space = libc::c_long::try_from(4 * READS_MAX).expect("a few");
        // SAFETY: the kernel writes the number of the place, and `place` is as wide as it says.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, space, ptr::from_mut(&mut place)) };
        if made == 0 { Ok(Self { place, nothing, ended: 0 }) } else { Err(io::Error::last_os_error()) }
    }

    /// Raises up to [`READS_MAX`] eventfds.
    fn raise(&mut self, calls: &[Arc<OwnedFd>]) {
        if self.ended + calls.len() > 2 * READS_MAX {
            self.take_ends();
        }
        let number = |file: i32| u32::try_from(file).expect("a descriptor that is open");
        let file = number(self.nothing.as_raw_fd());
        let read = |call: &Arc<OwnedFd>| Read {
            opcode: PREAD,
            file,
            flags: RAISES,
            raised: number(call.as_raw_fd()),
            ..Read::default()
        };
        let reads: Vec<Read> = calls.iter().map(read).collect();
        let mut pointers: Vec<*const Read> = reads.iter().map(ptr::from_ref).collect();
        while !pointers.is_empty() {
            // Where the kernel refuses the first, that one goes without its call: its client has closed nothing of ours, so
            // only a kernel without memory does that.
            let begun = usize::try_from(self.submit(&mut pointers)).unwrap_or(0);
            self.ended += begun;
            pointers.drain(..begun.max(1));
        }
    }

    fn submit(&self, pointers: &mut [*const Read]) -> libc::c_long {
        let count = libc::c_long::try_from(pointers.len()).expect("at most READS_MAX");
        // SAFETY: each pointer is to a whole record that lives through the call, in which the kernel copies it; the reads
        // are of no bytes, so they write nowhere.
        unsafe { libc::syscall(libc::SYS_io_submit, self.place, count, pointers.as_mut_ptr()) }
    }

    /// Makes space for further ends.
    fn take_ends(&mut self) {
        let mut ends = [End::default(); 2 * READS_MAX];
        let space = libc::c_long::try_from(ends.len()).expect("a few");
        let (least, at_once): (libc::c_long, _) = (0, ptr::null_mut::<libc::timespec>());
        // SAFETY: the kernel writes at most `space` records, and there are as many; least 0, so it does not wait.
        let taken = unsafe {
            libc::syscall(libc::SYS_io_getevents, self.place, least, space, ends.as_mut_ptr(), at_once)
        };
        self.ended -= usize::try_from(taken).unwrap_or(0).min(self.ended);
    }
}

impl Drop for Reads {
    fn drop(&mut self) {
        // SAFETY: the place was made by `new` and is not shared.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.place) };
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
        let mut all = Notifier::new();
        assert!(!all.may_wait(), "this system has asynchronous reads");
        (0..5).for_each(|_| all.raise(&calls));
        assert!(calls.iter().all(|call| value(call) == 5));
    }

    #[test]
    fn a_full_count_of_a_blocking_eventfd_makes_nobody_wait() {
        let full = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        write(&full, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        let other = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        let mut all = Notifier::new();
        assert!(!all.may_wait(), "or the next line would");
        all.raise(&[Arc::clone(&full), Arc::clone(&other)]);
        assert_eq!(value(&other), 1);
        assert!(value(&full) >= u64::MAX - 1);
    }
}
