//! SHA-256 and SHA-1 by the SHA extensions, of one message or of several, whose instructions fill each other's latency.
//!
//! A chain waits four cycles or more for each of its rounds' instructions, and another chain's may begin meanwhile. After Gulley, Gopal, Yap, Feghali,
//! Guilford and Wolrich, "Intel SHA Extensions" (2013), which names what each instruction does, and "Processing Multiple Buffers in Parallel to Increase
//! Performance on Intel Architecture Processors" (Intel, 2010).

use std::arch::x86_64::*;

use super::constants::K256;
use super::space::STRIDE;
use super::words::fetch;

/// Four words of four bytes in a register.
type Four = __m128i;

/// A state in two registers, as the instructions have it.
type State = [Four; 2];

/// Four times four words of a block: those of the last rounds.
type Block = [Four; 4];

/// A hash by its instructions.
///
/// # Safety
/// Of all functions: the processor has the instructions, and the caller is compiled with them.
pub(super) trait Chain {
    /// Where a state's words lie in its registers as they are stored, the first word's place first.
    const WORDS: &'static [usize];

    /// A state of its words.
    unsafe fn state(word: impl Fn(usize) -> i32) -> State;
    /// All rounds of a block of each place, which begins so many bytes behind it.
    unsafe fn rounds<const COUNT: usize>(
        now: &mut [State; COUNT],
        words: &mut [Block; COUNT],
        places: *const *const u8,
        at: usize,
    );
    /// The state behind a block's rounds and before them.
    unsafe fn behind(now: State, before: State) -> State;
}

/// Takes so many blocks of `COUNT` lanes into their states.
///
/// # Safety
/// As [`Chain`]. The places of these lanes are good for as many blocks.
#[inline(always)]
pub(super) unsafe fn compress<C: Chain, const COUNT: usize>(
    state: *mut u32,
    places: *const *const u8,
    blocks: usize,
) {
    let mut now = [[_mm_setzero_si128(); 2]; COUNT];
    for (lane, now) in now.iter_mut().enumerate() {
        *now = C::state(|number| (*state.add(number * STRIDE + lane)).cast_signed());
    }
    for block in 0..blocks {
        let before = now;
        let mut words = [[_mm_setzero_si128(); 4]; COUNT];
        C::rounds(&mut now, &mut words, places, 64 * block);
        for (now, before) in now.iter_mut().zip(before) {
            *now = C::behind(*now, before);
        }
    }
    for (lane, [one, other]) in now.into_iter().enumerate() {
        let mut words = [0_u32; 8];
        _mm_storeu_si128(words.as_mut_ptr().cast(), one);
        _mm_storeu_si128(words.as_mut_ptr().add(4).cast(), other);
        for (number, from) in C::WORDS.iter().enumerate() {
            *state.add(number * STRIDE + lane) = words[*from];
        }
    }
}

/// SHA-256: A, B, E and F, and the others.
pub(super) struct Sha256;

impl Chain for Sha256 {
    const WORDS: &'static [usize] = &[3, 2, 7, 6, 1, 0, 5, 4];

    #[inline(always)]
    unsafe fn state(word: impl Fn(usize) -> i32) -> State {
        [_mm_set_epi32(word(0), word(1), word(4), word(5)), _mm_set_epi32(word(2), word(3), word(6), word(7))]
    }

    #[inline(always)]
    unsafe fn rounds<const COUNT: usize>(
        now: &mut [State; COUNT],
        words: &mut [Block; COUNT],
        places: *const *const u8,
        at: usize,
    ) {
        macro_rules! rounds {
            ($($number:literal)*) => {$( four_rounds_256::<COUNT, $number>(now, words, places, at); )*};
        }
        rounds!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    }

    #[inline(always)]
    unsafe fn behind(now: State, before: State) -> State {
        [_mm_add_epi32(now[0], before[0]), _mm_add_epi32(now[1], before[1])]
    }
}

