//! Means of costs: what they start from, what moves them, and what is left out as a surprise.

use super::*;
use crate::job::algorithm::{Algorithm, Direction};

fn class(bytes: usize) -> Class {
    Class::of(Algorithm::Aes128Cbc, Direction::Encrypt, bytes, false)
}

#[test]
fn nothing_is_known_before_the_first_sample_and_its_mean_is_the_first_sample() {
    let mut estimator = Estimator::new(1);
    assert_eq!(estimator.c(class(1024), 1024, 1), None);
    assert_eq!(estimator.on_module(0, class(1024)).d.at(1024), None);
    estimator.saw_cpu(class(1024), Method::Plain, 4, 4 * 1024, Nanos(4_000));
    assert_eq!(estimator.c(class(1024), 1024, 4), Some(Nanos(1_000)));
    assert_eq!(estimator.c(class(1024), 1024, 64), Some(Nanos(1_000)), "the next width that is known");
}

#[test]
fn the_better_method_at_the_width_asked_for_is_what_a_job_costs() {
    let mut estimator = Estimator::new(0);
    for (method, jobs, ns) in [
        (Method::Plain, 1, 100),
        (Method::MultiBuffer, 1, 150),
        (Method::Plain, 16, 95),
        (Method::MultiBuffer, 16, 20),
    ] {
        estimator.saw_cpu(class(64), method, jobs, 64 * jobs, Nanos(ns * jobs));
    }
    assert_eq!(estimator.c(class(64), 64, 1), Some(Nanos(100)));
    assert_eq!(estimator.c(class(64), 64, 40), Some(Nanos(20)));
}

#[test]
fn the_mean_follows_slowly_a_single_surprise_is_left_out_and_two_are_believed() {
    let mut learned = Learned::default();
    learned.record(1, 100, Nanos(1_000));
    learned.record(1, 100, Nanos(1_080));
    assert_eq!(learned.at(100), Some(Nanos(1_010)));
    learned.record(1, 100, Nanos(10_000));
    assert_eq!(learned.at(100), Some(Nanos(1_010)));
    learned.record(1, 100, Nanos(10_100));
    assert_eq!(learned.at(100), Some(Nanos(10_100)));
}

#[test]
fn a_mean_that_was_kept_from_a_bad_moment_goes_with_the_second_try_and_not_with_the_second_run() {
    let at = |us: u64| Nanos::from_micros(us);
    let kept = |us| Learned::kept(us * 1_000.0, 1_024.0, 12);
    let sample = |now| ModuleSample { jobs: 1, bytes: 1_024, d: at(165), h: at(28), now: at(now) };
    let mut estimator = Estimator::new(1);
    let known = OnModule { d: kept(165.0), h: kept(3_570.0), ..OnModule::default() };
    estimator.keep_module(0, class(1_024), known);
    let later = 60_000_000;
    assert_eq!(estimator.tries_left(0, class(1_024), at(later)), 1);
    estimator.saw_module(0, class(1_024), &sample(later));
    assert_eq!(estimator.tries_left(0, class(1_024), at(later + 1)), 1, "at once");
    estimator.saw_module(0, class(1_024), &sample(later + 1));
    assert_eq!(estimator.on_module(0, class(1_024)).h.at(1_024), Some(at(28)));
    assert_eq!(estimator.tries_left(0, class(1_024), at(later + 2)), 0);
}

#[test]
fn a_module_that_does_not_pay_is_not_tried_again_because_a_try_took_longer_still() {
    let at = |us: u64| Nanos::from_micros(us);
    let sample = |d, h| ModuleSample { jobs: 1, bytes: 64, d: at(d), h: at(h), now: at(1) };
    let left = |samples: &[(u64, u64)]| {
        let mut estimator = Estimator::new(1);
        let all = samples.iter().map(|&(d, h)| sample(d, h));
        all.for_each(|sample| estimator.saw_module(0, class(64), &sample));
        estimator.tries_left(0, class(64), at(2))
    };
    assert_eq!(left(&[(400, 1), (400, 1), (900, 1)]), 0, "longer on the core");
    assert_eq!(left(&[(400, 1), (400, 1), (400, 700)]), 0, "longer on the module");
    assert_eq!(left(&[(400, 4), (400, 4), (400, 1)]), 0, "less by nothing beside the whole");
    assert_eq!(left(&[(400, 1), (400, 1), (150, 1)]), 1);
    assert_eq!(left(&[(400, 700), (400, 700), (400, 100)]), 1);
}

/// How many of ten that ask at once are given a try, `now` in microseconds.
fn tries(estimator: &mut Estimator, now: u64) -> usize {
    (0..10).filter(|_| estimator.tries(0, class(64), Nanos::from_micros(now))).count()
}

