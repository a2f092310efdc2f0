//! Rows of pieces of 128 bits by columns: what is next of several messages, a message in a row, becomes what is next, a piece of each message in a column, and back.

use std::arch::x86_64::*;

/// Two rows of two pieces.
///
/// # Safety
/// The processor has AVX2, and the caller is compiled with it.
#[inline(always)]
pub(crate) unsafe fn by_columns_of_two(one: __m256i, other: __m256i) -> [__m256i; 2] {
    [_mm256_permute2x128_si256::<0x20>(one, other), _mm256_permute2x128_si256::<0x31>(one, other)]
}

/// Four rows of four pieces.
///
/// # Safety
/// The same of AVX-512F.
#[inline(always)]
pub(crate) unsafe fn by_columns_of_four([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let (ab, cd) = (_mm512_shuffle_i64x2::<0x44>(a, b), _mm512_shuffle_i64x2::<0x44>(c, d));
    let (ab_later, cd_later) = (_mm512_shuffle_i64x2::<0xee>(a, b), _mm512_shuffle_i64x2::<0xee>(c, d));
    [
        _mm512_shuffle_i64x2::<0x88>(ab, cd),
        _mm512_shuffle_i64x2::<0xdd>(ab, cd),
        _mm512_shuffle_i64x2::<0x88>(ab_later, cd_later),
        _mm512_shuffle_i64x2::<0xdd>(ab_later, cd_later),
    ]
}
