//! What the algorithm stands on: words that processes share, sleep, time, and whether a process lives.
//!
//! There are several: the segment of a process ([`crate::Arbiter`]), words in the heap for loom and Miri, and in the tests one whose every access is a
//! step at which a process may be stopped or killed.

use std::time::Duration;

/// Shared words by their number, and what else a process asks its system.
///
/// A word is loaded with Acquire, stored with Release, and exchanged with both, so that who sees a permit free sees what its last holder did. A number behind the last word reads
/// as 0 and is written nowhere.
pub trait World {
    /// Returns a word.
    fn load(&self, at: usize) -> u32;

    /// Writes a word.
    fn store(&self, at: usize, value: u32);

    /// Writes `new` where the word holds `old`; says whether it did.
    fn exchange(&self, at: usize, old: u32, new: u32) -> bool;

    /// Raises a word to `least`, unless it holds more. Another process may raise it at the same time; one that writes against the rules ends the attempt, and no more.
    fn raise(&self, at: usize, least: u32) {
        for _ in 0..RAISES_MAX {
            let found = self.load(at);
            if found >= least || self.exchange(at, found, least) {
                return;
            }
        }
    }

    /// Adds one to the count in the two words from `at` on.
    fn count(&self, at: usize);

    /// Orders what was written before and is loaded behind it (SeqCst).
    fn fence(&self);

    /// Sleeps on a word until it is woken, not at all where the word is not `seen`, at most for `timeout`. May end early.
    fn sleep(&self, at: usize, seen: u32, timeout: Duration);

    /// Wakes the sleepers of a word; says whether there were any.
    fn wake(&self, at: usize) -> bool;

    /// The time in nanoseconds, the same for all processes, never backwards.
    fn now(&self) -> u64;

    /// Takes the lock of a place whose process is dead, until [`let_go`](Self::let_go); `false` where that lives, or another process is at it.
    fn seize(&self, place: usize) -> bool;

    /// Gives the lock up.
    fn let_go(&self, place: usize);
}

/// Processes that raise a word at the same moment. Assumed, not measured: 4096, as many as a segment has places.
const RAISES_MAX: u32 = 4_096;

/// Milliseconds from one such word to a later one.
pub(crate) const fn elapsed_ms(then: u32, now: u64) -> u32 {
    elapsed(then, millis(now), 1_000)
}

/// Microseconds from one such word to a later one.
pub(crate) const fn elapsed_us(then: u32, now: u64) -> u32 {
    elapsed(then, micros(now), 1_000_000)
}

/// A time up to a second ahead was written by another process after this one looked at the clock, and is none ago. Any other that is to come is meaningless, or of before the words went round.
const fn elapsed(then: u32, now: u32, second: u32) -> u32 {
    if then.wrapping_sub(now) <= second { 0 } else { now.wrapping_sub(then) }
}

/// Milliseconds of a time, modulo 2^32.
#[expect(clippy::cast_possible_truncation, reason = "such words wrap")]
pub(crate) const fn millis(now: u64) -> u32 {
    (now / 1_000_000) as u32
}

/// Microseconds of a time, modulo 2^32.
#[expect(clippy::cast_possible_truncation, reason = "such words wrap")]
pub(crate) const fn micros(now: u64) -> u32 {
    (now / 1_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_another_process_wrote_a_moment_later_is_none_ago() {
        let second = 1_000_000_000;
        let now = 5_000 * second;
        assert_eq!(
            [elapsed_ms(millis(now + second / 2), now), elapsed_us(micros(now + second / 2), now)],
            [0, 0]
        );
        assert_eq!(
            [elapsed_ms(millis(now - second), now), elapsed_us(micros(now - second), now)],
            [1_000, 1_000_000]
        );
        assert!(elapsed_ms(millis(now + 3 * second), now) > 1 << 31, "long ago");
        // Across the wrap of the microseconds, which comes after 71 minutes.
        let wrap = (1 << 32) * 1_000;
        assert_eq!(elapsed_us(micros(wrap - 7_000), wrap + 3_000), 10);
    }
}
