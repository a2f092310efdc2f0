//! The algebra of GHASH (NIST SP 800-38D), so that parts of one message may be worked on apart and joined.
//!
//! The path of a message in parts: the hash key gets its inverse ([`HashKey::new`]) -> each part is hashed by itself, its
//! context started by an IV that [`HashKey::iv_starting_at`] solves -> [`HashKey::state_of`] reads the part's sum out of
//! its tag -> [`join`] puts the parts behind each other -> [`HashKey::digest`] is what the message's tag hides.
//! `docs/design/gcm-split.md` tells the whole of it.
//!
//! Nothing here branches on, or indexes by, a field element: no tables, and products of integers instead of them. That
//! is constant time where the CPU multiplies two 64-bit words in constant time, as x86-64 and `AArch64` do.

use std::ops::{BitXor, Mul};

use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::BLOCK_BYTES;

/// A block of GCM.
pub type Block = [u8; BLOCK_BYTES];

/// What is derived from GCM's hash key H once per key. Wiped when it goes.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct HashKey {
    key: Element,
    inverse: Element,
}

/// Lengths that end a hash: of associated data and of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lengths {
    /// Associated data in bytes, below 2^61.
    pub aad_bytes: u64,
    /// Text in bytes, at most 2^36 - 32.
    pub text_bytes: u64,
}

impl HashKey {
    /// Takes the block cipher's value of the zero block. `None` where it is zero: then nothing can be solved for.
    #[must_use]
    pub fn new(hash_key: &Block) -> Option<Self> {
        let key = Element::from(*hash_key);
        // One key in 2^128; that it is not this one tells nothing.
        (key != Element::default()).then(|| Self { key, inverse: key.inverse() })
    }

    /// The IV of 16 bytes with which a context's first counter block (J0) is `counter`: the text begins one after it.
    ///
    /// J0 = (IV * H + L) * H, where L holds the IV's length.
    #[must_use]
    pub fn iv_starting_at(&self, counter: &Block) -> Block {
        const IV: Lengths = Lengths { aad_bytes: 0, text_bytes: 16 };
        self.aad_leading_to(self.state_of(counter, IV))
    }

    /// The sum that stands before the lengths were hashed in, where `digest` came out: a tag without its mask E(J0).
    #[must_use]
    pub fn state_of(&self, digest: &Block, lengths: Lengths) -> Element {
        (Element::from(*digest) * self.inverse) ^ lengths.element()
    }

    /// What comes out where `state` is the sum of all blocks: [`state_of`](Self::state_of) backwards.
    #[must_use]
    pub fn digest(&self, state: Element, lengths: Lengths) -> Block {
        ((state ^ lengths.element()) * self.key).into()
    }

    /// The one block of associated data after which a fresh context's sum is `state`.
    #[must_use]
    pub fn aad_leading_to(&self, state: Element) -> Block {
        (state * self.inverse).into()
    }

    /// The sum after one more block.
    #[must_use]
    pub fn absorb(&self, state: Element, block: &Block) -> Element {
        (state ^ Element::from(*block)) * self.key
    }

    /// H to the number of `blocks` that come after a sum.
    #[must_use]
    pub fn power(&self, blocks: u64) -> Element {
        self.key.pow(blocks)
    }
}

/// The sum of two parts, of which the second was hashed by itself and begins on a block boundary of the message;
/// `power` is H to the number of the second part's blocks, a last broken one included.
#[must_use]
pub fn join(first: Element, second: Element, power: Element) -> Element {
    (first * power) ^ second
}

/// The counter block that is `blocks` after `counter`. Only the last 32 bits count, and they wrap by themselves
/// (SP 800-38D, section 6.2).
#[must_use]
pub fn counter_after(counter: &Block, blocks: u64) -> Block {
    let word = u128::from_be_bytes(*counter);
    let count = u128::from(blocks) & COUNTER;
    (word & !COUNTER | ((word & COUNTER) + count) & COUNTER).to_be_bytes()
}

/// The bits that count.
const COUNTER: u128 = 0xFFFF_FFFF;

impl Lengths {
    /// The block that ends a hash: both lengths in bits.
    fn element(self) -> Element {
        Element { high: self.aad_bytes << 3, low: self.text_bytes << 3 }
    }
}

/// An element of GF(2^128) in GCM's order: the first bit of a block belongs to x^0.
#[derive(Clone, Copy, Default, PartialEq, Eq, Zeroize)]
pub struct Element {
    /// The second half of the block, big-endian: x^64 to x^127.
    low: u64,
    /// The first half of the block, big-endian: x^0 to x^63.
    high: u64,
}

