//! Samples of one core: when they are handed on, and that none is kept back.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use evener_core::{Algorithm, Direction, Nanos, Padding, Session};
use evener_driver_libcrypto::Libcrypto;

use super::sampling::SAMPLES_MAX;
use super::*;

/// A burst takes so many nanoseconds, a look 100.
struct Steady {
    work: u64,
    looks: AtomicU64,
}

impl Clock for Steady {
    fn now(&self) -> Nanos {
        Nanos::ZERO
    }

    fn thread_time(&self) -> Nanos {
        let looks = self.looks.fetch_add(1, Relaxed);
        Nanos(looks * 100 + looks.div_ceil(2) * self.work)
    }
}

/// How many samples were flushed at a time, of a thousand single jobs that take so long.
fn flushed_counts(work: u64) -> Vec<usize> {
    let session = Session::new(Algorithm::Aes128Cbc, Direction::Encrypt, Padding::None, &[1; 16]).unwrap();
    let (session, mut space) = (Arc::new(session), [0; 16]);
    let mut burst = [Job::in_place(&mut space)];
    let (mut core_drivers, clock) = (
        CoreDrivers::new(Box::new(Libcrypto::new().unwrap()), None),
        Steady { work, looks: AtomicU64::new(0) },
    );
    core_drivers.learn();
    let mut flushed_counts = Vec::new();
    for _ in 0..1_000 {
        burst[0].arm(Arc::clone(&session), &[2; 16], 16);
        core_drivers.run(&mut burst, &clock);
        core_drivers.flush_samples(false, |samples| flushed_counts.push(samples.len()));
    }
    core_drivers.flush_samples(true, |samples| flushed_counts.push(samples.len()));
    flushed_counts
}

#[test]
fn samples_of_short_jobs_are_told_eight_at_a_time_but_the_first_ones_at_once_and_none_is_kept() {
    let short = flushed_counts(100);
    assert_eq!((&short[..2], short.iter().sum()), (&[1, 1][..], flushed_counts(3_000).len()), "{short:?}");
    assert!(short[2..short.len() - 1].iter().all(|&count| count == SAMPLES_MAX), "{short:?}");
}

#[test]
fn a_sample_that_stands_for_much_work_waits_for_no_other() {
    let long = flushed_counts(3_000);
    assert!(long.len() >= 30 && long.iter().all(|&count| count == 1), "{long:?}");
}
