//! Keys of AES (FIPS 197): the schedule for encryption or decryption, written where it stays.

use zeroize::Zeroize as _;

use crate::vector::{self, Block, Vector as _};

/// Round keys of AES-256, which has most.
pub(crate) const MOST: usize = 15;

/// The round keys of one key, wiped when it goes.
#[repr(C, align(16))]
pub(crate) struct Schedule {
    words: [u32; 4 * MOST],
    /// Of the last round key: 10, 12 or 14.
    last: usize,
    is_inverse: bool,
}

impl Schedule {
    /// A place for a key; without one.
    pub(crate) const fn new() -> Self {
        Self { words: [0; 4 * MOST], last: 0, is_inverse: false }
    }

    /// Puts a key of 16, 24 or 32 bytes in; false, and nothing done, for any other length.
    ///
    /// The words are made where they stay: a schedule that is made on the stack and moved leaves a copy there.
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "aes,sse4.1,ssse3"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,aes"))]
    pub(crate) unsafe fn set(&mut self, key: &[u8]) -> bool {
        match key.len() {
            16 => self.set_128(key),
            24 => self.set_192(key),
            32 => self.set_256(key),
            _ => return false,
        }
        self.last = key.len() / 4 + 6;
        self.is_inverse = false;
        true
    }

    /// Turns a schedule for encryption into that of the equivalent inverse cipher (FIPS 197, 5.3.5).
    #[cfg_attr(target_arch = "x86_64", target_feature(enable = "aes,sse4.1"))]
    #[cfg_attr(target_arch = "aarch64", target_feature(enable = "neon,aes"))]
    pub(crate) unsafe fn invert(&mut self) {
        for round in 0..=self.last / 2 {
            let (one, other) = (self.at(round), self.at(self.last - round));
            let is_outer = round == 0;
            self.put(round, if is_outer { other } else { vector::inverse_mixed(other) });
            self.put(self.last - round, if is_outer { one } else { vector::inverse_mixed(one) });
        }
        self.is_inverse = true;
    }

    #[inline(always)]
    unsafe fn at(&self, round: usize) -> Block {
        let place = &self.words[4 * round..4 * round + 4];
        // SAFETY: four words are a block.
        unsafe { Block::load(place.as_ptr().cast()) }
    }

    /// Whether it is that of the inverse cipher.
    pub(crate) fn is_inverse(&self) -> bool {
        self.is_inverse
    }

    /// Four words at a time: each round key is the one before, summed up from the left, and the substituted last word.
    #[inline(always)]
    unsafe fn set_128(&mut self, key: &[u8]) {
        let mut words = block(key, 0);
        self.put(0, words);
        let mut constant = 1;
        for round in 1..=10 {
            words = vector::summed(words).xor(vector::rotated_last(words, constant));
            self.put(round, words);
            constant = doubled(constant);
        }
    }

    #[inline(always)]
    unsafe fn set_256(&mut self, key: &[u8]) {
        let (mut even, mut odd) = (block(key, 0), block(key, 16));
        self.put(0, even);
        self.put(1, odd);
        let mut constant = 1;
        for round in (2..=14).step_by(2) {
            even = vector::summed(even).xor(vector::rotated_last(odd, constant));
            self.put(round, even);
            if round < 14 {
                odd = vector::summed(odd).xor(vector::substituted_last(even));
                self.put(round + 1, odd);
            }
            constant = doubled(constant);
        }
    }

    /// Six words at a time, word by word: few use it.
    #[inline(always)]
    unsafe fn set_192(&mut self, key: &[u8]) {
        for (word, bytes) in self.words.iter_mut().zip(key.chunks_exact(4)) {
            *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        }
        let mut constant = 1;
        for at in 6..4 * 13 {
            let mut mixed = self.words[at - 1];
            if at % 6 == 0 {
                let last = vector::number(u64::from(mixed) << 32, 0);
                let [words, _] = vector::halves(vector::rotated_last(last, constant));
                let [a, b, c, d, ..] = words.to_le_bytes();
                mixed = u32::from_le_bytes([a, b, c, d]);
                constant = doubled(constant);
            }
            self.words[at] = self.words[at - 6] ^ mixed;
        }
    }

    #[inline(always)]
    unsafe fn put(&mut self, round: usize, words: Block) {
        let place = &mut self.words[4 * round..4 * round + 4];
        // SAFETY: four words are a block.
        unsafe { words.store(place.as_mut_ptr().cast()) };
    }

    /// The first round key; the last is [`last`](Self::last) behind it.
    #[inline(always)]
    pub(crate) fn keys(&self) -> *const Block {
        self.words.as_ptr().cast()
    }

    /// Number of rounds: 10, 12 or 14; 0 without a key.
    #[inline(always)]
    pub(crate) fn last(&self) -> usize {
        self.last
    }
}

/// Sixteen bytes from there on.
#[inline(always)]
unsafe fn block(key: &[u8], from: usize) -> Block {
    let bytes = &key[from..from + 16];
    // SAFETY: as many as a block has.
    unsafe { Block::load(bytes.as_ptr().cast()) }
}

/// The next round's constant.
fn doubled(constant: u32) -> u32 {
    (constant << 1) ^ if constant == 0x80 { 0x11b } else { 0 }
}

impl Drop for Schedule {
    fn drop(&mut self) {
        // Most contexts have a place for a second key, or for one that never comes.
        if self.last > 0 {
            self.words.zeroize();
        }
    }
}
