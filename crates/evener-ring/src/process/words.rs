//! Counts of 64 bits in words of 32, whatever memory these lie in.
//!
//! The path of a count: [`Counter::add`] raises the lower word -> where its top bit changes, the upper word -> a reader puts
//! the two together ([`value`]), also where the upper one lags.

use crate::Word;
use crate::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

/// Words and what owns them: the heap, a mapping.
pub trait Words {
    /// Lends all of them, always the same.
    fn words(&self) -> &[Word];
}

impl Words for Box<[Word]> {
    fn words(&self) -> &[Word] {
        self
    }
}

/// A count that many threads raise and other processes read.
///
/// The upper word counts how often the top bit of the lower one changed, so the two overlap by one bit. A reader that
/// finds the overlap unequal knows that the upper word is one change behind, and corrects it. So a writer may be stopped,
/// or killed, between its two steps. Only if others count 2^31 more in the meantime does a reader see 2^32 too few, until
/// the stopped one goes on.
#[derive(Clone, Copy, Debug)]
pub struct Counter<'w> {
    high: &'w Word,
    low: &'w Word,
}

impl<'w> Counter<'w> {
    /// The count whose upper word is `words[index]` and whose lower one is the next; none where they are not there.
    #[must_use]
    #[inline]
    pub fn at(words: &'w [Word], index: usize) -> Option<Self> {
        match words.get(index..)? {
            [high, low, ..] => Some(Self { high, low }),
            _ => None,
        }
    }

    /// Adds `count`.
    #[inline]
    pub fn add(&self, count: u64) {
        if let Ok(laps @ 1..) = u32::try_from(count >> 32) {
            // Whole laps of the lower word change its top bit twice each, and so not the overlap.
            self.high.fetch_add(laps.wrapping_mul(2), CARRY);
        }
        let mut left = count & u64::from(u32::MAX);
        while left > 0 {
            let step = left.min(STEP_MAX);
            self.step(step);
            left -= step;
        }
    }

    /// Returns the count.
    #[must_use]
    pub fn value(&self) -> u64 {
        loop {
            // Acquire: pairs with the Release in `step`, so that the lower word is never older than the upper one.
            let high = self.high.load(Acquire);
            // Acquire: pairs with the Release in `step`; the look below is not older than what changed before.
            let low = self.low.load(Acquire);
            if self.high.load(Relaxed) == high {
                return value(high, low);
            }
        }
    }

    /// Adds at most [`STEP_MAX`], so that the top bit changes at most once.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a step has 31 bits")]
    fn step(&self, step: u64) {
        let step = step as u32;
        // Release: pairs with the Acquire in `value`; a reader that sees this step sees the changes of the steps before.
        let before = self.low.fetch_add(step, Release);
        if (before ^ before.wrapping_add(step)) >> 31 != 0 && !cfg!(mutant = "no_carry") {
            // Release: pairs with the Acquire in `value`; a reader that sees this change sees the lower word that caused it.
            self.high.fetch_add(1, CARRY);
        }
    }
}

/// Puts a count together from copies of its two words.
#[must_use]
pub const fn value(high: u32, low: u32) -> u64 {
    let lags = (high & 1 != low >> 31) && !cfg!(mutant = "lag_ignored");
    let changes = high.wrapping_add(lags as u32);
    ((changes >> 1) as u64) << 32 | low as u64
}

const STEP_MAX: u64 = (1 << 31) - 1;
const CARRY: Ordering = if cfg!(mutant = "carry_relaxed") { Relaxed } else { Release };
