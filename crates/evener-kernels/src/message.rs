//! A message among many that are encrypted side by side.

use std::marker::PhantomData;
use std::sync::atomic::AtomicU8;

use zeroize::Zeroize as _;

use crate::mode::BLOCK;

/// A message of whole blocks: what is encrypted from where to where. Its block that lies apart is wiped when it goes.
pub struct Message<'m> {
    pub(crate) key: usize,
    pub(crate) iv: &'m [u8; BLOCK],
    pub(crate) from: *const [u8; BLOCK],
    pub(crate) to: *mut [u8; BLOCK],
    pub(crate) blocks: u32,
    pub(crate) last: Option<[u8; BLOCK]>,
    /// Bytes that may be written.
    room: usize,
    memory: PhantomData<&'m mut [u8]>,
}

// SAFETY: it is what it was made of: borrowed memory, an IV and a key's number.
unsafe impl Send for Message<'_> {}

impl<'m> Message<'m> {
    /// Longest message in bytes, before a block that lies apart.
    pub const BYTES_MAX: usize =
        if usize::BITS > 32 { u32::MAX as usize - 1 } else { usize::MAX / 2 / BLOCK } * BLOCK;

    /// A message of so many bytes at the front of a place, under the key of this number among those that it is encrypted with.
    ///
    /// # Panics
    /// Where it is longer than the place or [`BYTES_MAX`](Self::BYTES_MAX), or not of whole blocks.
    #[must_use]
    pub fn in_place(key: usize, iv: &'m [u8; BLOCK], place: &'m mut [u8], bytes: usize) -> Self {
        let at = place.as_mut_ptr();
        Self::of(key, iv, (at, at), bytes, place.len())
    }

    /// A message that goes to the front of another place.
    ///
    /// # Panics
    /// As [`in_place`](Self::in_place).
    #[must_use]
    pub fn apart(key: usize, iv: &'m [u8; BLOCK], from: &'m [u8], to: &'m mut [u8]) -> Self {
        Self::of(key, iv, (from.as_ptr(), to.as_mut_ptr()), from.len(), to.len())
    }

    /// A message in memory that another process may change at any time, in place or apart. What is changed there spoils this message and nothing
    /// else: lanes without a message do one that is there once more, so that a block may be read more than once and differ, and nothing is
    /// decided by what it holds. It is read and written by plain loads and stores of vectors, as there are no atomic ones.
    ///
    /// # Panics
    /// As [`in_place`](Self::in_place).
    #[must_use]
    pub fn shared(key: usize, iv: &'m [u8; BLOCK], from: &'m [AtomicU8], to: &'m [AtomicU8]) -> Self {
        let places = (from.as_ptr().cast(), to.as_ptr().cast_mut().cast());
        Self::of(key, iv, places, from.len(), to.len())
    }

    /// The same with one block more, whose text lies elsewhere: the last, with padding.
    ///
    /// # Panics
    /// Where there is no room for it behind the others.
    #[must_use]
    pub fn ending_with(mut self, last: [u8; BLOCK]) -> Self {
        assert!((self.blocks as usize + 1) * BLOCK <= self.room, "there is room for a block more");
        self.last = Some(last);
        self
    }

    /// Whether all that lanes look at but the places is the same, and nothing lies apart.
    #[cfg(kernels)]
    #[inline]
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        self.blocks == other.blocks && self.key == other.key && self.last.is_none()
    }

    #[inline]
    fn of(
        key: usize,
        iv: &'m [u8; BLOCK],
        (from, to): (*const u8, *mut u8),
        bytes: usize,
        room: usize,
    ) -> Self {
        assert!(
            bytes % BLOCK == 0 && bytes <= room.min(Self::BYTES_MAX),
            "whole blocks, no more than there is room for"
        );
        let blocks = u32::try_from(bytes / BLOCK).expect("at most BYTES_MAX");
        Self { key, iv, from: from.cast(), to: to.cast(), blocks, last: None, room, memory: PhantomData }
    }
}

impl Drop for Message<'_> {
    fn drop(&mut self) {
        if let Some(last) = &mut self.last {
            last.zeroize();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::ManuallyDrop;

    use super::*;

    #[test]
    fn a_message_that_goes_has_no_byte_of_its_last_block() {
        let mut place = [0; BLOCK];
        let message = Message::in_place(0, &[0; BLOCK], &mut place, 0).ending_with([7; BLOCK]);
        let mut message = ManuallyDrop::new(message);
        // SAFETY: once, and what is looked at then is bytes.
        unsafe { ManuallyDrop::drop(&mut message) };
        assert_eq!(message.last, Some([0; BLOCK]));
    }
}
