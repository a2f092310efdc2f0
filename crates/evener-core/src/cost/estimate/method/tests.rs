//! Plain or multi-buffer: when a burst changes its method, and what a try of the other one may cost.

use super::*;
use crate::job::algorithm::{Algorithm, Direction};

const PLAIN: Method = Method::Plain;
const MULTI: Method = Method::MultiBuffer;

fn class(bytes: usize) -> Class {
    Class::of(Algorithm::Sha256, Direction::Encrypt, bytes, true)
}

/// One burst of so many jobs of 64 bytes at so many nanoseconds each.
fn record(estimator: &mut Estimator, method: Method, jobs: u64, ns: u64) {
    estimator.saw_cpu(class(64), method, jobs, 64 * jobs, Nanos(ns * jobs));
}

/// Costs of both methods at width 16, of so many bursts.
fn known(plain: u64, multi: u64, samples: u32) -> Estimator {
    let mut estimator = Estimator::new(0);
    for (method, ns) in [(PLAIN, plain), (MULTI, multi)] {
        (0..samples).for_each(|_| record(&mut estimator, method, 16, ns));
    }
    estimator
}

#[test]
fn a_burst_stays_plain_unless_multi_buffer_wins_by_more_than_its_cost_may_err() {
    // With one sample of each, costs may err by a third; with many alike by next to nothing, but 5 % stay.
    let cases = [(1, 62, PLAIN), (1, 55, MULTI), (100, 94, MULTI), (100, 96, PLAIN), (100, 130, PLAIN)];
    for (samples, multi, method) in cases {
        assert_eq!(known(100, multi, samples).method(class(64), 16), method, "{samples} {multi}");
    }
}

#[test]
fn what_is_in_force_is_not_given_up_for_a_hair() {
    let mut estimator = known(1_000, 930, 100);
    (0..100).for_each(|_| record(&mut estimator, MULTI, 16, 970));
    assert_eq!(estimator.method(class(64), 16), MULTI, "3 % better is still better");
    (0..100).for_each(|_| record(&mut estimator, MULTI, 16, 990));
    assert_eq!(estimator.method(class(64), 16), PLAIN);
    (0..100).for_each(|_| record(&mut estimator, MULTI, 16, 960));
    assert_eq!(estimator.method(class(64), 16), PLAIN, "4 % better is not enough to come back");
}

#[test]
fn width_decides_and_a_wide_burst_says_nothing_of_a_narrow_one() {
    let mut estimator = Estimator::new(0);
    for (method, jobs, ns) in [(PLAIN, 1, 100), (MULTI, 8, 20)] {
        (0..16).for_each(|_| record(&mut estimator, method, jobs, ns));
    }
    let methods = [1, 4, 8, 40].map(|jobs| estimator.method(class(64), jobs));
    assert_eq!(methods, [PLAIN, PLAIN, MULTI, MULTI]);
    assert_eq!(estimator.multi_buffer_from(class(64)), Some(8));
    assert_eq!([1, 16].map(|jobs| estimator.c(class(64), 64, jobs)), [Nanos(100), Nanos(20)].map(Some));
}

#[test]
fn a_class_nobody_measured_does_as_its_neighbour() {
    let estimator = known(100, 20, 16);
    assert_eq!(estimator.method(class(4_096), 16), MULTI);
    assert_eq!(estimator.method(class(4_096), 4), PLAIN);
    assert_eq!(estimator.method_try(class(4_096), 16), None);
    let other = Class::of(Algorithm::Sha1, Direction::Encrypt, 64, true);
    assert_eq!(estimator.method(other, 16), PLAIN);
}

