//! Plain or multi-buffer: decided by what both cost, under any policy, and calibrated so that it is the truth.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::cell::Cell;
use std::sync::Arc;

use evener::{CoreDrivers, Costs, Setup, calibrate, run};
use evener_core::estimate::Learned;
use evener_core::plan::Policy;
use evener_core::{Algorithm, Class, Direction, Estimator, Job, Method, Nanos, Padding, Session, Tally};
use evener_testing::drivers::{Fake, Runs, TestClock};
use evener_testing::noise;

const PLAIN: u8 = b'p';
const MULTI: u8 = b'm';

fn session(algorithm: Algorithm) -> Arc<Session> {
    let key = noise(1, algorithm.key_bytes().unwrap());
    Arc::new(Session::new(algorithm, Direction::Encrypt, Padding::None, &key).unwrap())
}

/// AES-128-CBC of 64 bytes costs half by multi-buffer from 4 jobs on, of 1 KiB never; of nothing else is anything known.
fn costs() -> Estimator {
    let mut costs = Estimator::new(0);
    let mut keep = |bytes: usize, method, place, ns| {
        let class = Class::of(CBC, Direction::Encrypt, bytes, false);
        costs.keep_cpu(class, method, place, Learned::kept(ns, bytes as f64, 16));
    };
    for place in 0..5 {
        keep(64, Method::Plain, place, 100.0);
        keep(64, Method::MultiBuffer, place, if place < 2 { 200.0 } else { 50.0 });
        keep(1_024, Method::Plain, place, 1_000.0);
        keep(1_024, Method::MultiBuffer, place, 1_000.0);
    }
    costs
}

/// A set of drivers of two fakes with what each was given.
fn core_drivers(multi: Fake) -> (CoreDrivers, Runs, Runs) {
    let plain = Fake::new(PLAIN, 1);
    let runs = (plain.runs(), multi.runs());
    let core_drivers = CoreDrivers::new(Box::new(plain), Some(Box::new(multi)));
    (core_drivers.sharing(&Arc::new(Costs::new(costs()))), runs.0, runs.1)
}

/// Runs jobs of these algorithms and sizes as one burst; returns the driver of each, in the caller's order.
fn drivers_of(core_drivers: &mut CoreDrivers, jobs: &[(Algorithm, usize)]) -> Vec<u8> {
    let mut spaces = vec![[0u8; 2_048]; jobs.len()];
    let sessions = [session(CBC), session(CTR)];
    let mut armed: Vec<_> = spaces.iter_mut().map(|space| Job::in_place(space)).collect();
    for (number, (job, &(algorithm, bytes))) in armed.iter_mut().zip(jobs).enumerate() {
        let session = sessions.iter().find(|session| session.algorithm() == algorithm).unwrap();
        job.arm(Arc::clone(session), &[0; 16], bytes);
        job.mark = number as u64;
    }
    core_drivers.run(&mut armed, &TestClock::default());
    armed.sort_by_key(|job| job.mark);
    armed.iter().map(|job| job.output_span()[0]).collect()
}

const CBC: Algorithm = Algorithm::Aes128Cbc;
const CTR: Algorithm = Algorithm::Aes256Ctr;

#[test]
fn a_burst_goes_where_it_costs_least_by_width_and_size() {
    let (mut core_drivers, plain, multi) = core_drivers(Fake::new(MULTI, 16));
    assert_eq!(drivers_of(&mut core_drivers, &[(CBC, 64); 3]), [PLAIN; 3]);
    assert_eq!(drivers_of(&mut core_drivers, &[(CBC, 64); 4]), [MULTI; 4]);
    assert_eq!(drivers_of(&mut core_drivers, &[(CBC, 1_024); 8]), [PLAIN; 8]);
    assert_eq!(drivers_of(&mut core_drivers, &[(CTR, 64); 8]), [PLAIN; 8]);
    assert_eq!(*plain.lock().unwrap(), [(3, 64), (8, 1_024), (8, 64)]);
    assert_eq!(*multi.lock().unwrap(), [(4, 64)]);
}

