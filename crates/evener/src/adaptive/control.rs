//! Control jobs of bursts: what modules take of a class is held against what a core takes for it, so a core runs one now and
//! then where the order gives it none.
//!
//! A module takes a job ([`Controls::routed`]) -> the guard says whether one is due ([`Controls::owe`]) -> the next core that
//! claims work runs it ([`Controls::due`]) -> its sample is counted ([`Controls::measured`]).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use evener_core::guard::TUNING;

/// By queue: what is owed.
pub(super) struct Controls(Vec<Control>);

#[derive(Default)]
struct Control {
    /// Jobs that modules took since a burst of a core was sampled. Written by workers, all of them.
    routed: AtomicU32,
    /// A core is to run a job.
    is_owed: AtomicBool,
}

impl Controls {
    pub(super) fn new(queues: usize) -> Self {
        Self((0..queues).map(|_| Control::default()).collect())
    }

    /// A module takes some jobs; returns whether cores have measured too few of them: `is_new`, or none in a while.
    pub(super) fn routed(&self, queue: usize, jobs: u32, is_new: bool) -> bool {
        // Relaxed, as all here: counts, on which nothing else depends.
        let routed = self.0[queue].routed.fetch_add(jobs, Ordering::Relaxed);
        (is_new || u64::from(routed) >= TUNING.control_period) && !cfg!(mutant = "controls_forgotten")
    }

    /// Jobs that modules took since a core measured one.
    pub(super) fn count(&self, queue: usize) -> u64 {
        self.0[queue].routed.load(Ordering::Relaxed).into()
    }

    /// A core is to run a job of the queue.
    pub(super) fn owe(&self, queue: usize) {
        self.0[queue].is_owed.store(true, Ordering::Relaxed);
    }

    /// A queue of which a core is to run a job, where one waits; the worker that claims runs it.
    pub(super) fn due(&self, waits: impl Fn(usize) -> bool) -> Option<usize> {
        let owed = |queue: &usize| self.0[*queue].is_owed.load(Ordering::Relaxed) && waits(*queue);
        let queue = (0..self.0.len()).find(owed)?;
        self.0[queue].is_owed.swap(false, Ordering::Relaxed).then_some(queue)
    }

    /// A burst of a core was sampled.
    pub(super) fn measured(&self, queue: usize) {
        self.0[queue].routed.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_owes_a_job_once_for_each_time_that_one_was_due_and_only_where_one_waits() {
        let controls = Controls::new(3);
        assert!(controls.routed(1, 1, true), "nothing was ever measured");
        controls.owe(1);
        assert_eq!(controls.due(|queue| queue != 1), None);
        assert_eq!((controls.due(|_| true), controls.due(|_| true)), (Some(1), None));
    }

    #[test]
    fn a_class_that_cores_run_by_themselves_owes_nothing() {
        let controls = Controls::new(1);
        for _ in 0..3 {
            controls.measured(0);
            assert!((0..TUNING.control_period).all(|_| !controls.routed(0, 1, false)));
        }
        assert!(controls.routed(0, 1, false), "none in a while");
    }
}
