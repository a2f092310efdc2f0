//! Words at an address that the system mapped, of a file, a page or a segment.

use std::io;
use std::ptr::NonNull;
use std::slice;

use crate::{Word, Words};

/// Words that are mapped for as long as this lives; their maker unmaps them.
#[derive(Debug)]
pub(super) struct MappedWords {
    first: NonNull<Word>,
    pub(super) word_count: usize,
}

impl MappedWords {
    /// Words at `memory`; the system's `OutOfMemory` where that is null.
    ///
    /// # Safety
    ///
    /// `word_count` words are mapped there, which begin on a page, and stay so until this is dropped.
    pub(super) unsafe fn new(memory: *mut libc::c_void, word_count: usize) -> io::Result<Self> {
        let first = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { first, word_count })
    }

    /// Returns where they are mapped.
    pub(super) const fn address(&self) -> *mut libc::c_void {
        self.first.as_ptr().cast()
    }
}

impl Words for MappedWords {
    #[inline]
    fn words(&self) -> &[Word] {
        // SAFETY: the maker's word; every bit pattern is a word, and the words change through their atomics only, here and in other
        // processes.
        unsafe { slice::from_raw_parts(self.first.as_ptr(), self.word_count) }
    }
}

// SAFETY: a mapping belongs to the process, not to the thread that made it.
unsafe impl Send for MappedWords {}
// SAFETY: it lends atomics only.
unsafe impl Sync for MappedWords {}
