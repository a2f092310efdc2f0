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
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use self::entries::Kernel;
use self::space::{SHORT, Space};
use crate::aes::Schedule;
use crate::level::Level;
pub use crate::message::Message;
pub use crate::mode::BLOCK;

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
