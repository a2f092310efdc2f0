//! Pieces of any length of a message of CTR, of which a kernel does the whole blocks.

use evener_kernels::modes::{BLOCK, Key};

/// A message of CTR on its way.
pub(super) struct Stream<'c> {
    pub(super) key: &'c Key,
    pub(super) counter: &'c mut [u8; BLOCK],
    /// Key stream of the block that is begun.
    pub(super) block: &'c mut [u8; BLOCK],
}

impl Stream<'_> {
    /// Encrypts or decrypts, behind so many bytes of the block that is begun; how many were used of the last one.
    ///
    /// # Safety
    /// `from` is good for reading and `to` for writing so many bytes.
    pub(super) unsafe fn crypt(&mut self, used: usize, from: *const u8, to: *mut u8, bytes: usize) -> usize {
        let (mut from, mut to, mut left) = (from, to, bytes);
        let ahead = to.addr().wrapping_sub(from.addr());
        if ahead > 0 && ahead < bytes {
            // SAFETY: the caller's word. What is written begins in what is not read yet.
            unsafe { std::ptr::copy(from, to, bytes) };
            from = to;
        }
        if used > 0 {
            let here = left.min(BLOCK - used);
            // SAFETY: as many are there.
            unsafe { self.mask(used, from, to, here) };
            left -= here;
            if left == 0 {
                return (used + here) % BLOCK;
            }
            (from, to) = (from.wrapping_add(here), to.wrapping_add(here));
        }
        let whole = left / BLOCK;
        if whole > 0 {
            // SAFETY: so many blocks are there.
            unsafe { self.key.crypt(self.counter, from, to, whole) };
            (from, to) = (from.wrapping_add(whole * BLOCK), to.wrapping_add(whole * BLOCK));
            left %= BLOCK;
        }
        if left > 0 {
            *self.block = [0; BLOCK];
            let place = self.block.as_mut_ptr();
            // SAFETY: a block, in its place.
            unsafe { self.key.crypt(self.counter, place, place, 1) };
            // SAFETY: as many are there.
            unsafe { self.mask(0, from, to, left) };
        }
        left
    }

    /// Some bytes by the key stream of the block that is begun, from `used` on.
    ///
    /// # Safety
    /// As [`crypt`](Self::crypt).
    unsafe fn mask(&self, used: usize, from: *const u8, to: *mut u8, bytes: usize) {
        for (at, mask) in self.block.iter().skip(used).take(bytes).enumerate() {
            // SAFETY: the caller's word.
            let byte = unsafe { from.wrapping_add(at).read() };
            // SAFETY: as above.
            unsafe { to.wrapping_add(at).write(byte ^ mask) };
        }
    }
}
