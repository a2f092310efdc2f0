//! CBC encryption of many messages side by side (NIST SP 800-38A, 6.2), each under its own key and IV.
//!
//! Path of a burst: [`Message`]s under [`Key`]s of one size -> [`Cbc::encrypt`] -> `burst.rs` puts them into lanes (`space.rs`), and the next
//! where one is at its end -> `blocks.rs` encrypts as many blocks of all lanes as the shortest has.

mod blocks;
mod burst;
mod entries;
mod register;
mod space;

use std::cmp::Reverse;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use zeroize::Zeroize as _;

use self::entries::Kernel;
use self::space::{SHORT, Space};
use crate::aes::Schedule;
use crate::level::Level;
pub use crate::mode::BLOCK;
use crate::vector::Block;

/// A key. Wiped when it goes.
pub struct Key {
    rounds: Schedule,
    /// No other key's of this process; lanes tell by it whose round keys they have.
    id: u64,
}

impl Key {
    /// A key of 16, 24 or 32 bytes; none of any other length. The level stands for the processor's instructions.
    #[must_use]
    pub fn new(_: Level, key: &[u8]) -> Option<Arc<Self>> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Relaxed: only that it is another one matters.
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut made = Arc::new(Self { rounds: Schedule::new(), id });
        // The words are made where they stay.
        let place = Arc::get_mut(&mut made)?;
        // SAFETY: every level has these instructions, and a level exists only where the processor has them.
        let is_set = unsafe { place.rounds.set(key) };
        is_set.then_some(made)
    }
}

/// A message of whole blocks: what is encrypted from where to where. Its block that lies apart is wiped when it goes.
pub struct Message<'m> {
    key: usize,
    iv: &'m [u8; BLOCK],
    from: *const Block,
    to: *mut Block,
    blocks: u32,
    last: Option<[u8; BLOCK]>,
    /// Bytes that may be written.
    room: usize,
    memory: PhantomData<&'m mut [u8]>,
}

// SAFETY: it is what it was made of: borrowed memory, an IV and a key's number.
unsafe impl Send for Message<'_> {}

impl<'m> Message<'m> {
    /// Longest message in bytes, before a block that lies apart.
    pub const BYTES_MAX: usize = (u32::MAX - 1) as usize * BLOCK;

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
    #[inline]
    fn is_alike(&self, other: &Self) -> bool {
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

/// Lanes, with the round keys that they had last until those are [forgotten](Self::forget), or the lanes go.
pub struct Cbc {
    space: Box<Space>,
    kernel: Kernel,
}

impl Cbc {
    /// Lanes by the instructions of a level.
    #[must_use]
    pub fn new(level: Level) -> Self {
        Self { space: Space::new(), kernel: entries::of(level) }
    }

    /// How many of them there are at a level.
    #[must_use]
    pub fn lanes(level: Level) -> u32 {
        if level.bits() == 128 { 8 } else { 16 }
    }

    /// Encrypts messages under keys of one size, those of unlike lengths in the order of their lengths.
    ///
    /// # Panics
    /// Where keys have several sizes, or a message names a key that is not there.
    pub fn encrypt(&mut self, keys: &[Arc<Key>], messages: &mut [Message<'_>]) {
        let of_one_size = keys.windows(2).all(|pair| pair[0].rounds.last() == pair[1].rounds.last());
        assert!(of_one_size, "keys have one size");
        let are_alike = messages
            .first()
            .is_some_and(|first| first.blocks <= SHORT && messages.iter().all(|it| it.is_alike(first)));
        if !are_alike && messages.windows(2).any(|pair| pair[0].blocks != pair[1].blocks) {
            // The longest first, so that no lane is left alone with one at the end.
            messages.sort_unstable_by_key(|message| Reverse(message.blocks));
        }
        // SAFETY: lanes exist only where their level's instructions do.
        unsafe { (self.kernel)(&mut self.space, keys, messages, are_alike) }
    }

    /// Wipes the round keys that it still has.
    pub fn forget(&mut self) {
        self.space.forget();
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
