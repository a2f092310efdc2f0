//! A register of words, each of another message, and how blocks of messages come into registers.
//!
//! The rounds are written once over [`Words`]; an entry in `entries.rs` names the register and switches the instructions on for all that is inlined into it.

use std::arch::x86_64::*;

use crate::vector::columns::{by_columns_of_four, by_columns_of_two};

/// Words of a block, of every hash here.
pub(super) const WORDS: usize = 16;

/// Bytes by which fetching runs ahead. Measured with `examples/hashes_speed.rs` over 64 MB on Sapphire Rapids.
const AHEAD: usize = 512;

/// A register of words of 32 or 64 bits, each of another lane.
///
/// # Safety
/// Of all functions: the processor has the register's instructions, and the caller is compiled with them. Places are good for as many bytes as the
/// function says; they need no alignment.
pub(super) trait Words: Copy {
    /// A word.
    type Word: Copy + 'static;
    /// Words in a register.
    const LANES: usize;
    /// Rounds of SHA-2 that stand in the program one behind the other: all of a block's words where they stay in registers, or those behind which the state's
    /// words are where they were.
    const TURN: usize;

    /// Reads a whole register.
    unsafe fn load(from: *const Self::Word) -> Self;
    unsafe fn store(self, to: *mut Self::Word);
    /// The word everywhere.
    unsafe fn everywhere(word: Self::Word) -> Self;
    unsafe fn plus(self, other: Self) -> Self;
    /// The exclusive or of three.
    unsafe fn xor3(self, second: Self, third: Self) -> Self;
    /// Bits of `yes` where those of this are set, and of `no` elsewhere: `Ch` of FIPS 180-4.
    unsafe fn choice(self, yes: Self, no: Self) -> Self;
    /// Bits that two of three have: `Maj` of FIPS 180-4.
    unsafe fn majority(self, second: Self, third: Self) -> Self;
    unsafe fn rotated_right<const BITS: i32>(self) -> Self;
    unsafe fn shifted_right<const BITS: i32>(self) -> Self;
    /// The words of a block of each lane, which begins so many bytes behind its place.
    unsafe fn block(places: *const *const u8, at: usize) -> [Self; WORDS];
}

/// 16 words of 32 bits: AVX-512.
#[derive(Clone, Copy)]
pub(super) struct Sixteen(__m512i);

/// 8 words of 32 bits: AVX2.
#[derive(Clone, Copy)]
pub(super) struct Eight(__m256i);

/// 8 words of 64 bits: AVX-512.
#[derive(Clone, Copy)]
pub(super) struct EightLong(__m512i);

/// 4 words of 64 bits: AVX2.
#[derive(Clone, Copy)]
pub(super) struct FourLong(__m256i);

/// What is alike of all registers, by its instructions.
macro_rules! register {
    ($word:ty, $lanes:literal, $turn:expr, $load:ident, $store:ident, $set:ident, $add:ident) => {
        type Word = $word;
        const LANES: usize = $lanes;
        const TURN: usize = $turn;

        #[inline(always)]
        unsafe fn load(from: *const $word) -> Self {
            Self($load(from.cast()))
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut $word) {
            $store(to.cast(), self.0);
        }

        #[inline(always)]
        unsafe fn everywhere(word: $word) -> Self {
            Self($set(word.cast_signed()))
        }

        #[inline(always)]
        unsafe fn plus(self, other: Self) -> Self {
            Self($add(self.0, other.0))
        }
    };
}

macro_rules! by_avx512 {
    ($word:ty, $lanes:literal, $set:ident, $add:ident, $logic:ident, $ror:ident, $srl:ident) => {
        register!($word, $lanes, WORDS, _mm512_loadu_si512, _mm512_storeu_si512, $set, $add);

        #[inline(always)]
        unsafe fn xor3(self, second: Self, third: Self) -> Self {
            Self($logic::<0x96>(self.0, second.0, third.0))
        }

        #[inline(always)]
        unsafe fn choice(self, yes: Self, no: Self) -> Self {
            Self($logic::<0xca>(self.0, yes.0, no.0))
        }

        #[inline(always)]
        unsafe fn majority(self, second: Self, third: Self) -> Self {
            Self($logic::<0xe8>(self.0, second.0, third.0))
        }

        #[inline(always)]
        unsafe fn rotated_right<const BITS: i32>(self) -> Self {
            Self($ror::<BITS>(self.0))
        }

        #[inline(always)]
        unsafe fn shifted_right<const BITS: i32>(self) -> Self {
            Self($srl(self.0, _mm_cvtsi32_si128(BITS)))
        }
    };
}

