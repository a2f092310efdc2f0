//! Keys of AES (FIPS 197): the schedule for encryption or decryption, written where it stays.

use std::arch::x86_64::*;

use zeroize::Zeroize as _;

use crate::vector::Block;

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
    #[target_feature(enable = "aes,sse4.1,ssse3")]
    pub(crate) fn set(&mut self, key: &[u8]) -> bool {
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
    #[target_feature(enable = "aes,sse4.1")]
    pub(crate) fn invert(&mut self) {
        for round in 0..=self.last / 2 {
            let (one, other) = (self.at(round), self.at(self.last - round));
            let is_outer = round == 0;
            self.put(round, if is_outer { other } else { _mm_aesimc_si128(other) });
            self.put(self.last - round, if is_outer { one } else { _mm_aesimc_si128(one) });
        }
        self.is_inverse = true;
    }

    #[target_feature(enable = "sse4.1")]
    fn at(&self, round: usize) -> Block {
        let place = &self.words[4 * round..4 * round + 4];
        // SAFETY: four words are a block.
        unsafe { _mm_loadu_si128(place.as_ptr().cast()) }
    }

    /// Whether it is that of the inverse cipher.
    pub(crate) fn is_inverse(&self) -> bool {
        self.is_inverse
    }

    /// Four words at a time: each round key is the one before, summed up from the left, and the substituted last word.
    #[target_feature(enable = "aes,sse4.1,ssse3")]
    fn set_128(&mut self, key: &[u8]) {
        let mut words = block(key, 0);
        self.put(0, words);
        let mut constant = 1;
        for round in 1..=10 {
            words = _mm_xor_si128(summed(words), rotated(words, constant));
            self.put(round, words);
            constant = doubled(constant);
        }
    }

    #[target_feature(enable = "aes,sse4.1,ssse3")]
    fn set_256(&mut self, key: &[u8]) {
        let (mut even, mut odd) = (block(key, 0), block(key, 16));
        self.put(0, even);
        self.put(1, odd);
        let mut constant = 1;
        for round in (2..=14).step_by(2) {
            even = _mm_xor_si128(summed(even), rotated(odd, constant));
            self.put(round, even);
            if round < 14 {
                odd = _mm_xor_si128(summed(odd), substituted_last(even));
                self.put(round + 1, odd);
            }
            constant = doubled(constant);
        }
    }

    /// Six words at a time, word by word: few use it.
    #[target_feature(enable = "aes,sse4.1,ssse3")]
    fn set_192(&mut self, key: &[u8]) {
        for (word, bytes) in self.words.iter_mut().zip(key.chunks_exact(4)) {
            *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        }
        let mut constant = 1_i32;
        for at in 6..4 * 13 {
            let mut mixed = self.words[at - 1];
            if at % 6 == 0 {
                mixed =
                    _mm_cvtsi128_si32(rotated(_mm_set1_epi32(mixed.cast_signed()), constant)).cast_unsigned();
                constant = doubled(constant);
            }
            self.words[at] = self.words[at - 6] ^ mixed;
        }
    }

    #[target_feature(enable = "sse4.1")]
    fn put(&mut self, round: usize, words: Block) {
        let place = &mut self.words[4 * round..4 * round + 4];
        // SAFETY: four words are a block.
        unsafe { _mm_storeu_si128(place.as_mut_ptr().cast(), words) };
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
#[target_feature(enable = "sse4.1")]
fn block(key: &[u8], from: usize) -> Block {
    let bytes = &key[from..from + 16];
    // SAFETY: as many as a block has.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// Each word with all words before it added.
#[target_feature(enable = "sse4.1")]
fn summed(words: Block) -> Block {
    let pairs = _mm_xor_si128(words, _mm_slli_si128::<4>(words));
    _mm_xor_si128(pairs, _mm_slli_si128::<8>(pairs))
}

/// The last word in all four: rotated, substituted, and the round's constant added. The S-box is that of the instruction, whose exchange of bytes
/// between words does nothing where all are alike; a table would be indexed by the key.
#[target_feature(enable = "aes,sse4.1,ssse3")]
fn rotated(words: Block, constant: i32) -> Block {
    let last = _mm_shuffle_epi8(words, _mm_set1_epi32(0x0c0f_0e0d));
    _mm_aesenclast_si128(last, _mm_set1_epi32(constant))
}

/// The last word in all four, substituted.
#[target_feature(enable = "aes,sse4.1")]
fn substituted_last(words: Block) -> Block {
    _mm_aesenclast_si128(_mm_shuffle_epi32::<0b11_11_11_11>(words), _mm_setzero_si128())
}

/// The next round's constant.
fn doubled(constant: i32) -> i32 {
    (constant << 1) ^ if constant == 0x80 { 0x11b } else { 0 }
}

impl Drop for Schedule {
    fn drop(&mut self) {
        self.words.zeroize();
    }
}
