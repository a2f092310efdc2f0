//! A descriptor in a process that is not ours: the program may close any number and open a file of its own there.
//!
//! Daemons close what they did not open (`closefrom`, python-daemon), others put files at fixed numbers (`dup2`). So each use begins
//! with a look whether the number still leads to the file that was opened ([`CheckedFd::checked`]), and so does the end: what is not
//! ours is neither used nor closed. OpenSSL does the same for its own (`providers/implementations/rands/seeding/rand_unix.c`).
//!
//! A file is known by a mark on its open file description, which `dup` and `fork` share and nothing else has: the signal number of
//! `fcntl(F_SETSIG)`, which has no effect without `O_ASYNC`, which no code sets on a file of ours. To read it is the shortest of system calls
//! (0.2 us where its inode takes 0.4, docs/results/instructions.md). Beside it a count per number tells ours from a later one of ours at the same number.
//! Where marks cannot be set, or the number is beyond the counts, device and inode are what is left, as with OpenSSL: exact for sockets and
//! pipes, while events, epolls and the files of VFIO share one inode and a device node has one for all processes that open it. Not taken: `kcmp` (a second
//! descriptor that may be closed too, and not in every kernel), and `/proc/self/fdinfo` (a file opened and read per look).
//!
//! Limit: between the look and the use another thread may close the number and open it again. No call does both.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, IntoRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::call_count::note_call;

/// A descriptor that is looked at before it is used, and before it is closed when this is dropped.
#[derive(Debug)]
pub struct CheckedFd(KnownFd);

/// The number of a [`CheckedFd`] and how its file is known, for a user of it that may outlive it.
#[derive(Clone, Copy, Debug)]
pub struct KnownFd {
    number: RawFd,
    file: Identity,
}

/// How the file is known again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Identity {
    /// The mark is on it, and of ours it is the one with this count at its number.
    Marked(u32),
    /// Device and inode.
    Inode(libc::dev_t, libc::ino_t),
}

impl CheckedFd {
    /// Takes `fd`, and moves it above the standard ones, 0 to 2.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        let fd = above_standard(fd)?;
        mark(fd.as_raw_fd());
        Self::known_by_mark_or_inode(fd)
    }

    fn known_by_mark_or_inode(fd: OwnedFd) -> io::Result<Self> {
        let number = fd.as_raw_fd();
        let count = count_at(number).filter(|_| is_marked(number));
        let file = match count {
            // Relaxed, here and below: a thread gets the descriptor and its count by the same path.
            Some(count) => Identity::Marked(count.fetch_add(1, Relaxed).wrapping_add(1)),
            None => inode_of(number)?,
        };
        Ok(Self(KnownFd { number: fd.into_raw_fd(), file }))
    }

    /// Lends the descriptor for one use, where its number still leads to the file that was opened.
    ///
    /// # Errors
    ///
    /// `EBADF` where it does not: the program closed it, and may have another file there.
    #[inline]
    pub fn checked(&self) -> io::Result<BorrowedFd<'_>> {
        self.0.checked()
    }

    /// Returns what it is known by.
    #[must_use]
    pub const fn known(&self) -> KnownFd {
        self.0
    }
}

impl KnownFd {
    /// Returns the number, for a program that waits for it.
    #[must_use]
    pub const fn number(self) -> RawFd {
        self.number
    }

    /// As [`CheckedFd::checked`].
    ///
    /// # Errors
    ///
    /// As there, and where its owner closed it.
    #[inline]
    pub fn checked(&self) -> io::Result<BorrowedFd<'_>> {
        note_call();
        if !self.is_ours() {
            return Err(io::Error::from_raw_os_error(libc::EBADF));
        }
        // SAFETY: it was open a moment ago. Where another thread closes it meanwhile, a call fails or meets another file, and memory
        // is safe: nothing here rests on which file a number leads to.
        Ok(unsafe { BorrowedFd::borrow_raw(self.number) })
    }

    /// Makes another descriptor of the same open file.
    ///
    /// # Errors
    ///
    /// `EBADF` where this one is not ours any more; the system's otherwise.
    pub fn try_clone(&self) -> io::Result<CheckedFd> {
        CheckedFd::known_by_mark_or_inode(duplicate(self.checked()?)?)
    }

    fn is_ours(&self) -> bool {
        if cfg!(mutant = "descriptor_unchecked") {
            return true;
        }
        match self.file {
            Identity::Marked(own) => {
                count_at(self.number).is_some_and(|count| count.load(Relaxed) == own)
                    && is_marked(self.number)
            }
            Identity::Inode(..) => inode_of(self.number).is_ok_and(|inode| inode == self.file),
        }
    }
}

impl Drop for CheckedFd {
    fn drop(&mut self) {
        if self.0.is_ours() {
            // SAFETY: it leads to the file that `new` took, and nothing else closes it.
            drop(unsafe { OwnedFd::from_raw_fd(self.0.number) });
        }
    }
}

/// Device and inode of an open file.
fn inode_of(number: RawFd) -> io::Result<Identity> {
    let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: takes any number, and the place has the size that the call fills.
    if unsafe { libc::fstat(number, stat.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so it filled the place.
    let stat = unsafe { stat.assume_init() };
    Ok(Identity::Inode(stat.st_dev, stat.st_ino))
}

/// By number: how many descriptors of ours have been there.
static COUNTS: [AtomicU32; NUMBERS] = [const { AtomicU32::new(0) }; NUMBERS];

/// Four times the usual limit of open files.
const NUMBERS: usize = 4096;

fn count_at(number: RawFd) -> Option<&'static AtomicU32> {
    COUNTS.get(usize::try_from(number).ok()?)
}

fn above_standard(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() > libc::STDERR_FILENO {
        return Ok(fd);
    }
    // SAFETY: the descriptor is owned, so it is open.
    duplicate(unsafe { BorrowedFd::borrow_raw(fd.as_raw_fd()) })
}

fn duplicate(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only.
    let twin = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, libc::STDERR_FILENO + 1) };
    if twin < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened it for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(twin) })
}

/// Marks the open file, where the system keeps marks.
#[cfg(target_os = "linux")]
fn mark(number: RawFd) {
    // SAFETY: takes numbers only.
    unsafe { libc::fcntl(number, F_SETSIG, mark_number()) };
}

#[cfg(target_os = "linux")]
#[inline]
fn is_marked(number: RawFd) -> bool {
    // SAFETY: takes numbers only.
    unsafe { libc::fcntl(number, F_GETSIG) == mark_number() }
}

/// The last real-time signal but one: programs that have a use for `F_SETSIG` (leases, `O_ASYNC`) begin with the first.
#[cfg(target_os = "linux")]
#[inline]
fn mark_number() -> libc::c_int {
    libc::SIGRTMAX() - 1
}

// Of `asm-generic/fcntl.h`; the crate libc has them for some C libraries only.
#[cfg(target_os = "linux")]
const F_SETSIG: libc::c_int = 10;
#[cfg(target_os = "linux")]
const F_GETSIG: libc::c_int = 11;

#[cfg(not(target_os = "linux"))]
fn mark(_: RawFd) {}

#[cfg(not(target_os = "linux"))]
fn is_marked(_: RawFd) -> bool {
    false
}