#[test]
fn each_algorithm_of_a_mixed_burst_is_one_run_of_its_own_method() {
    let (mut core_drivers, plain, multi) = core_drivers(Fake::new(MULTI, 16));
    let mixed = [(CBC, 64), (CTR, 64), (CBC, 64), (CTR, 64), (CBC, 64), (CBC, 64)];
    assert_eq!(drivers_of(&mut core_drivers, &mixed), [MULTI, PLAIN, MULTI, PLAIN, MULTI, MULTI]);
    assert_eq!((&**plain.lock().unwrap(), &**multi.lock().unwrap()), (&[(2, 64)][..], &[(4, 64)][..]));
}

#[test]
fn what_multi_buffer_does_not_take_stays_plain() {
    let (mut core_drivers, _, multi) = core_drivers(Fake::new(MULTI, 16).with_job_bytes_max(256));
    assert_eq!(drivers_of(&mut core_drivers, &[(CBC, 256); 4]), [MULTI; 4]);
    assert_eq!(drivers_of(&mut core_drivers, &[(CBC, 16), (CBC, 16), (CBC, 16), (CBC, 272)]), [PLAIN; 4]);
    assert_eq!(multi.lock().unwrap().len(), 1);
    let (mut core_drivers, ..) = self::core_drivers(Fake::new(MULTI, 16).only(|algorithm| algorithm == CTR));
    assert_eq!(drivers_of(&mut core_drivers, &[(CBC, 64); 4]), [PLAIN; 4]);
}

#[test]
fn each_method_has_its_own_tally() {
    let (mut core_drivers, ..) = core_drivers(Fake::new(MULTI, 16));
    drivers_of(&mut core_drivers, &[(CBC, 64); 4]);
    drivers_of(&mut core_drivers, &[(CBC, 64); 2]);
    let tallies = core_drivers.take_tallies();
    let of = |method: Method| (tallies[method as usize].jobs, tallies[method as usize].bytes);
    assert_eq!((of(Method::Plain), of(Method::MultiBuffer)), ((2, 128), (4, 256)));
    assert_eq!(core_drivers.take_tallies(), [Tally::default(); 2]);
}

/// From how many jobs on multi-buffer is chosen at each size, after a calibration with these costs of plain and
/// multi-buffer, in nanoseconds by jobs and bytes.
fn measured(plain: fn(u64, u64) -> u64, multi: fn(u64, u64) -> u64) -> Vec<Option<u16>> {
    measured_beside_others(plain, multi, Nanos::ZERO)
}

/// The same where others have the core in each plain burst for so long.
fn measured_beside_others(
    plain: fn(u64, u64) -> u64,
    multi: fn(u64, u64) -> u64,
    lent: Nanos,
) -> Vec<Option<u16>> {
    let clock = TestClock::default();
    let mut plain = Fake::new(PLAIN, 1).with_cost(&clock, plain).with_core_lent(lent);
    let mut multi = Fake::new(MULTI, 16).with_cost(&clock, multi).with_job_bytes_max(10_000);
    let mut learned = costs();
    let row = (CBC, Direction::Encrypt);
    calibrate::measure(&mut plain, &mut multi, &[row], &clock, &mut learned);
    assert!(calibrate::is_known(&learned, row) && !calibrate::is_known(&learned, (CBC, Direction::Decrypt)));
    calibrate::classes(row.0, row.1).map(|class| learned.multi_buffer_from(class)).collect()
}

#[test]
fn calibration_never_chooses_multi_buffer_where_it_is_slower_or_better_by_a_hair() {
    assert_eq!(measured(|_, bytes| bytes, |_, bytes| 2 * bytes), [None; 6]);
    assert_eq!(measured(|_, bytes| 100 * bytes, |_, bytes| 90 * bytes), [None; 6]);
}

#[test]
fn calibration_chooses_what_is_cheaper_by_a_sixth_without_a_sample_of_a_run() {
    assert_eq!(measured(|_, bytes| 600 * bytes, |_, bytes| 500 * bytes), [Some(1); 6]);
}

