//! Words that lie in a mapping: of a file, for other processes to read, or of a page that a fork wipes.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::ptr;

use super::mapped_words::MappedWords;
use crate::{Word, Words};

/// Mapped words, unmapped when this is dropped.
#[derive(Debug)]
pub struct Mapping(MappedWords);

impl Mapping {
    /// Maps the first `word_count` words of `file`, shared with all that map or read it.
    ///
    /// A process that may shorten the file can stop this one: a word behind the file's end cannot be touched. So a file to be
    /// mapped lies where only its owner may write, and has its blocks already.
    ///
    /// # Errors
    ///
    /// The system's, and `UnexpectedEof` where the file is shorter than the words.
    pub fn shared(file: impl AsFd, word_count: usize) -> io::Result<Self> {
        let (file, bytes) = (file.as_fd(), bytes_of(word_count)?);
        if length_of(file)? < u64::try_from(bytes).unwrap_or(u64::MAX) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Self::new(word_count, libc::MAP_SHARED, file.as_raw_fd())
    }

    /// Maps `word_count` words that are zero, and are zero again in a forked child, whatever they hold here.
    ///
    /// # Errors
    ///
    /// The system's; kernels before 4.14 have no such memory.
    pub fn wiped_by_fork(word_count: usize) -> io::Result<Self> {
        let mapping = Self::new(word_count, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)?;
        let (address, bytes) = (mapping.0.address(), bytes_of(word_count)?);
        // SAFETY: the range is this mapping's, and its words may become zero in a child at any time.
        let code = unsafe { libc::madvise(address, bytes, libc::MADV_WIPEONFORK) };
        if code == 0 { Ok(mapping) } else { Err(io::Error::last_os_error()) }
    }

    fn new(word_count: usize, kind: libc::c_int, file: libc::c_int) -> io::Result<Self> {
        let bytes = bytes_of(word_count)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place that the kernel chooses touches no memory of ours.
        let memory = unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, file, 0) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: so many words were mapped there just now, and stay until this is dropped.
        Ok(Self(unsafe { MappedWords::new(memory, word_count) }?))
    }
}

impl Words for Mapping {
    #[inline]
    fn words(&self) -> &[Word] {
        self.0.words()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the range that was mapped, and what `words` lent ended before.
        unsafe { libc::munmap(self.0.address(), self.0.word_count * size_of::<Word>()) };
    }
}

/// In bytes.
fn length_of(file: BorrowedFd<'_>) -> io::Result<u64> {
    let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the descriptor is open, and the place has the size that the call fills.
    if unsafe { libc::fstat(file.as_raw_fd(), stat.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so it filled the place.
    let stat = unsafe { stat.assume_init() };
    Ok(u64::try_from(stat.st_size).unwrap_or(0))
}

fn bytes_of(word_count: usize) -> io::Result<usize> {
    word_count.checked_mul(size_of::<Word>()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}
