//! The names in a directory, for programs that may have no memory left.

use std::ffi::CStr;
use std::io;
use std::os::fd::BorrowedFd;

#[cfg(target_os = "linux")]
use evener_fd::CheckedFd;
#[cfg(not(target_os = "linux"))]
use rustix::fs::Dir;
#[cfg(target_os = "linux")]
use rustix::fs::{self, Mode, OFlags, RawDir};

/// Goes through the names in a directory until `goes_on` says no. `Dir` of rustix grows its buffer with what it finds, and ends the process where it cannot.
#[cfg(target_os = "linux")]
pub(super) fn each(directory: BorrowedFd<'_>, goes_on: &mut impl FnMut(&CStr) -> bool) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let entries = CheckedFd::new(fs::openat(directory, ".", flags, Mode::empty())?)?;
    let mut space = Vec::with_capacity(NAMES_BYTES);
    let mut names = RawDir::new(entries.checked()?, space.spare_capacity_mut());
    while let Some(entry) = names.next() {
        if !goes_on(entry?.file_name()) {
            break;
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn each(directory: BorrowedFd<'_>, goes_on: &mut impl FnMut(&CStr) -> bool) -> io::Result<()> {
    for entry in Dir::read_from(directory)? {
        if !goes_on(entry?.file_name()) {
            break;
        }
    }
    Ok(())
}

/// Names that one call brings.
#[cfg(target_os = "linux")]
const NAMES_BYTES: usize = 4_096;