#[test]
fn calibration_does_not_charge_a_method_for_what_others_do_on_its_core() {
    let lent = Nanos::from_micros(800);
    assert_eq!(measured_beside_others(|_, bytes| bytes, |_, bytes| 2 * bytes, lent), [None; 6]);
}

#[test]
fn calibration_finds_the_width_from_which_on_multi_buffer_wins() {
    // Sixteen lanes at once take as long as five jobs one after the other: 8 is the first width tried that wins.
    // Jobs of 16 KiB are not measured, which this multi-buffer does not take, so they do as their neighbour.
    let plain = |_, bytes| bytes;
    let multi = |jobs: u64, bytes: u64| 5 * bytes / jobs * jobs.div_ceil(16);
    assert_eq!(measured(plain, multi), [Some(8); 6]);
}

#[test]
fn calibration_sees_a_fixed_cost_in_small_jobs_only() {
    let multi = |_, bytes: u64| 1_000 + bytes / 4;
    // 64 x 16 bytes: 1024 against 1256; 16 x 64: 1024 against 1256, 64 x 64: 4096 against 2024; 256 bytes: from 8 jobs on 2048 against 1512.
    assert_eq!(measured(|_, bytes| bytes, multi)[..5], [None, Some(64), Some(8), Some(2), Some(1)]);
}

#[test]
fn calibration_leaves_alone_what_was_not_asked_for() {
    let clock = TestClock::default();
    let (mut plain, mut multi) = (Fake::new(PLAIN, 1), Fake::new(MULTI, 16));
    let mut learned = costs();
    calibrate::measure(&mut plain, &mut multi, &[], &clock, &mut learned);
    assert_eq!(learned, costs());
}

/// Runs bursts of `width` jobs of 64 bytes on a set of drivers that goes by `learned`, until it has run so many; the driver of each.
fn bursts(
    plain_ns: fn(u64, u64) -> u64,
    multi_ns: fn(u64, u64) -> u64,
    learned: Estimator,
    count: usize,
) -> Vec<Vec<u8>> {
    let clock = TestClock::default();
    let plain = Fake::new(PLAIN, 1).with_cost(&clock, plain_ns);
    let multi = Fake::new(MULTI, 16).with_cost(&clock, multi_ns);
    let core_drivers = CoreDrivers::new(Box::new(plain), Some(Box::new(multi)));
    let mut core_drivers = core_drivers.sharing(&Arc::new(Costs::new(learned)));
    let session = session(CBC);
    let mut burst = || {
        let mut spaces = [[0u8; 64]; 32];
        let mut armed: Vec<_> = spaces.iter_mut().map(|space| Job::in_place(space)).collect();
        armed.iter_mut().for_each(|job| job.arm(Arc::clone(&session), &[0; 16], 64));
        core_drivers.run(&mut armed, &clock);
        armed.iter().map(|job| job.output_span()[0]).collect()
    };
    (0..count).map(|_| burst()).collect()
}

/// Bursts in which some job was run by multi-buffer, and jobs that it ran in all.
fn tried(bursts: &[Vec<u8>]) -> (usize, usize) {
    let multi = |burst: &Vec<u8>| burst.iter().filter(|&&name| name == MULTI).count();
    (bursts.iter().filter(|burst| multi(burst) > 0).count(), bursts.iter().map(multi).sum())
}

/// One burst of 32 jobs by plain takes so long, so that a hundred of them are more than a short process.
const BURST_NS: u64 = 1_000_000;

#[test]
fn a_short_process_tries_no_method_and_a_long_one_finds_the_better() {
    let plain: fn(u64, u64) -> u64 = |jobs, _| BURST_NS * jobs / 32;
    let multi: fn(u64, u64) -> u64 = |jobs, _| BURST_NS * jobs / 320;
    let short = bursts(plain, multi, Estimator::new(0), 10);
    assert_eq!(tried(&short), (0, 0));
    let long = bursts(plain, multi, Estimator::new(0), 500);
    assert_eq!(long[0], [PLAIN; 32]);
    assert_eq!(long[499], [MULTI; 32]);
}

