//! SHA-256 and SHA-512 (FIPS 180-4, 6.2 and 6.4) of as many messages as a register has words.

use super::constants::{K256, K512};
use super::space::STATE_WORDS;
use super::words::{Eight, EightLong, FourLong, Sixteen, WORDS, Words, fetch};

/// What tells the two apart.
///
/// # Safety
/// As [`Words`].
pub(super) trait Sha2: Words {
    /// Constants by rounds.
    const CONSTANTS: &'static [Self::Word];
    /// Σ0 and Σ1 of FIPS 180-4.
    unsafe fn sum_0(self) -> Self;
    unsafe fn sum_1(self) -> Self;
    /// σ0 and σ1.
    unsafe fn part_0(self) -> Self;
    unsafe fn part_1(self) -> Self;
}

/// Functions that are the exclusive or of three turns, or of two turns and a shift.
macro_rules! sha2 {
    ($register:ty, $constants:ident, $turns_0:tt, $turns_1:tt, $part_0:tt, $part_1:tt) => {
        impl Sha2 for $register {
            const CONSTANTS: &'static [Self::Word] = &$constants;
            sha2!(@turns sum_0 $turns_0);
            sha2!(@turns sum_1 $turns_1);
            sha2!(@shift part_0 $part_0);
            sha2!(@shift part_1 $part_1);
        }
    };
    (@turns $name:ident ($one:literal $two:literal $three:literal)) => {
        #[inline(always)]
        unsafe fn $name(self) -> Self {
            self.rotated_right::<$one>().xor3(self.rotated_right::<$two>(), self.rotated_right::<$three>())
        }
    };
    (@shift $name:ident ($one:literal $two:literal $three:literal)) => {
        #[inline(always)]
        unsafe fn $name(self) -> Self {
            self.rotated_right::<$one>().xor3(self.rotated_right::<$two>(), self.shifted_right::<$three>())
        }
    };
}

sha2!(Sixteen, K256, (2 13 22), (6 11 25), (7 18 3), (17 19 10));
sha2!(Eight, K256, (2 13 22), (6 11 25), (7 18 3), (17 19 10));
sha2!(EightLong, K512, (28 34 39), (14 18 41), (1 8 7), (19 61 6));
sha2!(FourLong, K512, (28 34 39), (14 18 41), (1 8 7), (19 61 6));

/// Takes so many blocks of each lane into its state.
///
/// # Safety
/// As [`Words`]; the places of all lanes are good for as many blocks.
#[inline(always)]
pub(super) unsafe fn compress<V: Sha2>(
    state: *mut V::Word,
    stride: usize,
    places: *const *const u8,
    blocks: usize,
) {
    let block_bytes = WORDS * size_of::<V::Word>();
    for block in 0..blocks {
        fetch(places, V::LANES, block * block_bytes);
        let mut words = V::block(places, block * block_bytes);
        let mut now = [words[0]; STATE_WORDS];
        for (number, word) in now.iter_mut().enumerate() {
            *word = V::load(state.add(number * stride));
        }
        let constants = V::CONSTANTS.as_ptr();
        let mut at = 0;
        while at < V::CONSTANTS.len() {
            match at < WORDS {
                true => turn::<V, false>(&mut now, &mut words, constants.add(at), at % WORDS),
                false => turn::<V, true>(&mut now, &mut words, constants.add(at), at % WORDS),
            }
            at += V::TURN;
        }
        for (number, word) in now.into_iter().enumerate() {
            let place = state.add(number * stride);
            V::load(place).plus(word).store(place);
        }
    }
}

/// A turn of rounds, the first of which takes the word of this number; before each the schedule's next word is made where there is none.
#[inline(always)]
unsafe fn turn<V: Sha2, const MAKES: bool>(
    state: &mut [V; STATE_WORDS],
    words: &mut [V; WORDS],
    constants: *const V::Word,
    first: usize,
) {
    // Known where all words have their round here.
    let first = if V::TURN == WORDS { 0 } else { first };
    macro_rules! rounds {
        ($($number:literal)*) => {$( round::<V, $number, MAKES>(state, words, constants, first); )*};
    }
    rounds!(0 1 2 3 4 5 6 7);
    if V::TURN == WORDS {
        rounds!(8 9 10 11 12 13 14 15);
    }
}

/// A round. The state's words stay where they are, and their names move on.
#[inline(always)]
unsafe fn round<V: Sha2, const NUMBER: usize, const MAKES: bool>(
    state: &mut [V; STATE_WORDS],
    words: &mut [V; WORDS],
    constants: *const V::Word,
    first: usize,
) {
    let at = |later: usize| (first + NUMBER + later) % WORDS;
    if MAKES {
        let made = words[at(14)].part_1().plus(words[at(9)]);
        words[at(0)] = words[at(0)].plus(words[at(1)].part_0()).plus(made);
    }
    let name = |letter: usize| (letter + STATE_WORDS * 2 - NUMBER) % STATE_WORDS;
    let [a, b, c, e, f, g, h] = [0, 1, 2, 4, 5, 6, 7].map(|letter| state[name(letter)]);
    let mixed = h.plus(words[at(0)].plus(V::everywhere(*constants.add(NUMBER))));
    let first = mixed.plus(e.sum_1()).plus(e.choice(f, g));
    state[name(3)] = state[name(3)].plus(first);
    state[name(7)] = first.plus(a.sum_0()).plus(a.majority(b, c));
}
