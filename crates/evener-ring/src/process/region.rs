//! Memory that two processes map: a sealed memfd, ours or a peer's.
//!
//! The peer may change any byte at any time. So bytes go in and out by copies ([`Region::copy_in`], [`Region::copy_out`]), and
//! words, or bytes that stay where they are ([`Region::bytes`]), through atomics; nothing here lends a plain reference into a region.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::process;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::AtomicU8;

use crate::sync::Word16;

/// Mapped shared memory, unmapped when this is dropped. A forked child does not get it.
#[derive(Debug)]
pub struct Region {
    first: NonNull<u8>,
    byte_count: usize,
    /// The process that has it.
    process: u32,
}

/// A span that is not wholly inside the region, or not aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRegion;

impl Region {
    /// Makes a region of `byte_count` zero bytes, rounded up to whole pages, and the file to send to a peer. It can neither
    /// shrink nor grow. Its pages come when they are [made](Self::make_pages), touched or lent to a device, so that a peer may have a part of it at first. Core dumps leave it out.
    ///
    /// # Errors
    ///
    /// `EFBIG` where this process may not make files so long; the system's otherwise.
    pub fn create(name: &CStr, byte_count: usize) -> io::Result<(Self, File)> {
        let byte_count =
            byte_count.max(1).checked_next_multiple_of(PAGE).ok_or(io::ErrorKind::OutOfMemory)?;
        let file_bytes = byte_count.try_into().map_err(|_| io::ErrorKind::OutOfMemory)?;
        evener_fd::may_extend_to(file_bytes)?;
        // SAFETY: the name is a C string, and the call makes a file and nothing else.
        let file = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call above made this descriptor, and nothing else owns it.
        let file = unsafe { File::from_raw_fd(file) };
        file.set_len(file_bytes)?;
        // SAFETY: the descriptor is open, and seals are a number.
        let code = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS | libc::F_SEAL_SEAL) };
        if code != 0 {
            return Err(io::Error::last_os_error());
        }
        let region = Self::map(&file, 0, byte_count)?;
        Ok((region, file))
    }

    /// Maps `byte_count` bytes of a peer's `file` from `offset` on.
    ///
    /// Only a memfd in main memory is taken (a page of any other file may be missing when it is touched, which is a signal, or
    /// block), only one that is sealed against shrinking and growing, and only bytes that it has.
    ///
    /// # Errors
    ///
    /// `InvalidInput` where the file is not as demanded; the system's otherwise.
    pub fn of_peer(file: &File, offset: u64, byte_count: u64) -> io::Result<Self> {
        let refused = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, why.to_owned()));
        // SAFETY: the descriptor is open, and the call takes no pointer.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        if seals < 0 || seals & SEALS != SEALS {
            return refused("not a memfd that is sealed against shrinking and growing");
        }
        if !is_in_main_memory(file)? {
            return refused("not in main memory");
        }
        let end = offset.checked_add(byte_count);
        let has_all = end.is_some_and(|end| file.metadata().is_ok_and(|about| about.len() >= end));
        let (Ok(bytes), Ok(at)) = (usize::try_from(byte_count), libc::off_t::try_from(offset)) else {
            return refused("larger than an address space");
        };
        if !has_all || bytes == 0 || offset % PAGE as u64 != 0 {
            return refused("shorter than the region that it is to hold, or not on a page");
        }
        Self::map(file, at, bytes)
    }

    pub(super) fn map(file: &File, offset: libc::off_t, byte_count: usize) -> io::Result<Self> {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping at a place that the kernel chooses touches no memory of ours.
        let memory =
            unsafe { libc::mmap(ptr::null_mut(), byte_count, access, kind, file.as_raw_fd(), offset) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let first = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let region = Self { first, byte_count, process: process::id() };
        for advice in [libc::MADV_DONTFORK, libc::MADV_DONTDUMP] {
            // SAFETY: the range is this mapping's, and neither advice changes its contents here.
            if unsafe { libc::madvise(memory, byte_count, advice) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(region)
    }

    /// Returns its length in bytes.
    #[must_use]
    pub const fn byte_count(&self) -> usize {
        self.byte_count
    }

    /// Returns where the span of `len` bytes at offset `at` lies in this process, for work in place: the peer may
    /// change it at any time, so it is not to be read twice for one decision, and no reference is to be made of it.
    ///
    /// # Errors
    ///
    /// Where it is not wholly inside.
    pub fn span(&self, at: usize, len: usize) -> Result<NonNull<u8>, OutOfRegion> {
        if at.checked_add(len).is_none_or(|end| end > self.byte_count) {
            return Err(OutOfRegion);
        }
        // SAFETY: the offset is at most the mapping's length.
        Ok(unsafe { self.first.add(at) })
    }

    /// Lends the `len` bytes at offset `at`, each of which the peer may change at any time.
    ///
    /// # Errors
    ///
    /// Where they are not wholly inside.
    pub fn bytes(&self, at: usize, len: usize) -> Result<&[AtomicU8], OutOfRegion> {
        self.slice(at, len)
    }

    /// Copies `bytes` to offset `at`.
    ///
    /// # Errors
    ///
    /// Where they do not fit inside; nothing is copied then.
    pub fn copy_in(&self, at: usize, bytes: &[u8]) -> Result<(), OutOfRegion> {
        let to = self.span(at, bytes.len())?;
        // SAFETY: both spans are valid for their length, and a slice of ours does not lie in a mapping that lends none. That the
        // peer may write here at the same time changes bytes, not this program: any byte is a byte.
        unsafe { to.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(())
    }

    /// Copies the bytes at offset `at`, each once.
    ///
    /// # Errors
    ///
    /// Where they are not wholly inside; nothing is copied then.
    pub fn copy_out(&self, at: usize, into: &mut [u8]) -> Result<(), OutOfRegion> {
        let from = self.span(at, into.len())?;
        // SAFETY: as in `copy_in`; what the peer writes meanwhile may or may not be copied, and the copy is ours alone.
        unsafe { from.as_ptr().copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) };
        Ok(())
    }

    /// Overwrites `len` bytes at offset `at` with zeros, whether or not anyone reads them again.
    ///
    /// # Errors
    ///
    /// Where they are not wholly inside; nothing is overwritten then.
    pub fn wipe(&self, at: usize, len: usize) -> Result<(), OutOfRegion> {
        let to = self.span(at, len)?;
        // SAFETY: as in `copy_in`. Shared memory is memory that another process reads, so the compiler may not leave it out.
        unsafe { libc::explicit_bzero(to.as_ptr().cast(), len) };
        Ok(())
    }

    /// Lends `count` words at offset `at`.
    pub(crate) fn slice<T: Shared>(&self, at: usize, count: usize) -> Result<&[T], OutOfRegion> {
        let bytes = count.checked_mul(size_of::<T>()).ok_or(OutOfRegion)?;
        let first = self.span(at, bytes)?.cast::<T>();
        if !first.is_aligned() {
            return Err(OutOfRegion);
        }
        // SAFETY: inside the mapping, aligned, and alive as long as `self`; a `Shared` is atomics only, for which every bit
        // pattern is good and which may change at any time.
        Ok(unsafe { slice::from_raw_parts(first.as_ptr(), count) })
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // In a forked child something else may lie there by now.
        if process::id() != self.process {
            return;
        }
        // SAFETY: this is the range that was mapped, and what `slice` lent ended before.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.byte_count) };
    }
}

// SAFETY: the mapping belongs to the process, not to the thread that made it.
unsafe impl Send for Region {}
// SAFETY: it lends atomics only, and copies bytes that no thread owns: threads that copy to one span at once get a mixture, as
// with a peer that writes there.
unsafe impl Sync for Region {}

/// What may lie in shared memory.
///
/// # Safety
///
/// An implementor consists of atomics without gaps.
pub(crate) unsafe trait Shared {}

// SAFETY: an atomic.
unsafe impl Shared for Word16 {}
// SAFETY: an atomic; loom's cannot lie in a mapping, and no model has a region.
unsafe impl Shared for AtomicU8 {}

const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;

/// Smallest page of the systems that Evener runs on, in bytes; a larger one shows in the kernel's refusal to map.
const PAGE: usize = 4096;

/// Whether the file lies in tmpfs, as a memfd does unless it asks for huge pages, which can be missing when they are touched.
fn is_in_main_memory(file: &File) -> io::Result<bool> {
    let mut about = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the descriptor is open and the place has the size that the call fills.
    if unsafe { libc::fstatfs(file.as_raw_fd(), about.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so it filled the place.
    let about = unsafe { about.assume_init() };
    // The C libraries differ in the type of both.
    Ok(i128::from(about.f_type) == i128::from(libc::TMPFS_MAGIC))
}
