//! The workload: which jobs come, and when.

use evener_core::Nanos;

use crate::random::Random;
use crate::rounding::round;

/// A job to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its class, by position in the setup.
    pub class: usize,
    /// When it comes.
    pub at: Nanos,
}

/// Jobs in the order of their coming.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload(Vec<Job>);

/// How jobs come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// All are there at the start.
    AtOnce,
    /// Independently of each other, at this mean distance.
    Poisson {
        /// Mean time between two jobs.
        mean: Nanos,
    },
    /// As [`Arrivals::Poisson`] while a phase lasts, and not at all in the pause behind it.
    Bursts {
        /// Mean time between two jobs within a phase.
        mean: Nanos,
        /// Length of a phase.
        on: Nanos,
        /// Length of a pause.
        off: Nanos,
    },
}

impl Workload {
    /// Jobs of the given classes, in this order, coming as `arrivals` say.
    #[must_use]
    pub fn new(classes: impl IntoIterator<Item = usize>, arrivals: Arrivals, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut busy = Nanos::ZERO; // time within phases
        let job = |class| {
            let at = match arrivals {
                Arrivals::AtOnce => Nanos::ZERO,
                Arrivals::Poisson { mean } => step(&mut busy, mean, &mut random),
                Arrivals::Bursts { mean, on, off } => {
                    let at = step(&mut busy, mean, &mut random);
                    at + Nanos((at.0 / on.0.max(1)).saturating_mul(off.0))
                }
            };
            Job { class, at }
        };
        Self(classes.into_iter().map(job).collect())
    }

    /// The jobs, in the order of their coming.
    #[must_use]
    pub fn jobs(&self) -> &[Job] {
        &self.0
    }
}

fn step(at: &mut Nanos, mean: Nanos, random: &mut Random) -> Nanos {
    let distance = random.exponential() * mean.as_secs_f64() * 1e9;
    *at += Nanos(round(distance));
    *at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poisson_jobs_come_at_their_mean_distance_and_never_backwards() {
        let workload = Workload::new([0; 20_000], Arrivals::Poisson { mean: Nanos(1_000) }, 5);
        let jobs = workload.jobs();
        assert!(jobs.windows(2).all(|pair| pair[0].at <= pair[1].at));
        let mean = jobs.last().unwrap().at.0 / 20_000;
        assert!((980..1_020).contains(&mean), "{mean}");
    }

    #[test]
    fn in_the_pauses_of_bursts_nothing_comes() {
        let (on, off) = (Nanos(10_000), Nanos(30_000));
        let workload = Workload::new([0; 5_000], Arrivals::Bursts { mean: Nanos(100), on, off }, 6);
        assert!(workload.jobs().iter().all(|job| job.at.0 % 40_000 < 10_000));
        assert!(workload.jobs().last().unwrap().at.0 > 10 * 40_000);
    }
}
