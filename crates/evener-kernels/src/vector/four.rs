//! Four blocks: VAES and VPCLMULQDQ on 512 bits.

use std::arch::asm;
use std::arch::x86_64::*;

use super::{Block, Vector};

impl Vector for __m512i {
    const BLOCKS: usize = 4;

    #[inline(always)]
    unsafe fn zero() -> Self {
        _mm512_setzero_si512()
    }

    #[inline(always)]
    unsafe fn load(from: *const Block) -> Self {
        _mm512_loadu_si512(from.cast())
    }

    #[inline(always)]
    unsafe fn load_first(from: *const Block, blocks: usize) -> Self {
        match blocks {
            // What was written by a mask is not forwarded to the next load: a whole register and a single block need none.
            4 => Self::load(from),
            1 => Self::in_front(Block::load(from)),
            _ => _mm512_maskz_loadu_epi64(halves(blocks), from.cast()),
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut Block) {
        _mm512_storeu_si512(to.cast(), self);
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut Block, blocks: usize) {
        match blocks {
            4 => self.store(to),
            1 => self.nth(0).store(to),
            _ => _mm512_mask_storeu_epi64(to.cast(), halves(blocks), self),
        }
    }

    #[inline(always)]
    unsafe fn first(self, blocks: usize) -> Self {
        _mm512_maskz_mov_epi64(halves(blocks), self)
    }

    #[inline(always)]
    unsafe fn everywhere(block: Block) -> Self {
        _mm512_broadcast_i32x4(block)
    }

    #[inline(always)]
    unsafe fn in_front(block: Block) -> Self {
        _mm512_zextsi128_si512(block)
    }

    #[inline(always)]
    unsafe fn ascending() -> Self {
        _mm512_set_epi32(0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0)
    }

    of_two! {
        add: _mm512_add_epi32,
        xor: _mm512_xor_si512,
        round: _mm512_aesenc_epi128,
        last_round: _mm512_aesenclast_epi128,
        inverse_round: _mm512_aesdec_epi128,
        last_inverse_round: _mm512_aesdeclast_epi128,
        low_by_low: _mm512_clmulepi64_epi128::<0x00>,
        high_by_high: _mm512_clmulepi64_epi128::<0x11>,
        low_by_high: _mm512_clmulepi64_epi128::<0x10>,
        high_by_low: _mm512_clmulepi64_epi128::<0x01>,
    }

    #[inline(always)]
    unsafe fn reversed(self) -> Self {
        let order = _mm_set_epi64x(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f);
        _mm512_shuffle_epi8(self, _mm512_broadcast_i32x4(order))
    }

    #[inline(always)]
    unsafe fn exchanged(self) -> Self {
        _mm512_shuffle_epi32::<_MM_PERM_BADC>(self)
    }

    #[inline(always)]
    unsafe fn raised(self, bits: usize) -> Self {
        _mm512_sll_epi64(self, _mm_cvtsi64_si128(bits as i64))
    }

    #[inline(always)]
    unsafe fn lowered(self, bits: usize) -> Self {
        _mm512_srl_epi64(self, _mm_cvtsi64_si128(bits as i64))
    }

    #[inline(always)]
    unsafe fn low_to_high(self) -> Self {
        _mm512_bslli_epi128::<8>(self)
    }

    #[inline(always)]
    unsafe fn behind(self, before: Self) -> Self {
        _mm512_alignr_epi64::<6>(self, before)
    }

    #[inline(always)]
    unsafe fn of_blocks(blocks: [Block; 4]) -> Self {
        let low = _mm512_castsi256_si512(__m256i::of_blocks(blocks));
        let high = _mm256_set_m128i(blocks[3], blocks[2]);
        _mm512_inserti64x4::<1>(low, high)
    }

    #[inline(always)]
    unsafe fn nth(self, at: usize) -> Block {
        match at {
            0 => _mm512_castsi512_si128(self),
            1 => _mm512_extracti32x4_epi32::<1>(self),
            2 => _mm512_extracti32x4_epi32::<2>(self),
            _ => _mm512_extracti32x4_epi32::<3>(self),
        }
    }

    #[inline(always)]
    unsafe fn pinned(self) -> Self {
        pinned(self)
    }

    #[inline(always)]
    unsafe fn sum(self) -> Block {
        let two = _mm256_xor_si256(_mm512_castsi512_si256(self), _mm512_extracti64x4_epi64::<1>(self));
        two.sum()
    }
}

/// A mask of the halves of 64 bits of the first `blocks` blocks, 1 to 4.
#[inline(always)]
fn halves(blocks: usize) -> __mmask8 {
    0xff_u8 >> (8 - 2 * blocks)
}

/// Apart, for the register is only known to a function that names its feature.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn pinned(register: __m512i) -> __m512i {
    let mut same = register;
    asm!("/* {0} */", inout(zmm_reg) same, options(nomem, nostack, preserves_flags));
    same
}
