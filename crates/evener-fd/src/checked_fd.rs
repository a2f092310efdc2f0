//! A descriptor in somebody else's process, whose owner may close any number and open a file of his own there.
//!
//! Daemons close what they did not open (`closefrom`, python-daemon), others put files at fixed numbers (`dup2`). So each use begins
//! with a look whether the number still leads to the file that was opened ([`CheckedFd::checked`]), and so does the end: what is not
//! ours is neither used nor closed. OpenSSL does the same for its own (`providers/implementations/rands/seeding/rand_unix.c`).
//!
//! A socket, a pipe or a FIFO is known by device and inode, which no other has. Events, epolls and the files of VFIO have one inode
//! together, and a device node has one for all who open it: these are known by a mark on the open file description, which `dup` and
//! `fork` share and nothing else has. The mark is the signal number of `fcntl(F_SETSIG)`: it has no effect without `O_ASYNC`, which
//! nobody sets on a file of ours. Not taken: `kcmp` (a second descriptor that may be closed too, and not in every kernel), and
//! `/proc/self/fdinfo` (a file opened and read per look).
//!
//! Limit: between the look and the use another thread may close the number and open it again. No call does both.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, IntoRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// A descriptor that is looked at before it is used, and before it is closed when this is dropped.
#[derive(Debug)]
pub struct CheckedFd(KnownFd);

/// The number of a [`CheckedFd`] and how its file is known, for whoever uses it and may outlive it.
#[derive(Clone, Copy, Debug)]
pub struct KnownFd {
    number: RawFd,
    file: Identity,
}

/// How the file is known again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Identity {
    /// Device and inode.
    Inode(libc::dev_t, libc::ino_t),
    /// The signal number on its open file description.
    Mark(libc::c_int),
}

impl CheckedFd {
    /// Takes `fd`, which nobody else has a mark on, and moves it above the standard ones, 0 to 2.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        let fd = above_standard(fd)?;
        let inode = Inode::of(fd.as_raw_fd())?;
        let mark = if inode.is_its_own { None } else { mark(fd.as_raw_fd()) };
        // Where marks cannot be set the inode is what is left, though others may share it.
        let file = mark.map_or(inode.identity, Identity::Mark);
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
    /// Returns the number, for whoever is told it: a program that waits for it.
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
        let twin = duplicate(self.checked()?)?;
        Ok(CheckedFd(Self { number: twin.into_raw_fd(), file: self.file }))
    }

    fn is_ours(&self) -> bool {
        if cfg!(mutant = "descriptor_unchecked") {
            return true;
        }
        match self.file {
            Identity::Inode(..) => Inode::of(self.number).is_ok_and(|inode| inode.identity == self.file),
            Identity::Mark(mark) => mark_of(self.number) == mark,
        }
    }
}

impl Drop for CheckedFd {
    fn drop(&mut self) {
        if self.0.is_ours() {
            // SAFETY: it leads to the file that `new` took, and nobody else closes it.
            drop(unsafe { OwnedFd::from_raw_fd(self.0.number) });
        }
    }
}

/// What the system says of a file.
struct Inode {
    identity: Identity,
    /// Whether no other open file has it.
    is_its_own: bool,
}

impl Inode {
    fn of(number: RawFd) -> io::Result<Self> {
        let mut seen = std::mem::MaybeUninit::<libc::stat>::uninit();
        // SAFETY: takes any number, and the place has the size that the call fills.
        if unsafe { libc::fstat(number, seen.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, so it filled the place.
        let seen = unsafe { seen.assume_init() };
        let is_its_own = matches!(seen.st_mode & libc::S_IFMT, libc::S_IFSOCK | libc::S_IFIFO);
        Ok(Self { identity: Identity::Inode(seen.st_dev, seen.st_ino), is_its_own })
    }
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

/// Marks the open file; `None` where the system does not keep marks.
///
/// Files of ours that follow each other have different ones, for the program may close one and the next of ours get its number.
#[cfg(target_os = "linux")]
fn mark(number: RawFd) -> Option<libc::c_int> {
    static NEXT: AtomicI32 = AtomicI32::new(0);
    let (least, count) = (libc::SIGRTMIN(), libc::SIGRTMAX() - libc::SIGRTMIN() + 1);
    // Relaxed: it need only differ from the last few.
    let mark = least + NEXT.fetch_add(1, Relaxed).rem_euclid(count);
    // SAFETY: takes numbers only.
    let is_set = unsafe { libc::fcntl(number, F_SETSIG, mark) } == 0;
    (is_set && mark_of(number) == mark).then_some(mark)
}

/// The mark on an open file: 0 where it has none, -1 where nothing is open.
#[cfg(target_os = "linux")]
#[inline]
fn mark_of(number: RawFd) -> libc::c_int {
    // SAFETY: takes numbers only.
    unsafe { libc::fcntl(number, F_GETSIG) }
}

// Of `asm-generic/fcntl.h`; the crate libc has them for some C libraries only.
#[cfg(target_os = "linux")]
const F_SETSIG: libc::c_int = 10;
#[cfg(target_os = "linux")]
const F_GETSIG: libc::c_int = 11;

#[cfg(not(target_os = "linux"))]
fn mark(_: RawFd) -> Option<libc::c_int> {
    None
}

#[cfg(not(target_os = "linux"))]
fn mark_of(_: RawFd) -> libc::c_int {
    -1
}
