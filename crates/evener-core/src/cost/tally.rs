//! What a worker did: exact counts, and core and wall time of a sample of its bursts.

use crate::units::{Nanos, sum_fields};

/// Time of one measured burst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Jobs in it.
    pub jobs: u64,
    /// Their input in bytes.
    pub bytes: u64,
    /// Core time of the thread.
    pub core: Nanos,
    /// Time that passed.
    pub wall: Nanos,
}

/// What one worker did by one method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Bursts run.
    pub bursts: u64,
    /// Jobs that ended well.
    pub jobs: u64,
    /// Input of those, in bytes.
    pub bytes: u64,
    /// Jobs that ended badly for good.
    pub failed: u64,
    /// Jobs that a module had failed and that were redone here.
    pub redone: u64,
    /// Bursts whose time was taken.
    pub sampled_bursts: u64,
    /// Sum over those.
    pub sampled: Sample,
}

sum_fields!(Sample: jobs, bytes, core, wall);
sum_fields!(Tally: bursts, jobs, bytes, failed, redone, sampled_bursts, sampled);

impl Tally {
    /// Adds the time of a measured burst.
    pub fn sample(&mut self, sample: Sample) {
        self.sampled_bursts += 1;
        self.sampled += sample;
    }

    /// Estimated core time of everything in it: the sample's core time per byte, or per job where jobs have
    /// no bytes. `None` before the first sample.
    #[must_use]
    pub fn core_time(&self) -> Option<Nanos> {
        let (part, whole) = match self.sampled.bytes {
            0 => (self.sampled.jobs, self.jobs),
            bytes => (bytes, self.bytes),
        };
        let scaled = u128::from(self.sampled.core.0) * u128::from(whole);
        let core = scaled.checked_div(u128::from(part))?;
        Some(Nanos(u64::try_from(core).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_time_of_all_is_that_of_the_sample_scaled_by_bytes() {
        let mut tally = Tally { jobs: 100, bytes: 1_000_000, ..Tally::default() };
        assert_eq!(tally.core_time(), None);
        tally.sample(Sample { jobs: 10, bytes: 250_000, core: Nanos(500), wall: Nanos(900) });
        assert_eq!(tally.core_time(), Some(Nanos(2_000)));
    }
}
