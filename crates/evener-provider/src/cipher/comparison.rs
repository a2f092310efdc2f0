//! Which results of a module, or of lanes, are compared with what this core makes of the same, and how much of them.
//!
//! What it is in the literature: acceptance sampling. `result -> is it one to be looked at? (`[`Sampler::part_of`]`) -> this core computes
//! that part alone, from the IV or from the block before it (`[`ResultCheck::is_right`]`)`.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use evener_core::job::Memory;
use evener_core::{Algorithm, BLOCK_BYTES, Direction, Family};
use evener_driver_kernel::next_iv;
use zeroize::Zeroizing;

use super::engine::Fallback;
use crate::ffi::reserve::zeroed;

/// Results that are compared with this core's: the first of each algorithm and direction up to a length, and of one in so many later on a
/// part, here and there, for a comparison costs what a core takes for it. Assumed, not measured: the first 4, then one in 256 and of it a
/// sixteenth, because beside a core that takes thirteen times as long as the module, a whole one in 256 were a twentieth of all time, and
/// a sixteenth of it is a third of a hundredth.
const CHECKED_FIRST: u32 = 4;
const CHECKED: u32 = 256;
const PART: usize = 16;
const PART_BYTES_MIN: usize = 1_024;
const FIRST_BYTES: usize = 16 << 10;

/// Results so far of one module, or of lanes, by algorithm and direction.
pub(crate) struct Sampler([[AtomicU32; 2]; Algorithm::ALL.len()]);

impl Sampler {
    /// None yet.
    pub(crate) const fn new() -> Self {
        Self([const { [const { AtomicU32::new(0) }; 2] }; Algorithm::ALL.len()])
    }

    /// What of a result of `len` bytes is to be compared, where it is its turn.
    pub(crate) fn part_of(
        &self,
        algorithm: Algorithm,
        direction: Direction,
        len: usize,
    ) -> Option<Range<usize>> {
        // Relaxed: a count.
        let number = self.0[algorithm.index()][direction as usize].fetch_add(1, Relaxed);
        match number {
            0..CHECKED_FIRST => Some(part(algorithm.family(), len, number, FIRST_BYTES)),
            _ if number % CHECKED == 0 => {
                Some(part(algorithm.family(), len, number / CHECKED, PART_BYTES_MIN))
            }
            _ => None,
        }
    }
}

/// A result beside what it was made of.
pub(crate) struct ResultCheck<'a> {
    pub(crate) algorithm: Algorithm,
    pub(crate) direction: Direction,
    pub(crate) iv: [u8; 16],
    pub(crate) input: &'a [u8],
}

impl ResultCheck<'_> {
    /// Whether this core makes the same of a part. True where there is no memory for that.
    pub(crate) fn is_right(&self, plain: Fallback<'_>, output: &[u8], part: Range<usize>) -> bool {
        let before = &self.input[..part.start];
        let iv = match part.start {
            0 => self.iv,
            start => next_iv(self.algorithm.family(), &self.iv, before, self.direction)
                .or_else(|| output[..start].last_chunk().copied())
                .unwrap_or_default(),
        };
        let input_bytes = part.len();
        let Some(space) = zeroed(input_bytes) else { return true };
        let mut space = Zeroizing::new(space);
        space.copy_from_slice(&self.input[part.clone()]);
        let made = plain.run(&iv, &mut Memory::InPlace { space: &mut space, input_bytes });
        made.is_err() || space[..] == output[part]
    }
}

/// Of a result of any length a part that begins with a block, another one for each that is asked for.
pub(crate) fn some_part(family: Family, len: usize) -> Range<usize> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    // Relaxed: a count.
    let number = NUMBER.fetch_add(1, Relaxed);
    let is_cut = len > FIRST_BYTES && family != Family::Xts;
    part(family, if is_cut { len / BLOCK_BYTES * BLOCK_BYTES } else { len }, number, FIRST_BYTES)
}

/// Of the result of `len` bytes a part that can be computed by itself, another one for each number: a sixteenth, and at least so much.
fn part(family: Family, len: usize, number: u32, least: usize) -> Range<usize> {
    let bytes = (len / PART / BLOCK_BYTES * BLOCK_BYTES).max(least);
    if len <= bytes || family == Family::Xts {
        return 0..len;
    }
    // The fractions of multiples of the golden ratio lie evenly. Some parts begin before the result, or end behind it, and are moved: so
    // its ends are compared as often as its middle.
    let fraction = f64::from(number.wrapping_mul(0x9E37_79B9)) / (f64::from(u32::MAX) + 1.0);
    let places = (len + bytes) / BLOCK_BYTES;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a fraction of a small number"
    )]
    let place = (fraction * places as f64) as usize * BLOCK_BYTES;
    let start = place.saturating_sub(bytes).min(len - bytes);
    start..start + bytes
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn of_a_long_result_whole_blocks_of_a_part_are_compared_in_time_of_all_of_it() {
        let len = 16_384;
        let parts: Vec<Range<usize>> =
            (0..400).map(|number| part(Family::Cbc, len, number, PART_BYTES_MIN)).collect();
        for part in &parts {
            assert!(part.len() == len / PART && part.start % BLOCK_BYTES == 0 && part.end <= len, "{part:?}");
        }
        let compared =
            |block: usize| parts.iter().filter(|part| part.contains(&(block * BLOCK_BYTES))).count();
        let counts: BTreeSet<usize> = (0..len / BLOCK_BYTES).map(compared).collect();
        // A seventeenth of 400 parts, and twice as many at the ends.
        assert!(counts.iter().all(|count| (20..=50).contains(count)), "{counts:?}");
    }

    #[test]
    fn short_results_and_those_of_xts_are_compared_whole_and_others_by_a_sixteenth() {
        for number in [0, 1, 77, u32::MAX] {
            let part = |family, len| part(family, len, number, 1_024);
            assert_eq!(part(Family::Cbc, 1_024), 0..1_024);
            assert_eq!(part(Family::Cbc, 4_096).len(), 1_024);
            assert_eq!(part(Family::Cbc, 1 << 20).len(), 1 << 16);
            assert_eq!(part(Family::Ctr, 16), 0..16);
            assert_eq!(part(Family::Xts, 16_384), 0..16_384);
            assert_eq!(super::part(Family::Cbc, 16_384, number, FIRST_BYTES), 0..16_384);
        }
    }
}
