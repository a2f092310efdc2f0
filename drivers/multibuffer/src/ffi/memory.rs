//! Memory of a length that is known only at run time, aligned for the library and wiped when it is dropped.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::slice;

use zeroize::Zeroize as _;

use crate::Unavailable;

/// Alignment that the library demands, in bytes.
const ALIGNMENT: usize = 64;

/// Zeroed memory on a 64-byte boundary.
pub(super) struct Memory {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: this value alone owns the memory.
unsafe impl Send for Memory {}

impl Memory {
    /// Memory of `bytes`, at least one, where it is to be had.
    pub(super) fn zeroed(bytes: usize) -> Result<Self, Unavailable> {
        let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT).expect("far below the address space");
        // SAFETY: the length is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start).ok_or(Unavailable::NoMemory { bytes })?;
        Ok(Self { start, layout })
    }

    pub(super) const fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this length, zeroed at first; nothing else refers to it any more.
        let bytes = unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) };
        bytes.zeroize();
        // SAFETY: allocated with this layout, freed once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}
