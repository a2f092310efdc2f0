//! The ends of messages: what is left behind whole blocks, and its padding, made in a place of the lane that it comes to.

use std::slice;
use std::sync::atomic::{AtomicU8, Ordering};

use zeroize::Zeroize as _;

use super::{LANES_MAX, Span, Width};

/// Words of a tail: two blocks of the longest.
const TAIL_WORDS: usize = 256 / size_of::<u64>();

/// A tail, in lines of the cache of its own.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Tail([u64; TAIL_WORDS]);

/// One for each lane. Wiped behind each run, and when they go.
pub(super) struct Tails([Tail; LANES_MAX]);

impl Default for Tails {
    fn default() -> Self {
        Self([Tail([0; TAIL_WORDS]); LANES_MAX])
    }
}

impl Tails {
    /// Where they lie, one behind the other, for as long as these are borrowed.
    pub(super) fn places(&mut self) -> Places {
        Places(self.0.as_mut_ptr())
    }

    /// Wipes those of the first lanes, as far as a hash of this width writes them.
    pub(super) fn wipe(&mut self, lanes: usize, width: Width) {
        let words = 2 * width.block_bytes() / size_of::<u64>();
        self.0[..lanes].iter_mut().for_each(|tail| tail.0[..words].zeroize());
    }

    /// Wipes all.
    pub(super) fn forget(&mut self) {
        self.wipe(LANES_MAX, Width::Long);
    }

    /// Whether nothing is left in any.
    #[cfg(all(test, hash_kernels))]
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(|tail| tail.0 == [0; TAIL_WORDS])
    }
}

impl Drop for Tails {
    fn drop(&mut self) {
        self.forget();
    }
}

/// Where tails are put. Addresses, for lanes read them while others are written.
#[derive(Clone, Copy)]
pub(super) struct Places(*mut Tail);

impl Places {
    /// Makes a span's tail in a lane's place: the bytes, a bit, and the message's length in bits (FIPS 180-4, 5.1). Returns the place.
    ///
    /// # Safety
    /// The tails still live, and no one else uses that lane's.
    pub(super) unsafe fn put(self, lane: usize, span: &Span<'_>) -> *const u8 {
        debug_assert!(lane < LANES_MAX, "lanes that there are");
        let width = span.running.hash.width();
        let end = span.tail_blocks * width.block_bytes();
        let at = self.0.wrapping_add(lane).cast::<u8>();
        // SAFETY: two blocks at most, which the lane's place has; no one else uses it.
        let tail = unsafe { slice::from_raw_parts_mut(at, end) };
        tail.fill(0);
        span.copy_rest(&mut tail[..span.rest]);
        tail[span.rest] = 0x80;
        let bits = u128::from(span.running.bytes) << 3;
        tail[end - width.length_bytes()..].copy_from_slice(&bits.to_be_bytes()[16 - width.length_bytes()..]);
        at
    }
}

impl Span<'_> {
    /// Copies what is behind whole blocks.
    #[inline]
    fn copy_rest(&self, to: &mut [u8]) {
        let from = self.from.wrapping_add(self.blocks * self.running.hash.block_bytes());
        if !self.is_shared {
            // SAFETY: the span has so many bytes behind its blocks, borrowed while it lives, which no one changes.
            return to.copy_from_slice(unsafe { slice::from_raw_parts(from, to.len()) });
        }
        // SAFETY: as above; it is changed by atomic stores, or in another process.
        let shared = unsafe { slice::from_raw_parts(from.cast::<AtomicU8>(), to.len()) };
        for (to, from) in to.iter_mut().zip(shared) {
            *to = from.load(Ordering::Relaxed);
        }
    }
}
