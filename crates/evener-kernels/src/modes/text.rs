//! Whole messages of the modes, in memory of any kind.

use std::marker::PhantomData;
use std::sync::atomic::AtomicU8;

use zeroize::Zeroize as _;

use super::{BLOCK, Key};

/// A message's text: where it comes from and where it goes.
pub struct Text<'t> {
    from: *const u8,
    to: *mut u8,
    bytes: usize,
    memory: PhantomData<&'t mut [u8]>,
}

impl<'t> Text<'t> {
    /// Where it lies.
    #[must_use]
    pub fn in_place(place: &'t mut [u8]) -> Self {
        let at = place.as_mut_ptr();
        Self::of((at, at), place.len(), place.len())
    }

    /// From one place to the front of another.
    ///
    /// # Panics
    /// Where it is longer than that one.
    #[must_use]
    pub fn apart(from: &'t [u8], to: &'t mut [u8]) -> Self {
        Self::of((from.as_ptr(), to.as_mut_ptr()), from.len(), to.len())
    }

    /// In memory that another process may change at any time, in place or apart. What is changed there spoils this message and nothing else: a block may be
    /// read more than once and differ, and nothing is decided by what it holds. It is read and written by plain loads and stores of vectors, as there are no
    /// atomic ones.
    ///
    /// # Panics
    /// As [`apart`](Self::apart).
    #[must_use]
    pub fn shared(from: &'t [AtomicU8], to: &'t [AtomicU8]) -> Self {
        Self::of((from.as_ptr().cast(), to.as_ptr().cast_mut().cast()), from.len(), to.len())
    }

    fn of((from, to): (*const u8, *mut u8), bytes: usize, room: usize) -> Self {
        assert!(bytes <= room, "there is room for as much as there is");
        Self { from, to, bytes, memory: PhantomData }
    }
}

impl Key {
    /// Encrypts or decrypts a whole message: of ECB, which has no IV, and CBC whole blocks, of XTS a unit of a block at least, of CTR any length.
    ///
    /// # Panics
    /// Where the mode has no such length.
    pub fn message(&self, iv: &[u8; BLOCK], text: &Text<'_>) {
        let Text { from, to, bytes, .. } = *text;
        if self.is_xts {
            assert!(bytes >= BLOCK, "a unit has a block at least");
            // SAFETY: what the text was made of is lent for as long as it is there.
            return unsafe { self.crypt_unit(iv, from, to, bytes) };
        }
        let (whole, part) = (bytes / BLOCK, bytes % BLOCK);
        assert!(part == 0 || self.is_stream, "whole blocks");
        let mut chain = *iv;
        // SAFETY: as above.
        unsafe { self.crypt(&mut chain, from, to, whole) };
        if part > 0 {
            let at = whole * BLOCK;
            // SAFETY: as above; they are behind the blocks.
            unsafe { self.mask(&mut chain, from.wrapping_add(at), to.wrapping_add(at), part) };
        }
    }

    /// A part of a block of CTR.
    ///
    /// # Safety
    /// As [`crypt`](Self::crypt), of so many bytes.
    unsafe fn mask(&self, counter: &mut [u8; BLOCK], from: *const u8, to: *mut u8, bytes: usize) {
        let mut stream = [0; BLOCK];
        let place = stream.as_mut_ptr();
        // SAFETY: a block, in its place.
        unsafe { self.crypt(counter, place, place, 1) };
        for (at, mask) in stream.iter().enumerate().take(bytes) {
            // SAFETY: the caller's word.
            let byte = unsafe { from.wrapping_add(at).read() };
            // SAFETY: as above.
            unsafe { to.wrapping_add(at).write(byte ^ mask) };
        }
        stream.zeroize();
    }
}
