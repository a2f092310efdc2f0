//! Reads into memory of a reader's own, each waited for, and none for ever.

use std::io;
use std::mem::{self, ManuallyDrop};
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::time::{Duration, Instant};

use crate::place::{Place, Read};

/// Reads one after the other.
///
/// ```text
/// make_room -> read (begin -> wait, or leave) -> text
/// ```
#[derive(Debug)]
pub struct Reader {
    place: ManuallyDrop<Place>,
    room: Room,
    /// A read that was left. The kernel may write to the room for ever: it stays, and so does the place.
    is_left: bool,
}

/// How a read failed.
#[derive(Debug)]
pub enum ReadError {
    /// It did not end in time. The reader is of no more use.
    Late,
    /// The system's reason.
    Failed(io::Error),
}

impl Reader {
    /// One without memory.
    ///
    /// # Errors
    ///
    /// As [`Place::new`].
    pub fn new() -> io::Result<Self> {
        Ok(Self { place: ManuallyDrop::new(Place::new(1)?), room: Room::empty(), is_left: false })
    }

    /// Sees to memory for so many bytes. What stood there is gone where there was less.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn make_room(&mut self, bytes: usize) -> io::Result<()> {
        if self.room.bytes < bytes && !self.is_left {
            self.room = Room::new(bytes.next_power_of_two().max(ROOM_BYTES_MIN))?;
        }
        Ok(())
    }

    /// Reads up to `bytes` of `file` to the memory from `start` on, and says how many. Whatever becomes of it, it is back by the moment
    /// that `until` names, which is asked where the read has not ended at once, if the kernel begins such reads without waiting.
    ///
    /// # Errors
    ///
    /// [`ReadError`].
    ///
    /// # Panics
    ///
    /// Where there is no memory for that ([`Self::make_room`]), or a read was left.
    pub fn read(
        &mut self,
        file: BorrowedFd<'_>,
        start: usize,
        bytes: usize,
        until: impl Fn() -> Instant,
    ) -> Result<usize, ReadError> {
        assert!(!self.is_left, "a read was left");
        let read = Read::into_memory(file, self.room.part(start, bytes), bytes);
        // SAFETY: the part is this reader's, which is borrowed until the end was taken; a read that is left keeps it for good.
        unsafe { self.place.submit_one(&read) }.map_err(ReadError::Failed)?;
        self.is_left = true;
        let result = match self.place.take_from_ring() {
            Some(result) => result,
            None => self.wait(until())?,
        };
        self.is_left = false;
        usize::try_from(result).map_err(|_| {
            let number = result.checked_neg().and_then(|number| i32::try_from(number).ok());
            ReadError::Failed(io::Error::from_raw_os_error(number.unwrap_or(libc::EIO)))
        })
    }

    /// The result of the read that is under way.
    fn wait(&self, until: Instant) -> Result<i64, ReadError> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.place.take_one(left).map_err(ReadError::Failed)? {
                Some(result) => return Ok(result),
                None if left == Duration::ZERO => return Err(ReadError::Late),
                None => {}
            }
        }
    }

    /// The memory, whose first bytes were read. Nothing where a read was left.
    #[must_use]
    pub fn memory(&mut self) -> &mut [u8] {
        if self.is_left { &mut [] } else { self.room.bytes_mut() }
    }

    /// Whether a read was left: to be dropped, and no more.
    #[must_use]
    pub const fn is_left(&self) -> bool {
        self.is_left
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if self.is_left {
            // Its end would be waited for.
            return self.room.leave();
        }
        // SAFETY: here alone, and nothing comes after.
        unsafe { ManuallyDrop::drop(&mut self.place) };
    }
}

/// The memory is never less: a TLS record, and more.
const ROOM_BYTES_MIN: usize = 32 << 10;

/// Pages of their own. A fork leaves the parent's as they are and gives the child empty ones: shared ones would be copied when the
/// parent next writes there, and what the kernel then reads would go to the child.
#[derive(Debug)]
struct Room {
    start: NonNull<u8>,
    bytes: usize,
}

impl Room {
    const fn empty() -> Self {
        Self { start: NonNull::dangling(), bytes: 0 }
    }

    fn new(bytes: usize) -> io::Result<Self> {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at a place that the kernel chooses touches no memory of ours.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let room = Self { start, bytes };
        // SAFETY: the range is this mapping's, and its bytes may become zero in a child at any time.
        let advised = unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_WIPEONFORK) };
        if advised == 0 { Ok(room) } else { Err(io::Error::last_os_error()) }
    }

    /// Where a part begins.
    fn part(&self, start: usize, bytes: usize) -> NonNull<u8> {
        let fits = start.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        assert!(fits, "{bytes} bytes from {start} on do not fit");
        // SAFETY: within the mapping, or its end.
        unsafe { self.start.add(start) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the mapping has so many bytes, which are zero or were read, and lives as long as this; no read is under way, or
        // `Reader::memory` would not lend it.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// Leaves it to the kernel, for good.
    fn leave(&mut self) {
        mem::forget(mem::replace(self, Self::empty()));
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: this is the range that was mapped, and nothing of it is lent.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
        }
    }
}

// SAFETY: the mapping belongs to the process, not to the thread that made it.
unsafe impl Send for Room {}
