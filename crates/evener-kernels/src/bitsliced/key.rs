//! Keys of AES (FIPS 197, 5.2), whose bytes are substituted by the same circuit as those of text, and planes of round keys.

use zeroize::Zeroize as _;

use super::means::Layout;
use super::plane::{Bytes, Plane as _};
use super::sbox::{COMPLEMENT, substitute};
use crate::stack::with_stack_wiped;

/// Round keys of AES-256, which has most.
pub(super) const MOST: usize = 15;

/// Words of 64 bits in the widest plane.
const WORDS_MAX: usize = 4;

/// Round keys as the rounds want them: each moved as far as rows are by then, and but for the first with what the S-box leaves out. Wiped when it goes.
pub(super) struct Schedule {
    keys: [Bytes; MOST],
    /// Of the last round key: 10, 12 or 14; 0 without a key.
    last: usize,
}

impl Schedule {
    /// A place for a key; without one.
    pub(super) const fn new() -> Self {
        Self { keys: [[0; 16]; MOST], last: 0 }
    }

    /// Puts a key of 16, 24 or 32 bytes in; false, and nothing done, for any other length.
    pub(super) fn set(&mut self, key: &[u8]) -> bool {
        if !matches!(key.len(), 16 | 24 | 32) {
            return false;
        }
        self.last = key.len() / 4 + 6;
        with_stack_wiped(|| {
            self.expand(key);
            self.move_rows();
        });
        true
    }

    pub(super) fn last(&self) -> usize {
        self.last
    }

    fn expand(&mut self, key: &[u8]) {
        let words = self.keys.as_flattened_mut();
        words[..key.len()].copy_from_slice(key);
        let mut constant = 1;
        for at in (key.len()..16 * (self.last + 1)).step_by(4) {
            let mut mixed = word(words, at - 4);
            if at % key.len() == 0 {
                mixed = substituted(mixed).rotate_right(8) ^ constant;
                constant = (constant << 1) ^ if constant == 0x80 { 0x11b } else { 0 };
            } else if key.len() == 32 && at % key.len() == 16 {
                mixed = substituted(mixed);
            }
            let made = word(words, at - key.len()) ^ mixed;
            words[at..at + 4].copy_from_slice(&made.to_le_bytes());
        }
    }

    fn move_rows(&mut self) {
        for (round, key) in self.keys.iter_mut().enumerate().take(self.last + 1).skip(1) {
            let mut whole = *key;
            for (at, byte) in key.iter_mut().enumerate() {
                // Row `r` of what is shifted `round` times is `round r` columns further.
                let (row, column) = (at % 4, at / 4);
                *byte = whole[(column + 4 * round - round * row) % 4 * 4 + row] ^ COMPLEMENT;
            }
            whole.zeroize();
        }
    }
}

impl Drop for Schedule {
    fn drop(&mut self) {
        self.keys.zeroize();
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte))
}

/// The S-box of four bytes.
fn substituted(word: u32) -> u32 {
    let mut planes: [u32; 8] = std::array::from_fn(|bit| word >> bit & 0x0101_0101);
    // SAFETY: words need nothing.
    unsafe { substitute(&mut planes) };
    let bytes = planes.iter().enumerate().fold(0, |word, (bit, plane)| word | plane << bit);
    bytes ^ u32::from_ne_bytes([COMPLEMENT; 4])
}

/// The planes of round keys, of which each lane has its own. Wiped when they go.
#[repr(C, align(64))]
pub(super) struct Planes {
    words: [u64; WORDS_MAX * 8 * MOST],
    layout: Layout,
}

impl Planes {
    pub(super) const fn new(layout: Layout) -> Self {
        Self { words: [0; WORDS_MAX * 8 * MOST], layout }
    }

    #[cfg(test)]
    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(super) fn as_ptr(&self) -> *const u64 {
        self.words.as_ptr()
    }

    /// Puts a key into each lane whose bit is set.
    pub(super) fn put(&mut self, lanes: u32, key: &Schedule) {
        with_stack_wiped(|| self.merge(lanes, key));
    }

    fn merge(&mut self, lanes: u32, key: &Schedule) {
        let width = self.layout.words();
        let mask: [u64; WORDS_MAX] = std::array::from_fn(|word| self.layout.mask(lanes, word));
        let rounds = self.words.chunks_exact_mut(8 * width);
        for (key, round) in key.keys[..=key.last].iter().zip(rounds) {
            let mut sliced = self.layout.sliced(key);
            for (plane, sliced) in round.chunks_exact_mut(width).zip(&sliced) {
                for (at, word) in plane.iter_mut().enumerate() {
                    *word = *word & !mask[at] | sliced[at % 2] & mask[at];
                }
            }
            sliced.zeroize();
        }
    }

    pub(super) fn wipe(&mut self) {
        self.words.zeroize();
    }
}

impl Drop for Planes {
    fn drop(&mut self) {
        self.wipe();
    }
}

impl Layout {
    /// Words of a plane.
    fn words(self) -> usize {
        match self {
            Self::Rows => 1,
            Self::Bytes { halves } => 2 * halves,
        }
    }

    /// Where those lanes have their bits in a word of a plane.
    fn mask(self, lanes: u32, word: usize) -> u64 {
        match self {
            Self::Rows => u64::from(lanes & 0xf) * 0x1111_1111_1111_1111,
            Self::Bytes { .. } => u64::from(lanes >> (8 * (word / 2)) & 0xff) * 0x0101_0101_0101_0101,
        }
    }

    /// The planes of a key for all lanes, of which wider ones repeat these words.
    fn sliced(self, key: &Bytes) -> [[u64; 2]; 8] {
        match self {
            // SAFETY: words need nothing; as many blocks as they have.
            Self::Rows => unsafe { u64::sliced([*key; 4].as_ptr()) }.map(|plane| [plane; 2]),
            Self::Bytes { .. } => {
                let half = |at| u64::from(word(key, at)) | u64::from(word(key, at + 4)) << 32;
                let halves = [half(0), half(8)];
                std::array::from_fn(|bit| halves.map(|half| (half >> bit & 0x0101_0101_0101_0101) * 0xff))
            }
        }
    }
}
