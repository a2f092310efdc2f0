//! Planes in registers of x86-64: eight blocks by SSE2 or SSSE3, sixteen by AVX2, of which each half holds eight. Byte `4 c + r` of a half has one bit of each block.

use std::arch::x86_64::*;

use super::plane::{Bits, Bytes, Plane, order, transposed};

/// 128 bits; whose bytes are put in order by one instruction where `SHUFFLES`, which is SSSE3, or else by those of SSE2.
#[derive(Clone, Copy)]
pub(super) struct Half<const SHUFFLES: bool>(__m128i);

/// 256 bits.
#[derive(Clone, Copy)]
pub(super) struct Both(__m256i);

/// What is alike of both but for the instructions' names.
macro_rules! plane {
    ($xor:ident, $and:ident, $repeated:ident, $word:ident, $lowered:ident, $raised:ident) => {
        #[inline(always)]
        unsafe fn odd_rows() -> Self {
            Self($word(i32::from_ne_bytes([0, 0xff, 0, 0xff])))
        }

        #[inline(always)]
        unsafe fn repeated(byte: u8) -> Self {
            Self($repeated(i8::from_ne_bytes([byte])))
        }

        #[inline(always)]
        unsafe fn lowered<const BITS: i32>(self) -> Self {
            Self($lowered::<BITS>(self.0))
        }

        #[inline(always)]
        unsafe fn raised<const BITS: i32>(self) -> Self {
            Self($raised::<BITS>(self.0))
        }
    };
}

impl<const SHUFFLES: bool> Bits for Half<SHUFFLES> {
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        Self(_mm_xor_si128(self.0, other.0))
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        Self(_mm_and_si128(self.0, other.0))
    }
}

impl<const SHUFFLES: bool> Plane for Half<SHUFFLES> {
    #[inline(always)]
    unsafe fn sliced(blocks: *const Bytes) -> [Self; 8] {
        let mut eight = [Self(_mm_setzero_si128()); 8];
        for (at, block) in eight.iter_mut().enumerate() {
            *block = Self(_mm_loadu_si128(blocks.add(at).cast()));
        }
        transposed(eight)
    }

    #[inline(always)]
    unsafe fn join(planes: [Self; 8], blocks: *mut Bytes) {
        for (at, block) in transposed(planes).into_iter().enumerate() {
            _mm_storeu_si128(blocks.add(at).cast(), block.0);
        }
    }

    #[inline(always)]
    unsafe fn turned<const ROWS: usize, const COLUMNS: usize>(self) -> Self {
        if SHUFFLES {
            let order = const { &order(ROWS, COLUMNS) };
            return Self(_mm_shuffle_epi8(self.0, _mm_loadu_si128(order.as_ptr().cast())));
        }
        let turned = match ROWS {
            1 => _mm_or_si128(_mm_srli_epi32::<8>(self.0), _mm_slli_epi32::<24>(self.0)),
            2 => _mm_shufflehi_epi16::<0b10_11_00_01>(_mm_shufflelo_epi16::<0b10_11_00_01>(self.0)),
            _ => self.0,
        };
        Self(match COLUMNS {
            1 => _mm_shuffle_epi32::<0b00_11_10_01>(turned),
            2 => _mm_shuffle_epi32::<0b01_00_11_10>(turned),
            3 => _mm_shuffle_epi32::<0b10_01_00_11>(turned),
            _ => turned,
        })
    }

    plane!(_mm_xor_si128, _mm_and_si128, _mm_set1_epi8, _mm_set1_epi32, _mm_srli_epi64, _mm_slli_epi64);
}

impl Bits for Both {
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        Self(_mm256_xor_si256(self.0, other.0))
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        Self(_mm256_and_si256(self.0, other.0))
    }
}

impl Plane for Both {
    #[inline(always)]
    unsafe fn sliced(blocks: *const Bytes) -> [Self; 8] {
        let mut eight = [Self(_mm256_setzero_si256()); 8];
        for (at, pair) in eight.iter_mut().enumerate() {
            let high = _mm_loadu_si128(blocks.add(8 + at).cast());
            *pair = Self(_mm256_set_m128i(high, _mm_loadu_si128(blocks.add(at).cast())));
        }
        transposed(eight)
    }

    #[inline(always)]
    unsafe fn join(planes: [Self; 8], blocks: *mut Bytes) {
        for (at, pair) in transposed(planes).into_iter().enumerate() {
            _mm_storeu_si128(blocks.add(at).cast(), _mm256_castsi256_si128(pair.0));
            _mm_storeu_si128(blocks.add(8 + at).cast(), _mm256_extracti128_si256::<1>(pair.0));
        }
    }

    #[inline(always)]
    unsafe fn turned<const ROWS: usize, const COLUMNS: usize>(self) -> Self {
        let order = _mm_loadu_si128(const { &order(ROWS, COLUMNS) }.as_ptr().cast());
        Self(_mm256_shuffle_epi8(self.0, _mm256_broadcastsi128_si256(order)))
    }

    plane!(
        _mm256_xor_si256,
        _mm256_and_si256,
        _mm256_set1_epi8,
        _mm256_set1_epi32,
        _mm256_srli_epi64,
        _mm256_slli_epi64
    );
}