macro_rules! by_avx2 {
    ($word:ty, $lanes:literal, $set:ident, $add:ident, $srl:ident, $sll:ident) => {
        register!($word, $lanes, WORDS / 2, _mm256_loadu_si256, _mm256_storeu_si256, $set, $add);

        #[inline(always)]
        unsafe fn xor3(self, second: Self, third: Self) -> Self {
            Self(_mm256_xor_si256(_mm256_xor_si256(self.0, second.0), third.0))
        }

        #[inline(always)]
        unsafe fn choice(self, yes: Self, no: Self) -> Self {
            Self(_mm256_xor_si256(no.0, _mm256_and_si256(self.0, _mm256_xor_si256(yes.0, no.0))))
        }

        #[inline(always)]
        unsafe fn majority(self, second: Self, third: Self) -> Self {
            let unlike = _mm256_xor_si256(self.0, second.0);
            Self(_mm256_xor_si256(second.0, _mm256_and_si256(unlike, _mm256_xor_si256(third.0, second.0))))
        }

        #[inline(always)]
        unsafe fn rotated_right<const BITS: i32>(self) -> Self {
            let left = _mm_cvtsi32_si128(<$word>::BITS.cast_signed() - BITS);
            Self(_mm256_or_si256(self.shifted_right::<BITS>().0, $sll(self.0, left)))
        }

        #[inline(always)]
        unsafe fn shifted_right<const BITS: i32>(self) -> Self {
            Self($srl(self.0, _mm_cvtsi32_si128(BITS)))
        }
    };
}

impl Words for Sixteen {
    by_avx512!(
        u32,
        16,
        _mm512_set1_epi32,
        _mm512_add_epi32,
        _mm512_ternarylogic_epi32,
        _mm512_ror_epi32,
        _mm512_srl_epi32
    );

    #[inline(always)]
    unsafe fn block(places: *const *const u8, at: usize) -> [Self; WORDS] {
        let mut rows = [_mm512_setzero_si512(); 16];
        for (lane, row) in rows.iter_mut().enumerate() {
            *row = _mm512_loadu_si512((*places.add(lane)).add(at).cast());
        }
        // Pairs of words, then fours, of the same four lanes.
        let mut fours = rows;
        for lane in [0, 4, 8, 12] {
            let [a, b, c, d] = [rows[lane], rows[lane + 1], rows[lane + 2], rows[lane + 3]];
            let (ab, cd) = (_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d));
            let (ab_later, cd_later) = (_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d));
            fours[lane] = _mm512_unpacklo_epi64(ab, cd);
            fours[lane + 1] = _mm512_unpackhi_epi64(ab, cd);
            fours[lane + 2] = _mm512_unpacklo_epi64(ab_later, cd_later);
            fours[lane + 3] = _mm512_unpackhi_epi64(ab_later, cd_later);
        }
        let order = _mm512_broadcast_i32x4(_mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203));
        let mut words = [Self(order); WORDS];
        for word in 0..4 {
            let columns =
                by_columns_of_four([fours[word], fours[word + 4], fours[word + 8], fours[word + 12]]);
            for (number, column) in columns.into_iter().enumerate() {
                words[4 * number + word] = Self(_mm512_shuffle_epi8(column, order));
            }
        }
        words
    }
}

impl Words for Eight {
    by_avx2!(u32, 8, _mm256_set1_epi32, _mm256_add_epi32, _mm256_srl_epi32, _mm256_sll_epi32);

