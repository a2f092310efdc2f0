//! ECB, CBC decryption, CTR and XTS of one message, in pieces of whole blocks, or whole (`text.rs`).
//!
//! What goes on from piece to piece is one block, the caller's: the last ciphertext (CBC), the next counter (CTR), the tweak (XTS).

mod cbc;
mod ctr;
mod ecb;
mod entries;
mod text;
mod xts;

use std::ptr;

use zeroize::Zeroize as _;

use self::entries::Kernel;
pub use self::text::Text;
use crate::aes::Schedule;
use crate::level::Level;
pub use crate::mode::{BLOCK, Mode};
use crate::place::begins_inside;
use crate::stealing::Steals;
use crate::turn;
use crate::vector::{Block, Vector as _};

/// A key for one of the modes. Wiped when it goes.
pub struct Key {
    rounds: Schedule,
    /// Of XTS: what encrypts a unit's number.
    tweak_rounds: Schedule,
    level: Level,
    kernel: Kernel,
    is_xts: bool,
    /// Of CTR.
    is_stream: bool,
}

impl Key {
    /// A place for a key, by the instructions of `level`; without one, and of no use before [`set`](Self::set).
    #[must_use]
    #[inline(always)]
    pub fn new(level: Level) -> Self {
        let kernel = entries::of(level, Mode::Ctr);
        let (rounds, tweak_rounds) = (Schedule::new(), Schedule::new());
        Self { rounds, tweak_rounds, level, kernel, is_xts: false, is_stream: false }
    }

    /// Puts a key in: of 16, 24 or 32 bytes, for XTS two in a row of 16 or 32; false, and nothing done, for any other length. Whether the two
    /// of XTS differ, as they have to, is the caller's to see.
    pub fn set(&mut self, mode: Mode, key: &[u8]) -> bool {
        // SAFETY: every level has these instructions, and a level exists only where the processor has them.
        let is_set = unsafe { self.set_by_instructions(mode, key) };
        if is_set {
            self.kernel = entries::of(self.level, mode);
            (self.is_xts, self.is_stream) = (mode.is_xts(), mode == Mode::Ctr);
        }
        is_set
    }

    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "aes,sse4.1,ssse3"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,aes"))]
    unsafe fn set_by_instructions(&mut self, mode: Mode, key: &[u8]) -> bool {
        let mut key = key;
        if mode.is_xts() {
            let (one, other) = key.split_at(key.len() / 2);
            let is_pair = one.len() == other.len() && matches!(one.len(), 16 | 32);
            if !is_pair || !self.tweak_rounds.set(other) {
                return false;
            }
            key = one;
        }
        let is_set = self.rounds.set(key);
        if is_set && mode.inverts() {
            self.rounds.invert();
        }
        is_set
    }

    /// Takes so many blocks from there to there, from what `chain` carries on. The places may overlap in any way.
    ///
    /// # Safety
    /// `from` is good for reading and `to` for writing that many blocks.
    #[inline]
    pub unsafe fn crypt(&self, chain: &mut [u8; BLOCK], from: *const u8, to: *mut u8, blocks: usize) {
        let mut carried = chain_in(chain);
        // SAFETY: the caller's word.
        unsafe { self.crypt_on(&mut carried, from, to, blocks) };
        chain_out(carried, chain);
        if self.is_xts {
            carried.zeroize();
        }
    }

    /// # Safety
    /// As [`crypt`](Self::crypt).
    #[inline]
    unsafe fn crypt_on(&self, carried: &mut Block, from: *const u8, to: *mut u8, blocks: usize) {
        let mut from = from;
        if begins_inside(from, to, blocks * BLOCK) {
            ptr::copy(from, to, blocks * BLOCK);
            from = to;
        }
        // SAFETY: a key exists only where its level's instructions do.
        unsafe { (self.kernel)(&self.rounds, carried, from.cast(), to.cast(), blocks) };
    }

    /// A whole data unit of XTS, at least a block, under this number. The places may overlap in any way.
    ///
    /// # Safety
    /// `from` is good for reading and `to` for writing so many bytes.
    pub unsafe fn crypt_unit(&self, number: &[u8; BLOCK], from: *const u8, to: *mut u8, bytes: usize) {
        if bytes % BLOCK == 0 {
            // SAFETY: every level has these instructions, and a level exists only where the processor has them.
            let mut tweak = unsafe { encrypted(&self.tweak_rounds, chain_in(number)) };
            // SAFETY: the caller's word.
            unsafe { self.crypt_on(&mut tweak, from, to, bytes / BLOCK) };
            return tweak.zeroize();
        }
        let mut tweak = self.tweak(number);
        // SAFETY: the caller's word.
        unsafe { self.crypt_unit_at(&mut tweak, from, to, bytes) };
        tweak.zeroize();
    }

    /// The same of the end of a unit, at least a block, whose first block has this tweak.
    ///
    /// # Safety
    /// As [`crypt_unit`](Self::crypt_unit).
    pub unsafe fn crypt_unit_at(&self, tweak: &mut [u8; BLOCK], from: *const u8, to: *mut u8, bytes: usize) {
        // SAFETY: the caller's word.
        unsafe { self.crypt_end(tweak, from, to, bytes) };
    }

    /// The tweak of a unit's first block.
    #[must_use]
    pub fn tweak(&self, number: &[u8; BLOCK]) -> [u8; BLOCK] {
        let mut tweak = [0; BLOCK];
        // SAFETY: as above.
        chain_out(unsafe { encrypted(&self.tweak_rounds, chain_in(number)) }, &mut tweak);
        tweak
    }
}

impl Steals for Key {
    unsafe fn crypt_whole(&self, tweak: &mut [u8; BLOCK], from: *const u8, to: *mut u8, blocks: usize) {
        // SAFETY: the caller's word.
        unsafe { self.crypt(tweak, from, to, blocks) };
    }

    fn decrypts(&self) -> bool {
        self.rounds.is_inverse()
    }
}

#[inline]
fn chain_in(chain: &[u8; BLOCK]) -> Block {
    // SAFETY: as many bytes as a block has; every processor of this kind has the instruction.
    unsafe { Block::load(chain.as_ptr().cast()) }
}

#[inline]
fn chain_out(block: Block, chain: &mut [u8; BLOCK]) {
    // SAFETY: as above.
    unsafe { block.store(chain.as_mut_ptr().cast()) }
}

#[cfg_attr(target_arch = "x86_64", target_feature(enable = "aes,sse4.1,ssse3"))]
#[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,aes"))]
unsafe fn encrypted(rounds: &Schedule, block: Block) -> Block {
    turn::encrypted(rounds, block)
}
