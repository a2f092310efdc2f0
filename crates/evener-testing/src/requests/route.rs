//! Ways that jobs can go on one core.

use std::slice;
use std::sync::Arc;

use evener::{CoreDrivers, Costs, SystemClock};
use evener_core::estimate::Learned;
use evener_core::{Algorithm, Class, Direction, Estimator, InlineDriver, Method, Tally};

use super::{Answer, Burst, JobSpec, Route, answers};
use crate::drivers::{libcrypto, plain_drivers};

/// A driver of the core, given bursts of 1, 2, 3 ... 33 jobs in turn.
pub struct Direct<D>(pub D);

/// Widest burst of [`Direct`]: more than twice the lanes of any library.
const WIDTH_MAX: usize = 33;

impl<D: InlineDriver> Route for Direct<D> {
    fn run<'m>(&mut self, mut jobs: Burst<'m>) -> Burst<'m> {
        let mut rest = &mut jobs[..];
        for width in (1..=WIDTH_MAX).cycle() {
            let (burst, others) = rest.split_at_mut(width.min(rest.len()));
            self.0.run(burst);
            rest = others;
            if rest.is_empty() {
                break;
            }
        }
        jobs
    }
}

/// A driver of the core, given all in one burst.
pub struct OneBurst<'d>(pub &'d mut dyn InlineDriver);

impl Route for OneBurst<'_> {
    fn run<'m>(&mut self, mut jobs: Burst<'m>) -> Burst<'m> {
        self.0.run(&mut jobs);
        jobs
    }
}

/// A core's kit, which takes all jobs as one burst and sorts them.
pub struct OnCore(CoreDrivers);

impl OnCore {
    /// libcrypto alone.
    #[must_use]
    pub fn plain() -> Self {
        Self(plain_drivers())
    }

    /// Multi-buffer by this driver wherever it takes the job, whatever the width.
    #[must_use]
    pub fn multi_buffer(driver: impl InlineDriver + 'static) -> Self {
        let costs = Arc::new(Costs::new(always_multi_buffer()));
        Self(CoreDrivers::new(Box::new(libcrypto()), Some(Box::new(driver))).sharing(&costs))
    }

    /// What each method did since the last call.
    #[must_use]
    pub fn take_tallies(&mut self) -> [Tally; Method::ALL.len()] {
        self.0.take_tallies()
    }

    /// The kit itself, for a caller.
    #[must_use]
    pub fn into_inner(self) -> CoreDrivers {
        self.0
    }
}

impl Route for OnCore {
    fn run<'m>(&mut self, mut jobs: Burst<'m>) -> Burst<'m> {
        self.0.run(&mut jobs, &SystemClock);
        jobs
    }
}

/// Costs that say, and keep to it, that multi-buffer is better.
fn always_multi_buffer() -> Estimator {
    let mut costs = Estimator::new(0);
    for &algorithm in Algorithm::ALL {
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let class = Class::of(algorithm, direction, 1_024, false);
            for (method, ns) in [(Method::Plain, 1_000.0), (Method::MultiBuffer, 10.0)] {
                costs.keep_cpu(class, method, 0, Learned::kept(ns, 1_024.0, 16));
            }
        }
    }
    costs.freeze();
    costs
}

/// The answer of libcrypto alone.
#[must_use]
pub fn judged(spec: &JobSpec) -> Answer {
    answers(&mut Direct(libcrypto()), slice::from_ref(spec)).remove(0)
}

/// Fails unless what comes by `route` is what libcrypto says, asked alone.
pub fn compare(route: &mut impl Route, specs: &[JobSpec]) {
    for (place, (spec, answer)) in specs.iter().zip(answers(route, specs)).enumerate() {
        assert!(
            answer == judged(spec),
            "job {place} of {}: {}, {:?}",
            specs.len(),
            spec.what(),
            answer.outcome
        );
    }
}
