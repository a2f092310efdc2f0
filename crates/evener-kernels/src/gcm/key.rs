//! What a key of AES-GCM is taken apart into, once: round keys and powers of the hash key.

use zeroize::Zeroize as _;

use super::product::{Product, times_x};
use crate::aes::Schedule;
use crate::level::{Level, Width};
use crate::turn;
use crate::vector::{Block, Vector};

/// Powers of the hash key that a turn of the widest registers takes.
pub(crate) const MOST_POWERS: usize = 32;

/// A key for AES-128-GCM, AES-192-GCM or AES-256-GCM. Wiped when it goes.
#[repr(C, align(64))]
pub struct Key {
    /// Power `k` stands `k` places before the end of the first [`MOST_POWERS`], times x. Zeros behind, which a register that is not full meets.
    powers: [Block; MOST_POWERS + 4],
    /// Powers that were made: a power of two, 0 without a key.
    known: usize,
    pub(crate) rounds: Schedule,
    pub(crate) width: Width,
}

impl Key {
    /// A place for a key, by the instructions of `level`; without one, and of no use before [`set`](Self::set).
    #[must_use]
    pub fn new(level: Level) -> Self {
        // SAFETY: a block is plain bytes.
        let powers = unsafe { std::mem::zeroed() };
        Self { powers, known: 0, rounds: Schedule::new(), width: level.width() }
    }

    /// Puts a key of 16, 24 or 32 bytes in; false, and nothing done, for any other length.
    pub fn set(&mut self, key: &[u8]) -> bool {
        // SAFETY: every level has these instructions, and a level exists only where the processor has them.
        unsafe { self.set_by_instructions(key) }
    }

    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "aes,pclmulqdq,sse4.1,ssse3"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,aes"))]
    unsafe fn set_by_instructions(&mut self, key: &[u8]) -> bool {
        if !self.rounds.set(key) {
            return false;
        }
        self.powers[MOST_POWERS - 1] = times_x(self.encrypted(Block::zero()).reversed());
        self.known = 1;
        true
    }

    /// Doubles the powers, of which there are at least so many as a register has blocks: each by the highest.
    ///
    /// # Safety
    /// As [`Vector`].
    #[inline(always)]
    pub(crate) unsafe fn double_powers<V: Vector>(&mut self) {
        let highest = V::everywhere(self.powers[MOST_POWERS - self.known]);
        let known = MOST_POWERS - self.known;
        for at in (0..self.known).step_by(V::BLOCKS) {
            let mut product = Product::zero();
            product.add(V::load(self.powers.as_ptr().add(known + at)), highest);
            product.reduced_each().store(self.powers.as_mut_ptr().add(known - self.known + at));
        }
        self.known *= 2;
    }

    /// Powers that were made.
    #[inline(always)]
    pub(crate) fn known(&self) -> usize {
        self.known
    }

    /// The power `highest`, 1 to [`MOST_POWERS`], with those below it behind it.
    #[inline(always)]
    pub(crate) fn powers(&self, highest: usize) -> *const Block {
        debug_assert!(highest <= self.known, "made before they are needed");
        self.powers.as_ptr().wrapping_add(MOST_POWERS - highest)
    }

    /// One block, encrypted.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "aes,pclmulqdq,sse4.1,ssse3"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,aes"))]
    pub(crate) unsafe fn encrypted(&self, block: Block) -> Block {
        turn::encrypted(&self.rounds, block)
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.powers.zeroize();
    }
}