#[inline(always)]
unsafe fn four_rounds_256<const COUNT: usize, const NUMBER: usize>(
    now: &mut [State; COUNT],
    words: &mut [Block; COUNT],
    places: *const *const u8,
    at: usize,
) {
    let constants = _mm_loadu_si128(K256.as_ptr().add(4 * NUMBER).cast());
    let mut sums = [constants; COUNT];
    for lane in 0..COUNT {
        let words = &mut words[lane];
        let made = if NUMBER < 4 {
            let order = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
            _mm_shuffle_epi8(four_words(places, lane, at + 16 * NUMBER), order)
        } else {
            let [one, two, three, four] = [0, 1, 2, 3].map(|later| words[(NUMBER + later) % 4]);
            let sum = _mm_add_epi32(_mm_sha256msg1_epu32(one, two), _mm_alignr_epi8::<4>(four, three));
            _mm_sha256msg2_epu32(sum, four)
        };
        words[NUMBER % 4] = made;
        sums[lane] = _mm_add_epi32(made, constants);
    }
    for lane in 0..COUNT {
        now[lane][1] = _mm_sha256rnds2_epu32(now[lane][1], now[lane][0], sums[lane]);
    }
    for lane in 0..COUNT {
        let upper = _mm_shuffle_epi32::<0x0e>(sums[lane]);
        now[lane][0] = _mm_sha256rnds2_epu32(now[lane][0], now[lane][1], upper);
    }
    if NUMBER == 0 {
        fetch(places, COUNT, at);
    }
}

/// SHA-1: A to D, and E before the next rounds, or what it is made of behind some.
pub(super) struct Sha1;

impl Chain for Sha1 {
    const WORDS: &'static [usize] = &[3, 2, 1, 0, 7];

    #[inline(always)]
    unsafe fn state(word: impl Fn(usize) -> i32) -> State {
        [_mm_set_epi32(word(0), word(1), word(2), word(3)), _mm_set_epi32(word(4), 0, 0, 0)]
    }

    #[inline(always)]
    unsafe fn rounds<const COUNT: usize>(
        now: &mut [State; COUNT],
        words: &mut [Block; COUNT],
        places: *const *const u8,
        at: usize,
    ) {
        macro_rules! rounds {
            ($($function:literal: $($number:literal)*;)*) => {$($(
                four_rounds_1::<COUNT, $number, $function>(now, words, places, at);
            )*)*};
        }
        rounds!(0: 0 1 2 3 4; 1: 5 6 7 8 9; 2: 10 11 12 13 14; 3: 15 16 17 18 19;);
    }

    #[inline(always)]
    unsafe fn behind(now: State, before: State) -> State {
        // What E is after the last rounds is told by what A was four rounds before.
        [_mm_add_epi32(now[0], before[0]), _mm_sha1nexte_epu32(now[1], before[1])]
    }
}

#[inline(always)]
unsafe fn four_rounds_1<const COUNT: usize, const NUMBER: usize, const FUNCTION: i32>(
    now: &mut [State; COUNT],
    words: &mut [Block; COUNT],
    places: *const *const u8,
    at: usize,
) {
    for lane in 0..COUNT {
        let words = &mut words[lane];
        let made = if NUMBER < 4 {
            let order = _mm_set_epi64x(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f);
            _mm_shuffle_epi8(four_words(places, lane, at + 16 * NUMBER), order)
        } else {
            let [one, two, three, four] = [0, 1, 2, 3].map(|later| words[(NUMBER + later) % 4]);
            _mm_sha1msg2_epu32(_mm_xor_si128(_mm_sha1msg1_epu32(one, two), three), four)
        };
        words[NUMBER % 4] = made;
        let [abcd, e] = now[lane];
        let sum = if NUMBER == 0 { _mm_add_epi32(e, made) } else { _mm_sha1nexte_epu32(e, made) };
        now[lane] = [_mm_sha1rnds4_epu32::<FUNCTION>(abcd, sum), abcd];
    }
    if NUMBER == 0 {
        fetch(places, COUNT, at);
    }
}

/// Four words of a lane's block, as they lie there.
#[inline(always)]
unsafe fn four_words(places: *const *const u8, lane: usize, at: usize) -> Four {
    _mm_loadu_si128((*places.add(lane)).add(at).cast())
}
