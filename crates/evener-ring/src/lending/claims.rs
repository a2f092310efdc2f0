//! Which thread works on which part: numbers that are claimed from both ends.
//!
//! States of one number: unclaimed -> claimed by one exchange, at the front or at the back -> its claimant's alone.

use crate::Word;
use crate::sync::atomic::Ordering::Relaxed;

/// The numbers from 0 to `count - 1`, each given out once: lowest first to claimants at the front, highest first to
/// claimants at the back, until both meet.
///
/// Claims order nothing between threads but themselves; what a claimant does is seen by those that see its end, which
/// [`lend()`](crate::lend()) takes care of.
///
/// ```
/// # use evener_ring::Claims;
/// let claims = Claims::new(3);
/// assert_eq!((claims.front(), claims.back(), claims.front(), claims.back()), (Some(0), Some(2), Some(1), None));
/// ```
#[derive(Debug)]
pub struct Claims {
    /// First unclaimed number in the low half, one past the last in the high half. Every claimant writes it.
    ends: Word,
}

impl Claims {
    /// Most numbers: both ends share one word.
    pub const COUNT_MAX: usize = 0xFFFF;

    /// Makes `count` unclaimed numbers.
    ///
    /// # Panics
    ///
    /// Where `count` exceeds [`COUNT_MAX`](Self::COUNT_MAX).
    #[must_use]
    pub fn new(count: usize) -> Self {
        let last = u16::try_from(count).expect("at most 65535 numbers share one word");
        Self { ends: Word::new(u32::from(last) << HALF) }
    }

    /// Claims the lowest number that is left.
    #[inline]
    pub fn front(&self) -> Option<usize> {
        self.claim(|first, last| ((first + 1, last), first))
    }

    /// Claims the highest number that is left.
    #[inline]
    pub fn back(&self) -> Option<usize> {
        self.claim(|first, last| ((first, last - 1), last - 1))
    }

    /// Moves one of the ends by one exchange, while there is a number between them.
    fn claim(&self, step: impl Fn(u32, u32) -> ((u32, u32), u32)) -> Option<usize> {
        // Relaxed throughout: the word is all that claimants share by it.
        let mut ends = self.ends.load(Relaxed);
        loop {
            let (first, last) = (ends & LOW, ends >> HALF);
            if first == last {
                return None;
            }
            let ((first, last), number) = step(first, last);
            if cfg!(mutant = "claim_stored") {
                self.ends.store(last << HALF | first, Relaxed);
                return Some(number as usize);
            }
            match self.ends.compare_exchange(ends, last << HALF | first, Relaxed, Relaxed) {
                Ok(_) => return Some(number as usize),
                Err(now) => ends = now,
            }
        }
    }
}

const HALF: u32 = 16;
const LOW: u32 = 0xFFFF;
