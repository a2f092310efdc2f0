//! Lanes beside the plain method: of what they did, a sample is done again by the plain driver of the same core.
//!
//! A burst: [`LaneCheck::capture`] keeps one job as it was, where it is the burst's turn -> lanes -> [`CoreDrivers::check_lanes`] -> the same, and
//! nothing happens; or another result, and the right one takes its place, it is counted as redone, and no burst of this process goes to
//! lanes any more (`lanes.rs`). The burst's own time, which costs are learned from, is taken without this.

use evener_core::{Algorithm, InlineDriver, Job, Method};

use super::CoreDrivers;
use super::capture::Capture;
use super::parts::kind;
use crate::lanes;

/// Longest job that is done again: of longer ones a copy costs more memory than a core's drivers otherwise have.
const BYTES_MAX: usize = 1 << 20;

/// Bursts of lanes so far, by algorithm and direction.
pub(super) struct LaneCheck(Vec<[u32; 2]>);

impl LaneCheck {
    /// None yet.
    pub(super) fn new() -> Self {
        Self(vec![[0; 2]; Algorithm::ALL.len()])
    }

    /// One job of a burst of one algorithm and direction, with its address, where it is the burst's turn: another one each time.
    fn capture<'m>(
        &mut self,
        burst: &[Box<Job<'m>>],
        driver: &dyn InlineDriver,
    ) -> Option<(usize, Capture<'m>)> {
        let (algorithm, direction) = kind(burst.first()?);
        let bursts = &mut self.0[algorithm.index()][direction as usize];
        let number = bursts.checked_sub(driver.checked_from(algorithm, direction));
        *bursts = bursts.wrapping_add(1);
        let number = number?;
        if !lanes::is_sampled(number) {
            return None;
        }
        // Odd, so that each place of a burst of 16 has its turn.
        let job = &burst[number as usize / 256 * 5 % burst.len()];
        let is_fitting = job.lengths_fit() && job.input_bytes() <= BYTES_MAX;
        is_fitting.then(|| (address(job), Capture::of(job)))
    }
}

/// Where a job lies: the same before and after a driver that sorts its burst.
fn address(job: &Job<'_>) -> usize {
    std::ptr::from_ref(job).addr()
}

impl CoreDrivers {
    /// From now on a sample of what lanes do is done again by the plain driver.
    #[must_use]
    pub fn watching_lanes(mut self) -> Self {
        self.lane_check = self.multi.is_some().then(LaneCheck::new);
        self
    }

    /// What is to be done again of a burst that goes to lanes.
    pub(super) fn capture<'m>(
        &mut self,
        burst: &[Box<Job<'m>>],
        method: Method,
    ) -> Option<(usize, Capture<'m>)> {
        let check = self.lane_check.as_mut().filter(|_| method == Method::MultiBuffer)?;
        check.capture(burst, self.multi.as_deref()?)
    }

    /// Does again what was captured of a burst that lanes have done.
    pub(super) fn check_lanes<'m>(
        &mut self,
        burst: &mut [Box<Job<'m>>],
        (at, capture): (usize, Capture<'m>),
    ) {
        let Some(job) = burst.iter_mut().find(|job| address(job) == at) else { return };
        let (plain, multi) = (&mut self.plain, &mut self.multi);
        let is_right = match (job.shared_span(), multi) {
            (None, _) => capture.check(job, |jobs| plain.run(jobs)),
            (Some(_), Some(multi)) => capture.compare(|jobs| multi.run(jobs), |jobs| plain.run(jobs)),
            (Some(_), None) => true,
        };
        if !is_right {
            lanes::found_wrong();
            self.count_redone();
        }
    }
}
