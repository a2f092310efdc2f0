//! Lanes that compute wrongly are found out by a sample, and used no more in this process. One test, for what it finds holds for all of it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use evener::{CoreDrivers, Costs, lanes};
use evener_core::estimate::Learned;
use evener_core::{Algorithm, Class, Direction, Estimator, InlineDriver, Job, Method, Padding, Session};
use evener_driver_libcrypto::Libcrypto;
use evener_testing::drivers::{Around, TestClock, libcrypto};
use evener_testing::noise;

const CBC: Algorithm = Algorithm::Aes128Cbc;
const BYTES: usize = 64;
const JOBS: usize = 16;

/// By lanes each burst of such jobs costs half.
fn costs() -> Arc<Costs> {
    let mut costs = Estimator::new(0);
    let class = Class::of(CBC, Direction::Encrypt, BYTES, false);
    for place in 0..5 {
        costs.keep_cpu(class, Method::Plain, place, Learned::kept(100.0, BYTES as f64, 16));
        costs.keep_cpu(class, Method::MultiBuffer, place, Learned::kept(50.0, BYTES as f64, 16));
    }
    Arc::new(Costs::new(costs))
}

/// Jobs in place, all of one text: those whose result is another than libcrypto's of a job alone.
fn wrong_of(core_drivers: &mut CoreDrivers, seed: u64) -> usize {
    let key = noise(1, CBC.key_bytes().unwrap());
    let session = Arc::new(Session::new(CBC, Direction::Encrypt, Padding::None, &key).unwrap());
    let text = noise(seed, BYTES);
    let mut right = text.clone();
    let mut judge = [Job::in_place(&mut right)];
    judge[0].arm(Arc::clone(&session), &[7; 16], BYTES);
    libcrypto().run(&mut judge);
    let mut spaces = vec![text; JOBS];
    let mut jobs: Vec<_> = spaces.iter_mut().map(|space| Job::in_place(space)).collect();
    jobs.iter_mut().for_each(|job| job.arm(Arc::clone(&session), &[7; 16], BYTES));
    core_drivers.run(&mut jobs, &TestClock::default());
    jobs.iter().filter(|job| job.output() != judge[0].output()).count()
}

#[test]
fn lanes_that_begin_to_lie_are_found_out_and_used_no_more() {
    let (bursts, lies) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
    let (seen, is_time) = (Arc::clone(&bursts), Arc::clone(&lies));
    // Right at first, then wrong in one byte of each job.
    let run = move |driver: &mut Libcrypto, jobs: &mut [Box<Job<'_>>]| {
        driver.run(jobs);
        seen.fetch_add(1, Relaxed);
        if is_time.load(Relaxed) {
            jobs.iter_mut().for_each(|job| job.space_mut()[BYTES / 2] ^= 0x10);
        }
    };
    let multi = Some(Box::new(Around::new(libcrypto(), run)) as Box<dyn InlineDriver>);
    let mut core_drivers = CoreDrivers::new(Box::new(libcrypto()), multi).sharing(&costs()).watching_lanes();
    for seed in 0..1_000 {
        assert_eq!(wrong_of(&mut core_drivers, seed), 0);
    }
    let right = bursts.load(Relaxed);
    assert!(right > 900 && lanes::are_in_service(), "{right}: some bursts try the other method");
    lies.store(true, Relaxed);
    // One burst in 256 is looked at.
    let mut wrong = Vec::new();
    while lanes::are_in_service() && wrong.len() < 600 {
        wrong.push(wrong_of(&mut core_drivers, 3));
    }
    let last = bursts.load(Relaxed);
    assert!((1..=256).contains(&(last - right)), "{right} to {last}");
    assert_eq!(lanes::wrong_results(), 1);
    assert_eq!(
        wrong.last(),
        Some(&(JOBS - 1)),
        "the right result has taken the place of the one that was looked at"
    );
    for seed in 0..300 {
        assert_eq!(wrong_of(&mut core_drivers, seed), 0, "by the plain driver");
    }
    assert_eq!(bursts.load(Relaxed), last);
    assert_eq!(core_drivers.take_tallies()[Method::Plain as usize].redone, 1);
}