impl Element {
    /// The neutral element of multiplication: x^0.
    pub const ONE: Self = Self { low: 0, high: 1 << 63 };

    /// The square.
    #[must_use]
    fn square(self) -> Self {
        self * self
    }

    /// The `2^count`-th power.
    fn squared(self, count: u32) -> Self {
        (0..count).fold(self, |power, _| power.square())
    }

    /// The power with an exponent that is no secret: it is a length.
    #[must_use]
    pub fn pow(self, exponent: u64) -> Self {
        let bits = u64::BITS - exponent.leading_zeros();
        (0..bits).rev().fold(Self::ONE, |power, bit| {
            let power = power.square();
            if exponent >> bit & 1 == 1 { power * self } else { power }
        })
    }

    /// The inverse, by Fermat: the power 2^128 - 2. Zero, which has none, gives zero.
    #[must_use]
    fn inverse(self) -> Self {
        // e_n is the power 2^n - 1: e_2n = e_n^(2^n) * e_n and e_(2n+1) = e_2n^2 * e_1 (Itoh and Tsujii), up to e_127.
        let power = [1, 3, 7, 15, 31, 63].into_iter().fold(self, |power, count| {
            let double = power.squared(count) * power;
            double.square() * self
        });
        power.square()
    }
}

impl From<Block> for Element {
    fn from(block: Block) -> Self {
        let block = u128::from_be_bytes(block);
        Self { low: low_half(block), high: low_half(block >> 64) }
    }
}

impl From<Element> for Block {
    fn from(element: Element) -> Self {
        (u128::from(element.high) << 64 | u128::from(element.low)).to_be_bytes()
    }
}

impl BitXor for Element {
    type Output = Self;
    fn bitxor(self, other: Self) -> Self {
        Self { low: self.low ^ other.low, high: self.high ^ other.high }
    }
}

impl Mul for Element {
    type Output = Self;

    /// The product modulo x^128 + x^7 + x^2 + x + 1, by Karatsuba's three products of halves.
    fn mul(self, other: Self) -> Self {
        let low = product(self.low, other.low);
        let high = product(self.high, other.high);
        let middle = product(self.low ^ self.high, other.low ^ other.high) ^ low ^ high;
        // The reflected product of 128-bit words is one bit short of 256: shift it to its place.
        reduce((high ^ middle >> 64) << 1 | (low ^ middle << 64) >> 127, (low ^ middle << 64) << 1)
    }
}

/// The product of polynomials over GF(2), 64 bits by 64 bits.
fn product(a: u64, b: u64) -> u128 {
    let low = product_low(a, b);
    // The upper half is the lower half of the mirrored factors, mirrored.
    let high = product_low(a.reverse_bits(), b.reverse_bits()).reverse_bits() >> 1;
    u128::from(high) << 64 | u128::from(low)
}

/// The lower 64 bits of the product of polynomials.
///
/// Integers with three zero bits between any two that may be set: up to 16 ones add up in four bits, of which the
/// fourth never carries into the next place that is read (T. Pornin, BearSSL, `ghash_ctmul64.c`).
fn product_low(a: u64, b: u64) -> u64 {
    let (a, b) = (MASKS.map(|mask| a & mask), MASKS.map(|mask| b & mask));
    let mut sum = 0;
    for (place, mask) in MASKS.into_iter().enumerate() {
        let holes = (0..4).map(|at| a[at].wrapping_mul(b[(place + 4 - at) % 4]));
        sum |= holes.fold(0, BitXor::bitxor) & mask;
    }
    sum
}

/// Every fourth bit.
const MASKS: [u64; 4] =
    [0x1111_1111_1111_1111, 0x2222_2222_2222_2222, 0x4444_4444_4444_4444, 0x8888_8888_8888_8888];

/// What 256 bits are modulo the field's polynomial; the highest powers stand in `low`.
fn reduce(high: u128, low: u128) -> Element {
    // In this order x^128 = 1 + x + x^2 + x^7 carries a bit of `low` to 128 places higher, less 0, 1, 2 and 7.
    let carried = low ^ low << 127 ^ low << 126 ^ low << 121;
    let sum = high ^ carried ^ carried >> 1 ^ carried >> 2 ^ carried >> 7;
    Element { low: low_half(sum), high: low_half(sum >> 64) }
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
const fn low_half(word: u128) -> u64 {
    word as u64
}
