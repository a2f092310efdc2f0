//! SHA-1 (FIPS 180-4, 6.1) of as many messages as a register has words.
//!
//! Five rounds, after which the words of the state are where they were, stand in the program once for each function: unrolled, all eighty would be more code
//! than the processor's cache of decoded instructions likes.

use super::constants::K1;
use super::words::{WORDS, Words, fetch};

/// Words of a state of SHA-1.
const SHA_1_WORDS: usize = 5;

/// Takes so many blocks of each lane into its state.
///
/// # Safety
/// As [`Words`]; the places of all lanes are good for as many blocks.
#[inline(always)]
pub(super) unsafe fn compress<V: Words<Word = u32>>(
    state: *mut u32,
    stride: usize,
    places: *const *const u8,
    blocks: usize,
) {
    for block in 0..blocks {
        let at = block * WORDS * size_of::<u32>();
        fetch(places, V::LANES, at);
        let mut words = V::block(places, at);
        let mut now = [words[0]; SHA_1_WORDS];
        for (number, word) in now.iter_mut().enumerate() {
            *word = V::load(state.add(number * stride));
        }
        rounds::<V, 0, true>(&mut now, &mut words, 0, 20);
        rounds::<V, 1, true>(&mut now, &mut words, 20, 40);
        rounds::<V, 2, true>(&mut now, &mut words, 40, 60);
        rounds::<V, 3, true>(&mut now, &mut words, 60, 65);
        rounds::<V, 3, false>(&mut now, &mut words, 65, 80);
        for (number, word) in now.into_iter().enumerate() {
            let place = state.add(number * stride);
            V::load(place).plus(word).store(place);
        }
    }
}

/// Rounds of one function, five at a time; behind each the word that is needed sixteen later is made where one is.
#[inline(always)]
unsafe fn rounds<V: Words<Word = u32>, const FUNCTION: usize, const MAKES: bool>(
    state: &mut [V; SHA_1_WORDS],
    words: &mut [V; WORDS],
    from: usize,
    to: usize,
) {
    let constant = V::everywhere(K1[FUNCTION]);
    let mut at = from;
    while at < to {
        for number in 0..SHA_1_WORDS {
            let name = |letter: usize| (letter + SHA_1_WORDS - number) % SHA_1_WORDS;
            let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(|letter| state[name(letter)]);
            let mixed = match FUNCTION {
                0 => b.choice(c, d),
                2 => b.majority(c, d),
                _ => b.xor3(c, d),
            };
            let later = |by: usize| words[(at + number + by) % WORDS];
            let word = later(0);
            let sum = e.plus(word.plus(constant)).plus(mixed);
            state[name(4)] = sum.plus(a.rotated_right::<27>());
            state[name(1)] = b.rotated_right::<2>();
            if MAKES {
                let made = word.xor3(later(2), later(8)).xor3(later(13), V::everywhere(0));
                words[(at + number) % WORDS] = made.rotated_right::<31>();
            }
        }
        at += SHA_1_WORDS;
    }
}
