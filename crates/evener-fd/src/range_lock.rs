//! Locks on bytes of a file that belong to the open file description: the kernel drops them when the last process that has it open ends or
//! closes it, whatever it was doing. They need no bytes to be there.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Locks `bytes` for this open file alone; returns whether no other open file had one of them. What it has already stays its own.
///
/// # Errors
///
/// The system's: a file system or kernel without such locks.
pub fn try_lock(file: BorrowedFd<'_>, bytes: Range<u64>) -> io::Result<bool> {
    let (code, _) = call(file, libc::F_OFD_SETLK, libc::F_WRLCK, &bytes);
    match code {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Locks `bytes` beside others that share them; a directory takes this lock, too. It needs no more than the right to read.
///
/// # Errors
///
/// The system's: a file system or kernel without such locks, or one of the bytes is locked for another open file alone.
pub fn share(file: BorrowedFd<'_>, bytes: Range<u64>) -> io::Result<()> {
    call(file, libc::F_OFD_SETLK, libc::F_RDLCK, &bytes).0
}

/// Gives `bytes` up.
///
/// # Errors
///
/// The system's.
pub fn unlock(file: BorrowedFd<'_>, bytes: Range<u64>) -> io::Result<()> {
    call(file, libc::F_OFD_SETLK, libc::F_UNLCK, &bytes).0
}

/// Whether another open file has one of `bytes`.
///
/// # Errors
///
/// The system's.
pub fn is_locked(file: BorrowedFd<'_>, bytes: Range<u64>) -> io::Result<bool> {
    let (code, kind) = call(file, libc::F_OFD_GETLK, libc::F_WRLCK, &bytes);
    code.map(|()| kind != libc::F_UNLCK)
}

/// Returns what the call left as the kind of lock, too.
fn call(
    file: BorrowedFd<'_>,
    command: libc::c_int,
    kind: libc::c_int,
    bytes: &Range<u64>,
) -> (io::Result<()>, libc::c_int) {
    let offset = |bytes: u64| libc::off_t::try_from(bytes).unwrap_or(libc::off_t::MAX);
    // The systems differ in the types of its first two fields; both fit.
    let mut lock = libc::flock {
        l_type: kind.try_into().unwrap_or_default(),
        l_whence: libc::SEEK_SET.try_into().unwrap_or_default(),
        l_start: offset(bytes.start),
        l_len: offset(bytes.end.saturating_sub(bytes.start)),
        // Asked for by the kernel: the owner is no process.
        l_pid: 0,
    };
    // SAFETY: the descriptor is open, and the structure is this frame's and of the size that the call reads and fills.
    let code = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) };
    let result = if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    (result, libc::c_int::from(lock.l_type))
}