#[test]
fn what_a_worker_did_first_counts_once_and_makes_no_short_process_long() {
    // Sixteen workers with one burst each: 16 ms of core time, too little for a try.
    let clock = TestClock::default();
    let costs = Arc::new(Costs::new(Estimator::new(0)));
    let (session, mut tried) = (session(CBC), 0);
    for _ in 0..16 {
        let plain = Fake::new(PLAIN, 1).with_cost(&clock, |jobs, _| BURST_NS * jobs / 32);
        let multi = Fake::new(MULTI, 16);
        let runs = multi.runs();
        let mut core_drivers = CoreDrivers::new(Box::new(plain), Some(Box::new(multi))).sharing(&costs);
        let mut spaces = [[0u8; 64]; 32];
        let mut armed: Vec<_> = spaces.iter_mut().map(|space| Job::in_place(space)).collect();
        armed.iter_mut().for_each(|job| job.arm(Arc::clone(&session), &[0; 16], 64));
        core_drivers.run(&mut armed, &clock);
        tried += runs.lock().unwrap().len();
    }
    assert_eq!(tried, 0);
}

#[test]
fn a_method_that_is_no_good_costs_four_jobs() {
    let plain: fn(u64, u64) -> u64 = |jobs, _| BURST_NS * jobs / 32;
    let multi: fn(u64, u64) -> u64 = |jobs, _| BURST_NS * jobs;
    let long = bursts(plain, multi, Estimator::new(0), 1_000);
    assert_eq!(tried(&long), (1, 4));
}

thread_local! {
    /// Whether plain ran since multi-buffer did last.
    static IS_COLD: Cell<bool> = const { Cell::new(true) };
}

#[test]
fn a_method_whose_code_is_cold_whenever_it_is_tried_is_found_to_be_the_better() {
    let plain: fn(u64, u64) -> u64 = |jobs, _| {
        IS_COLD.set(true);
        277 * jobs
    };
    let multi: fn(u64, u64) -> u64 = |jobs, _| 45 * jobs + if IS_COLD.replace(false) { 6_000 } else { 0 };
    let mut learned = Estimator::new(0);
    for (method, ns) in [(Method::Plain, 277.0), (Method::MultiBuffer, 413.0)] {
        learned.keep_cpu(
            Class::of(CBC, Direction::Encrypt, 64, false),
            method,
            4,
            Learned::kept(ns, 64.0, 2),
        );
    }
    let all = bursts(plain, multi, learned, 4_000);
    assert_eq!((&all[0], &all[3_999]), (&vec![PLAIN; 32], &vec![MULTI; 32]));
}

#[test]
fn a_method_that_costs_no_longer_what_was_kept_is_given_up() {
    let plain: fn(u64, u64) -> u64 = |jobs, _| 100 * jobs;
    // Kept: half of plain.
    let multi: fn(u64, u64) -> u64 = |jobs, _| 400 * jobs;
    let all = bursts(plain, multi, costs(), 200);
    assert_eq!((&all[0], &all[199]), (&vec![MULTI; 32], &vec![PLAIN; 32]));
}

#[test]
fn the_method_is_the_same_question_under_every_policy() {
    // Without a module every policy is `cpu_only`; the kits of a run go by the run's costs, whatever its policy.
    for policy in Policy::ALL {
        for (width, method) in [(1, Method::Plain), (16, Method::MultiBuffer)] {
            let core_drivers =
                || CoreDrivers::new(Box::new(Fake::new(PLAIN, 1)), Some(Box::new(Fake::new(MULTI, 16))));
            let setup = Setup { policy, learned: costs(), callers: 1, ..Setup::default() };
            let session = session(CBC);
            let mut spaces = vec![[0u8; 64]; width];
            let ((), report) = run(setup, |runtime| {
                let mut armed: Vec<_> = spaces.iter_mut().map(|space| Job::in_place(space)).collect();
                armed.iter_mut().for_each(|job| job.arm(Arc::clone(&session), &[0; 16], 64));
                runtime.caller(core_drivers()).crypt(&mut armed);
            });
            assert_eq!(report.method(method).jobs, width as u64, "{policy}, {width}");
        }
    }
}