#[test]
fn a_class_that_works_a_lot_finds_out_whether_its_neighbour_is_right() {
    let mut estimator = known(100, 20, 16);
    let far = class(4_096);
    let mut run = |method, ns: u64| {
        estimator.saw_cpu(far, method, 16, 16 * 4_096, Nanos(16 * ns));
        (estimator.method(far, 16), estimator.method_try(far, 16))
    };
    (0..15).for_each(|_| assert_eq!(run(MULTI, 19_000), (MULTI, None)));
    assert_eq!(run(MULTI, 19_000), (MULTI, Some(4)));
    (0..4).for_each(|_| _ = run(PLAIN, 12_000));
    assert_eq!(run(PLAIN, 12_000).0, PLAIN);
}

#[test]
fn the_unknown_is_tried_with_four_jobs_first_and_not_for_ever() {
    let mut estimator = Estimator::new(0);
    record(&mut estimator, PLAIN, 100, 100);
    assert_eq!(estimator.method_try(class(64), 100), Some(4));
    record(&mut estimator, MULTI, 4, 90);
    assert_eq!(estimator.method_try(class(64), 100), Some(64), "full lanes may be four times as good");
    record(&mut estimator, MULTI, 16, 500);
    assert_eq!(estimator.method_try(class(64), 100), None, "five times as dear is no question any more");
    // One that stays uncertain.
    let mut even = known(100, 92, 1);
    for _ in 0..TUNING.tries_max {
        assert_eq!(even.method_try(class(64), 100), Some(64));
        even.tries_method(class(64), 100);
    }
    assert_eq!(even.method_try(class(64), 100), None);
    even.freeze();
    assert_eq!(known(100, 92, 1).method_try(class(64), 100), Some(64));
    assert_eq!(even.method_try(class(64), 100), None);
}

/// Four jobs whose code is cold are no sample of what full lanes cost, and a class that believed them would stay plain for good.
#[test]
fn a_first_try_is_wide_where_a_neighbour_knows_that_it_is_not_much_dearer() {
    for (multi, jobs) in [(110, 64), (190, 64), (210, 4)] {
        let mut estimator = known(100, multi, 16);
        let far = class(4_096);
        (0..16).for_each(|_| estimator.saw_cpu(far, PLAIN, 100, 100 * 4_096, Nanos(100 * 5_000)));
        assert_eq!(estimator.method_try(far, 100), Some(jobs), "{multi} where plain costs 100");
    }
}

#[test]
fn a_burst_is_tried_by_so_many_jobs_that_the_sample_is_one_of_its_width() {
    let even = known(100, 100, 1);
    let tried = [16, 63, 64, 4_000].map(|jobs| even.method_try(class(64), jobs));
    assert_eq!(tried, [16, 16, 64, 64].map(Some));
}

#[test]
fn lanes_that_are_filled_again_may_win_where_those_that_are_filled_once_lose() {
    let mut estimator = known(100, 130, 16);
    assert_eq!([16, 64].map(|jobs| estimator.method_try(class(64), jobs)), [None, Some(64)]);
    (0..4).for_each(|_| record(&mut estimator, MULTI, 64, 70));
    assert_eq!([16, 64].map(|jobs| estimator.method(class(64), jobs)), [PLAIN, MULTI]);
    assert_eq!(known(100, 210, 16).method_try(class(64), 64), None, "more than twice as dear is no question");
}

/// Tries the other method for as long as it is wanted, at this cost; how often that was.
fn try_on(estimator: &mut Estimator, other: Method, ns: u64) -> usize {
    let mut tries = 0;
    while let Some(jobs) = estimator.method_try(class(64), 16) {
        estimator.tries_method(class(64), 16);
        record(estimator, other, jobs as u64, ns);
        tries += 1;
    }
    tries
}

#[test]
fn tries_on_cold_memory_do_not_decide_for_ever() {
    let mut estimator = known(1_457, 180, 2);
    assert_eq!((estimator.method(class(64), 16), estimator.method_try(class(64), 16)), (MULTI, None));
    (0..14).for_each(|_| record(&mut estimator, MULTI, 16, 180));
    assert_eq!(try_on(&mut estimator, PLAIN, 114), 2);
    assert_eq!(estimator.method(class(64), 16), PLAIN);
}

