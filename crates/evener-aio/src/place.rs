//! The kernel's place for asynchronous reads that have ended.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A place; it ends with this, once all of its reads have.
#[derive(Debug)]
pub struct Place {
    number: libc::c_ulong,
}

/// One read: `struct iocb` of `linux/aio_abi.h`. Of the two fields that some processors have the other way round both are 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Read {
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
#[derive(Clone, Copy, Debug, Default)]
struct End {
    data: u64,
    read: u64,
    /// Bytes, or an error's number below zero.
    result: i64,
    more: i64,
}

/// What lies at the place's address, before the ends: `struct aio_ring` of the kernel's `fs/aio.c`, which user space reads since
/// Linux 2.6 (libaio's `user_io_getevents` did first).
#[repr(C)]
struct Ring {
    id: u32,
    count: u32,
    head: AtomicU32,
    tail: AtomicU32,
    magic: u32,
    compatible: u32,
    incompatible: u32,
    header_bytes: u32,
}

const _: () = assert!(size_of::<Read>() == 64 && size_of::<End>() == 32, "as in linux/aio_abi.h");

const RING_MAGIC: u32 = 0xa10a_10a1;

/// `IOCB_CMD_PREAD`.
const PREAD: u16 = 0;
/// `IOCB_FLAG_RESFD`: the end of the read raises an eventfd.
const RAISES: u32 = 1;

/// Ends that are taken with one call.
const TAKEN_MAX: usize = 128;

impl Read {
    /// A read of nothing, whose end raises an eventfd.
    #[must_use]
    pub fn raising(file: BorrowedFd<'_>, raised: BorrowedFd<'_>) -> Self {
        let raised = number(raised);
        Self { opcode: PREAD, file: number(file), flags: RAISES, raised, ..Self::default() }
    }

    /// A read of up to `bytes` to `into`.
    pub(crate) fn into_memory(file: BorrowedFd<'_>, into: NonNull<u8>, bytes: usize) -> Self {
        let (into, bytes) = (into.as_ptr().expose_provenance() as u64, bytes as u64);
        Self { opcode: PREAD, file: number(file), into, bytes, ..Self::default() }
    }
}

fn number(file: BorrowedFd<'_>) -> u32 {
    u32::try_from(file.as_raw_fd()).expect("a descriptor that is open")
}

impl Place {
    /// One with room for so many reads that have not been taken yet.
    ///
    /// # Errors
    ///
    /// The system's: it has none (`ENOSYS`), all of its places are in use (`EAGAIN`, `/proc/sys/fs/aio-max-nr`), or a sandbox
    /// forbids them.
    pub fn new(room: u16) -> io::Result<Self> {
        let mut number: libc::c_ulong = 0;
        // SAFETY: the kernel writes the number of the place, and `number` is as wide as it says.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, libc::c_long::from(room), &raw mut number) };
        if made == 0 { Ok(Self { number }) } else { Err(io::Error::last_os_error()) }
    }

    /// Begins reads, and says how many of them, from the first on.
    ///
    /// # Errors
    ///
    /// The system's, where it began none.
    ///
    /// # Safety
    ///
    /// The memory that reads write to is valid, and nobody else's, until their ends were taken; those of nothing need none.
    pub unsafe fn submit(&self, reads: &[Read]) -> io::Result<usize> {
        let mut pointers: Vec<*const Read> = reads.iter().map(ptr::from_ref).collect();
        // SAFETY: the caller's promise.
        unsafe { self.submit_all(&mut pointers) }
    }

    /// The same of one, without memory from the heap.
    ///
    /// # Safety
    ///
    /// As [`Self::submit`].
    pub(crate) unsafe fn submit_one(&self, read: &Read) -> io::Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.submit_all(&mut [ptr::from_ref(read)]) }.map(drop)
    }

    /// # Safety
    ///
    /// As [`Self::submit`], and each pointer is to a read.
    unsafe fn submit_all(&self, pointers: &mut [*const Read]) -> io::Result<usize> {
        let count = libc::c_long::try_from(pointers.len()).unwrap_or(libc::c_long::MAX);
        // SAFETY: each pointer is to a whole record that lives through the call, in which the kernel copies it; where it writes
        // later is the caller's promise.
        let begun = unsafe { libc::syscall(libc::SYS_io_submit, self.number, count, pointers.as_mut_ptr()) };
        usize::try_from(begun).map_err(|_| io::Error::last_os_error())
    }

    /// Takes away ends that are there, up to a number; says how many.
    pub fn take_ends(&self) -> usize {
        let mut ends = [MaybeUninit::uninit(); TAKEN_MAX];
        self.take(&mut ends, 0, Duration::ZERO).unwrap_or(0)
    }

    /// Takes the only end, as the result of its read: bytes, or an error's number below zero. `None` where it is not there after
    /// `patience`, or a signal came.
    pub(crate) fn take_one(&self, patience: Duration) -> io::Result<Option<i64>> {
        let mut end = [MaybeUninit::uninit()];
        match self.take(&mut end, 1, patience) {
            // SAFETY: the kernel has written one.
            Ok(1) => Ok(Some(unsafe { end[0].assume_init() }.result)),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes `least` ends or more, as far as they come within `patience`.
    fn take(&self, ends: &mut [MaybeUninit<End>], least: u8, patience: Duration) -> io::Result<usize> {
        let (least, room) =
            (libc::c_long::from(least), libc::c_long::try_from(ends.len()).unwrap_or(libc::c_long::MAX));
        let mut patience = libc::timespec {
            // The C library says how wide these are; what does not fit is a wait of decades.
            tv_sec: patience.as_secs().try_into().unwrap_or_else(|_| i32::MAX.into()),
            tv_nsec: i32::try_from(patience.subsec_nanos()).expect("below 10^9").into(),
        };
        let (ends, patience) = (ends.as_mut_ptr(), &raw mut patience);
        // SAFETY: the kernel writes at most `room` records, and there are as many; it reads the time, which is this frame's.
        let taken =
            unsafe { libc::syscall(libc::SYS_io_getevents, self.number, least, room, ends, patience) };
        usize::try_from(taken).map_err(|_| io::Error::last_os_error())
    }

    /// Takes an end that is there already, as the result of its read, without a call into the kernel.
    pub(crate) fn take_from_ring(&self) -> Option<i64> {
        let ring = ptr::with_exposed_provenance::<Ring>(usize::try_from(self.number).ok()?);
        // SAFETY: a place's number is the address of its ring, which is mapped as long as the place is (`aio_setup_ring` of the
        // kernel); its words are read and written as atomics, or never change.
        let ring = unsafe { ring.as_ref() }?;
        let is_known = ring.magic == RING_MAGIC && ring.incompatible == 0;
        if !is_known || ring.header_bytes as usize != size_of::<Ring>() {
            return None;
        }
        // Relaxed: this thread alone takes.
        let head = ring.head.load(Ordering::Relaxed);
        // The kernel writes the end before the tail.
        if head == ring.tail.load(Ordering::Acquire) || head >= ring.count {
            return None;
        }
        let first = ptr::from_ref(ring).wrapping_add(1).cast::<End>();
        // SAFETY: the ends lie behind the header, `count` of them, and the kernel does not touch one between head and tail.
        let end = unsafe { first.wrapping_add(head as usize).read() };
        let next = head + 1;
        ring.head.store(if next < ring.count { next } else { 0 }, Ordering::Release);
        Some(end.result)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // SAFETY: the place was made by `new` and is nobody else's. The kernel waits for reads that have not ended.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.number) };
    }
}
