//! One block by the Cryptographic Extension of ARMv8: AESE, AESD, AESMC, AESIMC and PMULL (Arm Architecture Reference Manual for A-profile, FEAT_AES and FEAT_PMULL), and
//! what is done with a single block and its words.

#![allow(
    unknown_lints,
    inline_always_mismatching_target_features,
    reason = "inlined once these functions are, in an entry that has the features"
)]

use std::arch::aarch64::*;
use std::arch::asm;
use std::mem::transmute;

use super::Vector;

/// One block of 16 bytes.
pub(crate) type Block = uint8x16_t;

#[inline(always)]
unsafe fn of_halves(halves: uint64x2_t) -> Block {
    vreinterpretq_u8_u64(halves)
}

#[inline(always)]
unsafe fn of_words(words: uint32x4_t) -> Block {
    vreinterpretq_u8_u32(words)
}

#[inline(always)]
unsafe fn low(block: Block) -> u64 {
    vgetq_lane_u64::<0>(vreinterpretq_u64_u8(block))
}

#[inline(always)]
unsafe fn bytes_of(product: u128) -> Block {
    // SAFETY: both are 16 plain bytes.
    unsafe { transmute(product) }
}

/// The carry-less product of two high halves.
#[inline(always)]
unsafe fn product_of_high(one: Block, other: Block) -> Block {
    bytes_of(vmull_high_p64(vreinterpretq_p64_u8(one), vreinterpretq_p64_u8(other)))
}

impl Vector for uint8x16_t {
    alone!();
    const KEY_FIRST: bool = true;

    #[inline(always)]
    unsafe fn zero() -> Self {
        vdupq_n_u8(0)
    }

    #[inline(always)]
    unsafe fn load(from: *const Block) -> Self {
        vld1q_u8(from.cast())
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut Block) {
        vst1q_u8(to.cast(), self);
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        of_words(vaddq_u32(vreinterpretq_u32_u8(self), vreinterpretq_u32_u8(other)))
    }

    of_two! {
        xor: veorq_u8,
        unmixed_round: vaeseq_u8,
        unmixed_inverse_round: vaesdq_u8,
        last_round: veorq_u8,
        last_inverse_round: veorq_u8,
        high_by_high: product_of_high,
    }

    #[inline(always)]
    unsafe fn round(self, key: Self) -> Self {
        // As one, for the processor takes both together; and into the text's register, for AESE gives the same either way, and compilers take the key's and move it back.
        let mut text = self;
        asm!(
            "aese {0:v}.16b, {1:v}.16b",
            "aesmc {0:v}.16b, {0:v}.16b",
            inout(vreg) text, in(vreg) key,
            options(pure, nomem, nostack, preserves_flags)
        );
        text
    }

    #[inline(always)]
    unsafe fn inverse_round(self, key: Self) -> Self {
        vaesimcq_u8(vaesdq_u8(self, key))
    }

    #[inline(always)]
    unsafe fn reversed(self) -> Self {
        vrev64q_u8(self).exchanged()
    }

    #[inline(always)]
    unsafe fn exchanged(self) -> Self {
        vextq_u8::<8>(self, self)
    }

    #[inline(always)]
    unsafe fn raised(self, bits: usize) -> Self {
        of_halves(vshlq_u64(vreinterpretq_u64_u8(self), vdupq_n_s64(bits as i64)))
    }

    #[inline(always)]
    unsafe fn lowered(self, bits: usize) -> Self {
        of_halves(vshlq_u64(vreinterpretq_u64_u8(self), vdupq_n_s64(-(bits as i64))))
    }

    #[inline(always)]
    unsafe fn low_to_high(self) -> Self {
        vextq_u8::<8>(Self::zero(), self)
    }

    #[inline(always)]
    unsafe fn low_by_low(self, other: Self) -> Self {
        bytes_of(vmull_p64(low(self), low(other)))
    }

    #[inline(always)]
    unsafe fn low_by_high(self, other: Self) -> Self {
        self.low_by_low(other.exchanged())
    }

    #[inline(always)]
    unsafe fn high_by_low(self, other: Self) -> Self {
        product_of_high(self, other.exchanged())
    }

    #[inline(always)]
    unsafe fn pinned(self) -> Self {
        let mut same = self;
        asm!("/* {0:v} */", inout(vreg) same, options(nomem, nostack, preserves_flags));
        same
    }
}

/// Two halves of 64 bits.
#[inline(always)]
pub(crate) unsafe fn number(high: u64, low: u64) -> Block {
    of_halves(vcombine_u64(vcreate_u64(low), vcreate_u64(high)))
}

/// The low half and the high one.
#[inline(always)]
pub(crate) unsafe fn halves(block: Block) -> [u64; 2] {
    [low(block), vgetq_lane_u64::<1>(vreinterpretq_u64_u8(block))]
}

/// Each word with all words before it added.
#[inline(always)]
pub(crate) unsafe fn summed(words: Block) -> Block {
    let zero = Block::zero();
    let pairs = words.xor(vextq_u8::<12>(zero, words));
    pairs.xor(vextq_u8::<8>(zero, pairs))
}

/// The last word in all four: rotated, substituted, and the round's constant added. The S-box is that of the instruction, whose exchange of bytes
/// between words does nothing where all are alike; a table would be indexed by the key.
#[inline(always)]
pub(crate) unsafe fn rotated_last(words: Block, constant: u32) -> Block {
    let last = vqtbl1q_u8(words, of_words(vdupq_n_u32(0x0c0f_0e0d)));
    vaeseq_u8(last, Block::zero()).xor(of_words(vdupq_n_u32(constant)))
}

/// The last word in all four, substituted.
#[inline(always)]
pub(crate) unsafe fn substituted_last(words: Block) -> Block {
    vaeseq_u8(of_words(vdupq_laneq_u32::<3>(vreinterpretq_u32_u8(words))), Block::zero())
}

/// A round key of the equivalent inverse cipher.
#[inline(always)]
pub(crate) unsafe fn inverse_mixed(words: Block) -> Block {
    vaesimcq_u8(words)
}

/// Words whose highest bits are those of the block's halves, each where it is folded in.
#[inline(always)]
pub(crate) unsafe fn leaving(block: Block) -> Block {
    let words = vreinterpretq_u32_u8(block);
    of_words(vcombine_u32(vdup_laneq_u32::<3>(words), vdup_laneq_u32::<1>(words)))
}

/// A block times x, by what is leaving it and what that is folded in as.
#[inline(always)]
pub(crate) unsafe fn doubled(block: Block, leaving: Block, polynomial: u64) -> Block {
    let spread = vreinterpretq_u8_s32(vshrq_n_s32::<31>(vreinterpretq_s32_u8(leaving)));
    let halves = vreinterpretq_u64_u8(block);
    of_halves(vaddq_u64(halves, halves)).xor(vandq_u8(spread, number(1, polynomial)))
}

/// Has a line of the cache fetched.
#[inline(always)]
pub(crate) fn fetch(place: *const Block) {
    // SAFETY: nothing is read by the program; any address may be named.
    unsafe { asm!("prfm pldl1keep, [{0}]", in(reg) place, options(readonly, nostack, preserves_flags)) }
}
