//! Kernels of our own in a bare loop: a driver for each thread, forced to some of the processor's instructions, and jobs in chunks from one list.

use std::sync::Mutex;

use evener_core::{Algorithm, InlineDriver as _, Nanos, TAG_BYTES_MAX};
use evener_driver_lanes::Lanes;
use evener_kernels::Level;
use evener_kernels::hashes::Means;

use super::rivals::BARE_CHUNK_JOBS;
use super::run::{jobs, tags};
use crate::crypt::rounds::{lock, run_rounds};
use crate::crypt::visit::{Visit, arm, arm_all};
use crate::crypt::workload::{Memory, Workload};

/// Instructions that a driver is forced to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// Of ciphers.
    OfCiphers(Level),
    /// Of hashes.
    OfHashes(Means),
}

impl Instructions {
    /// All that this processor has for an algorithm, the narrowest first. Of hashes each kind by itself, and the mix that is used.
    #[must_use]
    pub fn all(algorithm: Algorithm) -> Vec<Self> {
        if algorithm.is_cipher() {
            return Level::all().map(Self::OfCiphers).collect();
        }
        let is_of_interest =
            |means: &Means| means.has_sha() != (means.bits() > 0) || Some(*means) == Means::best();
        let mut all: Vec<_> = Means::all().filter(is_of_interest).map(Self::OfHashes).collect();
        all.reverse();
        all
    }

    /// The names of their processor features.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OfCiphers(level) => level.name(),
            Self::OfHashes(means) => means.name(),
        }
    }

    fn driver(self) -> Option<Lanes> {
        match self {
            Self::OfCiphers(level) => Some(Lanes::unchecked(level)),
            Self::OfHashes(means) => Some(Lanes::new()?.hashing_by(Some(means))),
        }
    }

    /// Whether a kernel is for all of a cell's jobs.
    pub(super) fn can_do(self, load: &Workload) -> bool {
        let (algorithm, direction) = (load.session.algorithm(), load.session.direction());
        self.driver().is_some_and(|driver| {
            let most = driver.job_bytes_max(algorithm, direction);
            driver.supports(algorithm, direction) && load.jobs.iter().all(|job| job.input_bytes <= most)
        })
    }

    /// Jobs are armed before the clock runs, as those of the bare loop around the library are laid out.
    pub(super) fn rounds(self, load: &Workload, memory: &mut Memory, workers: usize, budget: Nanos) -> Visit {
        let mut jobs = jobs(load, memory).into_iter();
        let chunk = |specs| Mutex::new((jobs.by_ref().take(<[_]>::len(specs)).collect::<Vec<_>>(), specs));
        let chunks: Vec<_> = load.jobs.chunks(BARE_CHUNK_JOBS).map(chunk).collect();
        let mut drivers: Vec<_> = (0..workers).filter_map(|_| self.driver()).collect();
        let work = drivers.iter_mut().map(|driver| |(jobs, _): &mut (Vec<_>, _)| driver.run(jobs));
        let restore = || {
            for chunk in &chunks {
                let (jobs, specs) = &mut *lock(chunk);
                arm(jobs, specs, load);
            }
        };
        run_rounds(&chunks, work.collect(), load.turns, budget, restore)
    }

    /// All jobs once; the tags, where the algorithm makes any.
    pub(super) fn once(self, load: &Workload, memory: &mut Memory) -> Option<Vec<[u8; TAG_BYTES_MAX]>> {
        let mut jobs = jobs(load, memory);
        arm_all(&mut jobs, load);
        let mut driver = self.driver()?;
        jobs.chunks_mut(BARE_CHUNK_JOBS).for_each(|chunk| driver.run(chunk));
        tags(&jobs, load)
    }
}