#[test]
fn an_old_plan_grants_no_more_tries_than_are_left_and_a_try_that_is_out_is_no_reason_for_another() {
    let at = |us: u64| Nanos::from_micros(us);
    let mut estimator = Estimator::new(1);
    assert_eq!(tries(&mut estimator, 1), TUNING.tries_max as usize);
    let sample = |d, now| ModuleSample { jobs: 1, bytes: 64, d: at(d), h: at(1), now: at(now) };
    (2..=5).for_each(|now| estimator.saw_module(0, class(64), &sample(400, now)));
    assert_eq!(tries(&mut estimator, 6), 0);
    estimator.saw_module(0, class(64), &sample(100, 7));
    assert_eq!(tries(&mut estimator, 8), 1, "to confirm what it took now");
    estimator.saw_module(0, class(64), &sample(400, 9));
    assert_eq!([900_000, 1_000_009].map(|now| tries(&mut estimator, now)), [0, 1], "after a second");
}

/// A virtual machine that stood still for a moment, as one of many: two requests of 2 ms after many of 250 us.
#[test]
fn a_mean_that_few_samples_changed_is_tried_again_soon_and_one_that_was_always_so_is_not() {
    let at = |us: u64| Nanos::from_micros(us);
    let sample = |d, h, now| ModuleSample { jobs: 1, bytes: 16_384, d: at(d), h: at(h), now: at(now) };
    let mut estimator = Estimator::new(1);
    let kept = Learned::kept(240_000.0, 16_384.0, 16);
    estimator.keep_module(0, class(16_384), OnModule { d: kept, h: kept, ..OnModule::default() });
    (1..=2).for_each(|now| estimator.saw_module(0, class(16_384), &sample(2_000, 3_000, now)));
    assert_eq!(estimator.on_module(0, class(16_384)).d.at(16_384), Some(at(2_000)));
    // After ten times what it takes, and not after a second; twice, and it is known again.
    let tries = |estimator: &Estimator, now| estimator.tries_left(0, class(16_384), at(now));
    assert_eq!([2, 50_001, 50_002].map(|now| tries(&estimator, now)), [0, 0, 1]);
    [50_002, 100_002]
        .into_iter()
        .for_each(|now| estimator.saw_module(0, class(16_384), &sample(250, 250, now)));
    assert_eq!(estimator.on_module(0, class(16_384)).d.at(16_384), Some(at(250)));
    // What stays as it became is believed in the end.
    (1..=8).for_each(|_| estimator.saw_module(0, class(16_384), &sample(250, 250, 200_000)));
    assert_eq!([1_199_999, 1_200_000].map(|now| tries(&estimator, now)), [0, 1]);
}

#[test]
fn tries_that_fail_are_tried_again_once_in_a_while_and_after_long_at_any_price() {
    let at = |us: u64| Nanos::from_micros(us);
    let mut estimator = Estimator::new(1);
    // The first ones fail, and nothing is known.
    assert_eq!([1, 1_000_000, 1_000_001, 1_500_000].map(|now| tries(&mut estimator, now)), [4, 0, 1, 0]);
    let sample = |d, now| ModuleSample { jobs: 1, bytes: 64, d: at(d), h: at(1), now: at(now) };
    // The one that is to confirm the first sample fails.
    estimator.saw_module(0, class(64), &sample(400, 1_600_000));
    assert_eq!([1_600_001, 2_600_000].map(|now| tries(&mut estimator, now)), [0, 1]);
    // It was faster, and the next one fails.
    (0..8).for_each(|_| estimator.saw_module(0, class(64), &sample(400, 3_000_000)));
    estimator.saw_module(0, class(64), &sample(100, 3_000_000));
    assert_eq!([3_000_001, 4_000_000, 4_000_001].map(|now| tries(&mut estimator, now)), [1, 0, 1]);
    let long = |begun, now| estimator.is_long_untried(0, class(64), at(begun), at(now));
    assert_eq!([14_000_000, 14_000_001].map(|now| long(0, now)), [false, true]);
    assert!(!long(4_500_000, 14_000_001), "what was before the run is no reason");
}

#[test]
fn what_takes_no_time_has_a_mean_that_is_sure() {
    let mut learned = Learned::default();
    (0..100).for_each(|_| learned.record(1, 100, Nanos::ZERO));
    assert_eq!(learned.at(100), Some(Nanos::ZERO));
    assert!(learned.error() < 0.01, "{}", learned.error());
}

#[test]
fn a_frozen_estimator_learns_nothing() {
    let mut estimator = Estimator::new(1);
    estimator.freeze();
    estimator.saw_cpu(class(64), Method::Plain, 1, 64, Nanos(5));
    estimator.saw_module(0, class(64), &ModuleSample { jobs: 1, bytes: 64, ..ModuleSample::default() });
    assert_eq!((estimator.all_cpu().count(), estimator.all_on_module(0).count()), (0, 0));
}
