//! One block: AES-NI and PCLMULQDQ on 128 bits.

use std::arch::asm;
use std::arch::x86_64::*;

use super::{Block, Vector};

impl Vector for __m128i {
    alone!();

    #[inline(always)]
    unsafe fn zero() -> Self {
        _mm_setzero_si128()
    }

    #[inline(always)]
    unsafe fn load(from: *const Block) -> Self {
        _mm_loadu_si128(from)
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut Block) {
        _mm_storeu_si128(to, self);
    }

    of_two! {
        add: _mm_add_epi32,
        xor: _mm_xor_si128,
        round: _mm_aesenc_si128,
        last_round: _mm_aesenclast_si128,
        inverse_round: _mm_aesdec_si128,
        last_inverse_round: _mm_aesdeclast_si128,
        low_by_low: _mm_clmulepi64_si128::<0x00>,
        high_by_high: _mm_clmulepi64_si128::<0x11>,
        low_by_high: _mm_clmulepi64_si128::<0x10>,
        high_by_low: _mm_clmulepi64_si128::<0x01>,
    }

    #[inline(always)]
    unsafe fn reversed(self) -> Self {
        _mm_shuffle_epi8(self, _mm_set_epi64x(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f))
    }

    #[inline(always)]
    unsafe fn exchanged(self) -> Self {
        _mm_shuffle_epi32::<0b01_00_11_10>(self)
    }

    #[inline(always)]
    unsafe fn raised(self, bits: usize) -> Self {
        _mm_sll_epi64(self, _mm_cvtsi64_si128(bits as i64))
    }

    #[inline(always)]
    unsafe fn lowered(self, bits: usize) -> Self {
        _mm_srl_epi64(self, _mm_cvtsi64_si128(bits as i64))
    }

    #[inline(always)]
    unsafe fn low_to_high(self) -> Self {
        _mm_slli_si128::<8>(self)
    }

    #[inline(always)]
    unsafe fn pinned(self) -> Self {
        let mut same = self;
        asm!("/* {0} */", inout(xmm_reg) same, options(nomem, nostack, preserves_flags));
        same
    }
}