    #[inline(always)]
    unsafe fn block(places: *const *const u8, at: usize) -> [Self; WORDS] {
        let order = _mm256_set_epi64x(
            0x0c0d_0e0f_0809_0a0b,
            0x0405_0607_0001_0203,
            0x0c0d_0e0f_0809_0a0b,
            0x0405_0607_0001_0203,
        );
        let mut words = [Self(order); WORDS];
        for half in [0, 1] {
            let mut rows = [order; 8];
            for (lane, row) in rows.iter_mut().enumerate() {
                *row = _mm256_loadu_si256((*places.add(lane)).add(at + 32 * half).cast());
            }
            let mut fours = rows;
            for lane in [0, 4] {
                let [a, b, c, d] = [rows[lane], rows[lane + 1], rows[lane + 2], rows[lane + 3]];
                let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
                let (ab_later, cd_later) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
                fours[lane] = _mm256_unpacklo_epi64(ab, cd);
                fours[lane + 1] = _mm256_unpackhi_epi64(ab, cd);
                fours[lane + 2] = _mm256_unpacklo_epi64(ab_later, cd_later);
                fours[lane + 3] = _mm256_unpackhi_epi64(ab_later, cd_later);
            }
            for word in 0..4 {
                let columns = by_columns_of_two(fours[word], fours[word + 4]);
                for (number, column) in columns.into_iter().enumerate() {
                    words[8 * half + 4 * number + word] = Self(_mm256_shuffle_epi8(column, order));
                }
            }
        }
        words
    }
}

impl Words for EightLong {
    by_avx512!(
        u64,
        8,
        _mm512_set1_epi64,
        _mm512_add_epi64,
        _mm512_ternarylogic_epi64,
        _mm512_ror_epi64,
        _mm512_srl_epi64
    );

    #[inline(always)]
    unsafe fn block(places: *const *const u8, at: usize) -> [Self; WORDS] {
        let order = _mm512_broadcast_i32x4(_mm_set_epi64x(0x0809_0a0b_0c0d_0e0f, 0x0001_0203_0405_0607));
        let mut words = [Self(order); WORDS];
        for half in [0, 1] {
            let mut rows = [order; 8];
            for (lane, row) in rows.iter_mut().enumerate() {
                *row = _mm512_loadu_si512((*places.add(lane)).add(at + 64 * half).cast());
            }
            let mut pairs = rows;
            for lane in [0, 2, 4, 6] {
                pairs[lane] = _mm512_unpacklo_epi64(rows[lane], rows[lane + 1]);
                pairs[lane + 1] = _mm512_unpackhi_epi64(rows[lane], rows[lane + 1]);
            }
            for word in [0, 1] {
                let columns =
                    by_columns_of_four([pairs[word], pairs[word + 2], pairs[word + 4], pairs[word + 6]]);
                for (number, column) in columns.into_iter().enumerate() {
                    words[8 * half + 2 * number + word] = Self(_mm512_shuffle_epi8(column, order));
                }
            }
        }
        words
    }
}

impl Words for FourLong {
    by_avx2!(u64, 4, _mm256_set1_epi64x, _mm256_add_epi64, _mm256_srl_epi64, _mm256_sll_epi64);

    #[inline(always)]
    unsafe fn block(places: *const *const u8, at: usize) -> [Self; WORDS] {
        let order = _mm256_set_epi64x(
            0x0809_0a0b_0c0d_0e0f,
            0x0001_0203_0405_0607,
            0x0809_0a0b_0c0d_0e0f,
            0x0001_0203_0405_0607,
        );
        let mut words = [Self(order); WORDS];
        for quarter in 0..4 {
            let mut rows = [order; 4];
            for (lane, row) in rows.iter_mut().enumerate() {
                *row = _mm256_loadu_si256((*places.add(lane)).add(at + 32 * quarter).cast());
            }
            let [a, b, c, d] = rows;
            let (ab, cd) = (_mm256_unpacklo_epi64(a, b), _mm256_unpacklo_epi64(c, d));
            let (ab_later, cd_later) = (_mm256_unpackhi_epi64(a, b), _mm256_unpackhi_epi64(c, d));
            let [one, three] = by_columns_of_two(ab, cd);
            let [two, four] = by_columns_of_two(ab_later, cd_later);
            for (number, column) in [one, two, three, four].into_iter().enumerate() {
                words[4 * quarter + number] = Self(_mm256_shuffle_epi8(column, order));
            }
        }
        words
    }
}

/// Has a block of so many lanes fetched into the cache, wherever that is: the one that is next behind so many bytes.
#[inline(always)]
pub(super) unsafe fn fetch(places: *const *const u8, lanes: usize, at: usize) {
    for lane in 0..lanes {
        let place = (*places.add(lane)).wrapping_add(at + AHEAD);
        _mm_prefetch::<_MM_HINT_T0>(place.cast());
    }
}
