//! What is done with a single block and its words: schedules of AES, counters, tweaks. By SSE4.1 and AES-NI.
//!
//! As of [`Vector`](super::Vector): the processor has these instructions, and the caller is compiled with them.

use std::arch::x86_64::*;

/// One block of 16 bytes.
pub(crate) type Block = __m128i;

/// Two halves of 64 bits.
#[inline(always)]
pub(crate) unsafe fn number(high: u64, low: u64) -> Block {
    _mm_set_epi64x(high.cast_signed(), low.cast_signed())
}

/// The low half and the high one.
#[inline(always)]
pub(crate) unsafe fn halves(block: Block) -> [u64; 2] {
    [_mm_cvtsi128_si64(block).cast_unsigned(), _mm_extract_epi64::<1>(block).cast_unsigned()]
}

/// Each word with all words before it added.
#[inline(always)]
pub(crate) unsafe fn summed(words: Block) -> Block {
    let pairs = _mm_xor_si128(words, _mm_slli_si128::<4>(words));
    _mm_xor_si128(pairs, _mm_slli_si128::<8>(pairs))
}

/// The last word in all four: rotated, substituted, and the round's constant added. The S-box is that of the instruction, whose exchange of bytes
/// between words does nothing where all are alike; a table would be indexed by the key.
#[inline(always)]
pub(crate) unsafe fn rotated_last(words: Block, constant: u32) -> Block {
    let last = _mm_shuffle_epi8(words, _mm_set1_epi32(0x0c0f_0e0d));
    _mm_aesenclast_si128(last, _mm_set1_epi32(constant.cast_signed()))
}

/// The last word in all four, substituted.
#[inline(always)]
pub(crate) unsafe fn substituted_last(words: Block) -> Block {
    _mm_aesenclast_si128(_mm_shuffle_epi32::<0b11_11_11_11>(words), _mm_setzero_si128())
}

/// A round key of the equivalent inverse cipher.
#[inline(always)]
pub(crate) unsafe fn inverse_mixed(words: Block) -> Block {
    _mm_aesimc_si128(words)
}

/// Words whose highest bits are those of the block's halves, each where it is folded in.
#[inline(always)]
pub(crate) unsafe fn leaving(block: Block) -> Block {
    _mm_shuffle_epi32::<0b01_01_11_11>(block)
}

/// A block times x, by what is leaving it and what that is folded in as.
#[inline(always)]
pub(crate) unsafe fn doubled(block: Block, leaving: Block, polynomial: u64) -> Block {
    let folded = _mm_and_si128(_mm_srai_epi32::<31>(leaving), number(1, polynomial));
    _mm_xor_si128(_mm_add_epi64(block, block), folded)
}

/// Has a line of the cache fetched.
#[inline(always)]
pub(crate) fn fetch(place: *const Block) {
    // SAFETY: nothing is read by the program; any address may be named.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) }
}
