//! Two blocks: VAES and VPCLMULQDQ on 256 bits.

use std::arch::asm;
use std::arch::x86_64::*;

use super::{Block, Vector};

impl Vector for __m256i {
    const BLOCKS: usize = 2;

    #[inline(always)]
    unsafe fn zero() -> Self {
        _mm256_setzero_si256()
    }

    #[inline(always)]
    unsafe fn load(from: *const Block) -> Self {
        _mm256_loadu_si256(from.cast())
    }

    #[inline(always)]
    unsafe fn load_first(from: *const Block, blocks: usize) -> Self {
        match blocks {
            1 => _mm256_zextsi128_si256(_mm_loadu_si128(from)),
            _ => Self::load(from),
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut Block) {
        _mm256_storeu_si256(to.cast(), self);
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut Block, blocks: usize) {
        match blocks {
            1 => _mm_storeu_si128(to, _mm256_castsi256_si128(self)),
            _ => self.store(to),
        }
    }

    #[inline(always)]
    unsafe fn first(self, blocks: usize) -> Self {
        match blocks {
            1 => _mm256_zextsi128_si256(_mm256_castsi256_si128(self)),
            _ => self,
        }
    }

    #[inline(always)]
    unsafe fn everywhere(block: Block) -> Self {
        _mm256_broadcastsi128_si256(block)
    }

    #[inline(always)]
    unsafe fn in_front(block: Block) -> Self {
        _mm256_zextsi128_si256(block)
    }

    #[inline(always)]
    unsafe fn ascending() -> Self {
        _mm256_set_epi32(0, 0, 0, 1, 0, 0, 0, 0)
    }

    of_two! {
        add: _mm256_add_epi32,
        xor: _mm256_xor_si256,
        round: _mm256_aesenc_epi128,
        last_round: _mm256_aesenclast_epi128,
        inverse_round: _mm256_aesdec_epi128,
        last_inverse_round: _mm256_aesdeclast_epi128,
        low_by_low: _mm256_clmulepi64_epi128::<0x00>,
        high_by_high: _mm256_clmulepi64_epi128::<0x11>,
        low_by_high: _mm256_clmulepi64_epi128::<0x10>,
        high_by_low: _mm256_clmulepi64_epi128::<0x01>,
    }

    #[inline(always)]
    unsafe fn reversed(self) -> Self {
        let order = _mm_set_epi64x(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f);
        _mm256_shuffle_epi8(self, _mm256_broadcastsi128_si256(order))
    }

    #[inline(always)]
    unsafe fn exchanged(self) -> Self {
        _mm256_shuffle_epi32::<0b01_00_11_10>(self)
    }

    #[inline(always)]
    unsafe fn raised(self, bits: usize) -> Self {
        _mm256_sll_epi64(self, _mm_cvtsi64_si128(bits as i64))
    }

    #[inline(always)]
    unsafe fn lowered(self, bits: usize) -> Self {
        _mm256_srl_epi64(self, _mm_cvtsi64_si128(bits as i64))
    }

    #[inline(always)]
    unsafe fn low_to_high(self) -> Self {
        _mm256_bslli_epi128::<8>(self)
    }

    #[inline(always)]
    unsafe fn behind(self, before: Self) -> Self {
        _mm256_permute2x128_si256::<0x21>(before, self)
    }

    #[inline(always)]
    unsafe fn of_blocks(blocks: [Block; 4]) -> Self {
        _mm256_set_m128i(blocks[1], blocks[0])
    }

    #[inline(always)]
    unsafe fn nth(self, at: usize) -> Block {
        match at {
            0 => _mm256_castsi256_si128(self),
            _ => _mm256_extracti128_si256::<1>(self),
        }
    }

    #[inline(always)]
    unsafe fn pinned(self) -> Self {
        pinned(self)
    }

    #[inline(always)]
    unsafe fn sum(self) -> Block {
        _mm_xor_si128(_mm256_castsi256_si128(self), _mm256_extracti128_si256::<1>(self))
    }
}

/// Apart, for the register is only known to a function that names its feature.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn pinned(register: __m256i) -> __m256i {
    let mut same = register;
    asm!("/* {0} */", inout(ymm_reg) same, options(nomem, nostack, preserves_flags));
    same
}