#[test]
fn a_method_that_is_worse_is_tried_again_ever_more_seldom() {
    let mut estimator = known(1_457, 180, 2);
    let mut tried = Vec::new();
    for samples in 2..10_000 {
        if try_on(&mut estimator, PLAIN, 1_457) > 0 {
            tried.push(samples);
        }
        record(&mut estimator, MULTI, 16, 180);
    }
    assert_eq!(tried, [16, 32, 64, 128, 256, 512, 1_024], "sixteen samples are enough");
}

/// Multi-buffer, which is in force, at this cost, with the tries that are wanted meanwhile at that of plain.
fn live(estimator: &mut Estimator, bursts: usize, [plain, multi]: [u64; 2]) {
    for _ in 0..bursts {
        let method = estimator.method(class(64), 16);
        record(estimator, method, 16, if method == MULTI { multi } else { plain });
        try_on(estimator, method.other(), if method == MULTI { plain } else { multi });
    }
}

#[test]
fn a_drift_changes_nothing_until_the_other_method_was_measured_in_it() {
    let mut estimator = known(100, 30, 16);
    record(&mut estimator, MULTI, 16, 150);
    assert_eq!(estimator.method_try(class(64), 16), None, "one surprise is none");
    for _ in 0..20 {
        record(&mut estimator, MULTI, 16, 150);
        assert_eq!((estimator.method(class(64), 16), estimator.method_try(class(64), 16)), (MULTI, Some(16)));
    }
    assert!(try_on(&mut estimator, PLAIN, 500) >= 2, "it is as dear to the other");
    assert_eq!(estimator.method(class(64), 16), MULTI);
    live(&mut estimator, 20, [100, 30]);
    assert_eq!(estimator.method(class(64), 16), MULTI, "and cheap again");
    // And where the other is better now.
    (0..2).for_each(|_| record(&mut estimator, MULTI, 16, 150));
    assert_eq!(estimator.method(class(64), 16), MULTI);
    assert!(try_on(&mut estimator, PLAIN, 100) >= 2);
    (0..2).for_each(|_| record(&mut estimator, MULTI, 16, 150));
    assert_eq!(estimator.method(class(64), 16), PLAIN);
}

#[test]
fn two_samples_on_cold_memory_are_no_drift() {
    let mut estimator = known(277, 34, 16);
    (0..2).for_each(|_| record(&mut estimator, MULTI, 16, 413));
    assert_eq!(
        try_on(&mut estimator, PLAIN, 289),
        2,
        "tries end, whatever the method in force does meanwhile"
    );
    for _ in 0..20 {
        assert_eq!(estimator.method(class(64), 16), MULTI);
        record(&mut estimator, MULTI, 16, 45);
    }
    assert_eq!(estimator.cpu(class(64), MULTI, 16).map(|mean| mean.ns), Some(45.0));
}

#[test]
fn whatever_both_cost_for_a_while_the_cheaper_one_is_in_force_in_the_end() {
    let mut estimator = known(100, 30, 16);
    for costs in [[400, 200], [100, 30], [90, 130], [300, 900], [100, 30], [60, 66], [100, 30], [120, 80]] {
        live(&mut estimator, 2_000, costs);
        let cheaper = if costs[0] < costs[1] { PLAIN } else { MULTI };
        assert_eq!(estimator.method(class(64), 16), cheaper, "{costs:?}");
    }
}

#[test]
fn tries_that_are_no_samples_keep_nobody_waiting() {
    let mut estimator = known(100, 30, 16);
    (0..2).for_each(|_| record(&mut estimator, MULTI, 16, 150));
    for _ in 0..TUNING.tries_of_comparison {
        assert_eq!(estimator.method_try(class(64), 16), Some(16));
        estimator.tries_method(class(64), 16);
    }
    record(&mut estimator, MULTI, 16, 150);
    assert_eq!(estimator.method(class(64), 16), PLAIN, "by what is known");
}
