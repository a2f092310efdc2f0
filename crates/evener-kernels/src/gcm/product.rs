//! GHASH's field: products, sums of products, and the one reduction that a sum needs (NIST SP 800-38D, 6.3 and 6.4).
//!
//! GCM writes a polynomial's lowest coefficient into a block's highest bit. With the bytes of a block reversed that is a number whose bits are
//! in reverse order, and the carry-less product of two such numbers is the field's, but one bit lower than it should stand. The hash key is
//! therefore kept times x ([`times_x`]), so that every product stands right. Reduction folds the low half up, 64 bits at a time, by the field's
//! polynomial in this order of bits, x^128 + x^127 + x^126 + x^121 + 1: Gueron and Kounavis, "Intel Carry-Less Multiplication Instruction and its
//! Usage for Computing the GCM Mode" (2010).

use crate::vector::{self, Block, Vector};

/// x^127 + x^126 + x^121 of the polynomial, in the high half.
const POLYNOMIAL: u64 = 0xc2 << 56;

/// A sum of products that is not reduced yet, of 256 bits in three overlapping parts.
#[derive(Clone, Copy)]
pub(crate) struct Product<V> {
    low: V,
    /// 64 bits higher.
    middle: V,
    /// 128 bits higher.
    high: V,
}

/// # Safety
/// As [`Vector`].
impl<V: Vector> Product<V> {
    #[inline(always)]
    pub(crate) unsafe fn zero() -> Self {
        Self { low: V::zero(), middle: V::zero(), high: V::zero() }
    }

    /// Adds the products of each block with the power of the hash key beside it.
    #[inline(always)]
    pub(crate) unsafe fn add(&mut self, blocks: V, powers: V) {
        self.low = self.low.xor(blocks.low_by_low(powers));
        self.high = self.high.xor(blocks.high_by_high(powers));
        self.middle = self.middle.xor(blocks.low_by_high(powers)).xor(blocks.high_by_low(powers));
    }

    /// Adds as [`add`](Self::add) does, before what follows.
    #[inline(always)]
    pub(crate) unsafe fn add_here(&mut self, blocks: V, powers: V) {
        self.add(blocks, powers);
        *self = Self { low: self.low.pinned(), middle: self.middle.pinned(), high: self.high.pinned() };
    }

    /// Each block's own sum, reduced.
    #[inline(always)]
    pub(crate) unsafe fn reduced_each(self) -> V {
        let polynomial = V::everywhere(vector::number(POLYNOMIAL, 0));
        let middle = self.middle.xor(self.low.exchanged()).xor(self.low.low_by_high(polynomial));
        self.high.xor(middle.exchanged()).xor(middle.low_by_high(polynomial))
    }

    /// The sum over all blocks of the register, reduced.
    #[inline(always)]
    pub(crate) unsafe fn reduced(self) -> Block {
        let polynomial = vector::number(POLYNOMIAL, 0);
        let (low, middle, high) = (self.low.sum(), self.middle.sum(), self.high.sum());
        let middle = middle.xor(low.exchanged()).xor(low.low_by_high(polynomial));
        high.xor(middle.exchanged()).xor(middle.low_by_high(polynomial))
    }
}

/// The product of two elements of the field, one of them times x.
///
/// # Safety
/// As [`Vector`].
#[inline(always)]
pub(crate) unsafe fn product(one: Block, other: Block) -> Block {
    let mut product = Product::zero();
    product.add(one, other);
    product.reduced()
}

/// An element times x: what leaves its halves goes to the other one, and what leaves the element is folded in.
///
/// # Safety
/// As [`Vector`].
#[inline(always)]
pub(crate) unsafe fn times_x(element: Block) -> Block {
    let carried = element.lowered(63);
    let crossed = carried.exchanged();
    let folded = carried.high_by_low(vector::number(0, POLYNOMIAL)).low_to_high();
    element.raised(1).xor(crossed).xor(folded)
}
