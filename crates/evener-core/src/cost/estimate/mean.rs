//! The mean cost of a job, and how much single samples stray from it.

use super::tuning::TUNING;
use super::{float, nanos};
use crate::units::Nanos;

/// A standard deviation is so many mean deviations where samples are normal: sqrt(pi / 2).
const SIGMA_BY_SPREAD: f64 = 1.25;

/// The mean cost of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learned {
    /// Mean cost of a job in nanoseconds.
    pub ns: f64,
    /// Mean size of those jobs in bytes.
    pub bytes: f64,
    /// Samples that it is made of.
    pub samples: u32,
    surprises: u32,
    /// The last of them was below the mean.
    is_below: bool,
    /// It took the place of a mean of many samples and has few itself.
    is_shaken: bool,
    /// It is of long ago: as long as there are few new samples, each counts as much as it.
    is_old: bool,
    /// Mean deviation of samples, as a part of the mean.
    spread: f64,
}

impl Default for Learned {
    fn default() -> Self {
        Self::kept(0.0, 0.0, 0)
    }
}

impl Learned {
    /// A mean that was kept from an earlier run.
    #[must_use]
    pub const fn kept(ns: f64, bytes: f64, samples: u32) -> Self {
        Self {
            ns,
            bytes,
            samples,
            surprises: 0,
            is_below: false,
            is_shaken: false,
            is_old: false,
            spread: TUNING.spread_first,
        }
    }

    /// The same, of samples that stray so far from it.
    #[must_use]
    pub fn straying(self, deviation_ns: f64) -> Self {
        // What takes no time at all strays from nothing.
        let spread =
            if self.ns > 0.0 { (deviation_ns / self.ns).clamp(0.0, 1.0) } else { TUNING.spread_first };
        Self { spread, ..self }
    }

    /// How far single samples stray from the mean, in nanoseconds.
    #[must_use]
    pub fn deviation_ns(&self) -> f64 {
        self.ns * self.spread
    }

    /// Whether few samples in a row threw over what many had shown: something happened, and it may be over.
    pub(super) const fn is_shaken(&self) -> bool {
        self.is_shaken && !cfg!(mutant = "never_shaken")
    }

    /// Whether the last sample was a surprise: the next one decides whether it is believed.
    pub(super) const fn is_doubted(&self) -> bool {
        self.surprises > 0 && !cfg!(mutant = "doubts_forgotten")
    }

    /// Whether it was one below the mean.
    pub(super) const fn may_be_less(&self) -> bool {
        self.is_doubted() && (self.is_below || cfg!(mutant = "doubts_of_what_is_dear"))
    }

    /// The mean for jobs of `bytes`, or `None` before the first sample.
    #[must_use]
    pub fn at(&self, bytes: usize) -> Option<Nanos> {
        (self.samples > 0).then(|| nanos(self.carried_to(float(bytes as u64))))
    }

    /// The mean in nanoseconds for jobs of `bytes`.
    pub(super) fn carried_to(&self, bytes: f64) -> f64 {
        self.ns * (bytes + TUNING.fixed_bytes) / (self.bytes + TUNING.fixed_bytes)
    }

    /// The standard error of the mean, as a part of it.
    pub(super) fn error(&self) -> f64 {
        SIGMA_BY_SPREAD * self.spread / f64::from(self.samples.clamp(1, TUNING.samples_worth_max)).sqrt()
    }

    /// From now on counts as one sample of long ago: the next ones say more.
    pub(super) const fn age(&mut self) {
        (self.samples, self.is_old) = (1, true);
    }

    /// Takes in a sample of `jobs` with `bytes` and `cost` together.
    pub(super) fn record(&mut self, jobs: u64, bytes: u64, cost: Nanos) {
        if jobs == 0 {
            return;
        }
        let (ns, bytes) = (float(cost.0) / float(jobs), float(bytes) / float(jobs));
        let expected = self.carried_to(bytes);
        let is_surprise = (ns > expected * TUNING.surprise || ns * TUNING.surprise < expected)
            && !cfg!(mutant = "outliers_believed");
        self.surprises = if is_surprise { self.surprises + 1 } else { 0 };
        self.is_below = ns < expected;
        self.samples = self.samples.saturating_add(1);
        if self.samples == 1 || self.surprises >= TUNING.surprises_max {
            let is_shaken = self.is_shaken || self.samples > TUNING.settled;
            *self = Self { is_shaken, ..Self::kept(ns, bytes, self.surprises.max(1)) };
        } else if !is_surprise {
            // What takes no time at all strays from nothing.
            let strays = if expected > 0.0 { (ns / expected - 1.0).abs() } else { 0.0 };
            self.spread += TUNING.weight * (strays - self.spread);
            let weight =
                if self.is_old { TUNING.weight.max(1.0 / f64::from(self.samples)) } else { TUNING.weight };
            self.ns += weight * (ns - self.ns);
            self.bytes += weight * (bytes - self.bytes);
        }
        self.is_shaken &= self.samples < TUNING.settled;
    }
}

/// Burst widths that are learned apart: 1, 2 to 3, 4 to 7, 8 to 15, 16 to 63, 64 and more. Sixteen fill the lanes once; filled again they cost less:
/// SHA-256 of 256 B by 16 lanes of AVX-512 takes 257 ns a job by sixteen, 223 by more, by libcrypto 274 and 297 (Zen 4).
pub const WIDTHS: usize = 6;

/// The least width of each of the [`WIDTHS`].
pub const LEAST_WIDTH: [u16; WIDTHS] = [1, 2, 4, 8, 16, 64];

/// Which of the [`WIDTHS`] a burst belongs to.
#[must_use]
#[inline]
pub const fn width_class(jobs: usize) -> usize {
    match jobs {
        0 | 1 => 0,
        2..=3 => 1,
        4..=7 => 2,
        8..=15 => 3,
        16..=63 => 4,
        _ => 5,
    }
}
