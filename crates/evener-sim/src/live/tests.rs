//! Predictions of machines whose answer is known.

use super::*;
use crate::bounds;
use evener_core::Cost;

fn one() -> Machine {
    Machine { cores: 2, scheduler: SchedulerSpec::linux(250, 0), workers: 1, width: 1, modules: Vec::new() }
}

/// Paper 002, table 2, 16 KiB.
const C: Nanos = Nanos(1_178_960);
const D: Nanos = Nanos(330_860);
const H: Nanos = Nanos(403_570);
const JOBS: usize = 4_000;

fn machine(workers: u32, check_every: u32) -> Machine {
    let runners = Runners::ONE;
    Machine { workers, modules: vec![Module { units: 1, depth: 1, runners, check_every }], ..one() }
}

fn measured(hand_over: Nanos) -> Measured {
    let on_modules = vec![MeasuredOnModule { d: D, h: H, hand_over, is_known: true, ..Default::default() }];
    Measured { bytes: 16_384, c: C, hand_over, single: Nanos::ZERO, on_modules }
}

fn ms(time: Nanos) -> f64 {
    time.as_secs_f64() * 1e3
}

#[track_caller]
fn near(predicted: f64, measured: f64, part: f64) {
    assert!((predicted / measured - 1.0).abs() < part, "{predicted} for {measured}");
}

#[test]
fn a_job_claimed_by_itself_takes_more_where_plans_claim_so_and_nowhere_else() {
    let of = |policy, single| {
        let measured = Measured { single, ..measured(Nanos::ZERO) };
        machine(1, 0).predict(&measured, policy, JOBS).unwrap()
    };
    for policy in [Policy::CpuOnly, Policy::ModuleOnly, Policy::RoundRobin] {
        assert_eq!(of(policy, Nanos::ZERO), of(policy, C), "{policy}");
    }
    // Twice as dear a core beside the same module.
    let [usual, dear] = [Nanos::ZERO, C].map(|single| of(Policy::SharedQueue, single));
    assert!(
        dear.makespan_ms > usual.makespan_ms && dear.module_jobs > usual.module_jobs,
        "{usual:?} {dear:?}"
    );
}

#[test]
fn one_path_alone_takes_its_costs_its_hand_over_and_its_checks() {
    let (hand_over, jobs) = (Nanos::from_micros(30), JOBS as f64);
    let of = |policy| machine(1, 32).predict(&measured(hand_over), policy, JOBS).unwrap();
    let (cpu, module) = (of(Policy::CpuOnly), of(Policy::ModuleOnly));
    near(cpu.makespan_ms, jobs * ms(C + hand_over), 0.002);
    near(module.makespan_ms, jobs * (ms(D + H + hand_over) + ms(C) / 32.0), 0.003);
    assert_eq!((cpu.module_jobs, module.module_jobs), (0.0, jobs));
}

#[test]
fn with_a_core_for_each_path_a_shared_queue_takes_what_both_rates_add_up_to() {
    let of = |policy| machine(1, 0).predict(&measured(Nanos::ZERO), policy, JOBS).unwrap();
    let rate = 1.0 / ms(C) + 1.0 / ms(D + H);
    for policy in [Policy::SharedQueue, Policy::Adaptive] {
        let got = of(policy);
        near(got.makespan_ms, JOBS as f64 / rate, 0.02);
        near(got.module_jobs, JOBS as f64 / rate / ms(D + H), 0.02);
    }
    // Dealt out evenly, the slower of the two paths is waited for.
    let dealt = of(Policy::RoundRobin);
    near(dealt.makespan_ms, JOBS as f64 / 2.0 * ms(C), 0.01);
    assert_eq!(dealt.module_jobs, JOBS as f64 / 2.0);
}

#[test]
fn on_one_core_nobody_beats_the_lower_bound_of_the_costs() {
    let machine = Machine { cores: 1, ..machine(1, 0) };
    let bound = bounds::lower_bound(&[(Cost { c: C, d: D, h: H }, 4_000)], bounds::Requests::Synchronous);
    for policy in Policy::ALL {
        let got = machine.predict(&measured(Nanos::ZERO), policy, JOBS).unwrap();
        assert!(got.makespan_ms > 0.99 * bound / 1e6, "{policy}: {got:?}");
    }
}

/// Part by which such a path may be longer: the kernel has the next request at the last moment, and jobs vary.
const NO_SLACK: f64 = 0.06;

/// One core and a module behind the kernel that does a job in 240 us by itself, of which the kernel works for 140.
fn behind_the_kernel(c: u64, overhead: u64) -> (Machine, Measured) {
    let runners = Runners { count: 2, together: 1 };
    let machine = Machine { modules: vec![Module { units: 2, depth: 2, runners, check_every: 0 }], ..one() };
    let [c, d, overhead, h] = [c, 240, overhead, 100].map(Nanos::from_micros);
    let driver = Nanos((d - overhead).0 / 2);
    let on_modules = vec![MeasuredOnModule { d, overhead, driver, h, is_known: true, ..Default::default() }];
    (
        Machine { cores: 1, ..machine },
        Measured { bytes: 16_384, c, hand_over: Nanos::ZERO, single: Nanos::ZERO, on_modules },
    )
}

#[test]
fn the_kernels_part_of_a_path_goes_before_a_core_that_works() {
    let of = |policy, overhead| {
        let (machine, measured) = behind_the_kernel(400, overhead);
        machine.predict(&measured, policy, 1_000).unwrap()
    };
    near(of(Policy::ModuleOnly, 140).makespan_ms, 240.0, NO_SLACK);
    // With all of its part in one thread a path gets half of the core; what it is charged for is 100 us of 240.
    let (shared, charged) = (of(Policy::SharedQueue, 140), of(Policy::SharedQueue, 0));
    near(charged.module_jobs, 1_000.0 / (1.0 + 240.0 / 400.0), 0.05);
    assert!(shared.module_jobs > 1.15 * charged.module_jobs, "{shared:?} {charged:?}");
}

#[test]
fn what_a_module_takes_beyond_its_paths_core_time_is_seen_beside_a_core_that_works() {
    let of = |policy, h| {
        let (machine, mut measured) = behind_the_kernel(85, 70);
        measured.on_modules[0].h = Nanos::from_micros(h);
        machine.predict(&measured, policy, 1_000).unwrap()
    };
    for h in [30, 170] {
        near(of(Policy::ModuleOnly, h).makespan_ms, 240.0, NO_SLACK);
    }
    // Each thread of the path has its share of the core: beside a core that works, what is shorter than that share is not seen.
    let [soon, late] = [30, 400].map(|h| of(Policy::SharedQueue, h).module_jobs);
    assert!(soon > 1.3 * late, "{soon} {late}");
}

#[test]
fn where_core_and_module_take_turns_one_of_them_does_nearly_all() {
    let of = |c| {
        let (machine, measured) = behind_the_kernel(c, 140);
        machine.predict(&measured, Policy::Adaptive, 1_000).unwrap()
    };
    let (fast, slow) = (of(200), of(300));
    near(fast.makespan_ms, 200.0, 0.02);
    near(slow.makespan_ms, 240.0, NO_SLACK);
    assert!(fast.module_jobs < 1.0 && slow.module_jobs > 980.0, "{fast:?} {slow:?}");
}

#[test]
fn with_more_threads_than_cores_each_starts_alone_on_one_as_often_as_the_others() {
    let each = Nanos::from_millis(1);
    let on = MeasuredOnModule { d: each, is_known: true, ..Default::default() };
    let measured =
        Measured { bytes: 8, c: each, hand_over: Nanos::ZERO, single: Nanos::ZERO, on_modules: vec![on] };
    let machine = machine(2, 0);
    let jobs_of_module = |turn| {
        let setup = Setup { turn, ..machine.staffed(&measured, Policy::SharedQueue) };
        let workload = Workload::new(std::iter::repeat_n(0, 120), Arrivals::AtOnce, 0);
        let mut chooser = machine.chooser(&setup, &measured, Policy::SharedQueue);
        run(&setup, &workload, &mut *chooser).unwrap().module_jobs()
    };
    let mut jobs: Vec<u32> = (0..3).map(jobs_of_module).collect();
    jobs.sort_unstable();
    // Alone it does half of all, beside another a quarter.
    assert!(jobs[1] <= 36 && (54..=66).contains(&jobs[2]), "{jobs:?}");
    assert_eq!(machine.starts().len(), 9);
}

#[test]
fn long_jobs_are_claimed_by_bytes_so_that_workers_end_together() {
    // Of 68 jobs a core with lanes claims two fills, which the module would do ten times as fast; of 64 KiB one.
    let wide = Machine { width: 16, ..machine(1, 0) };
    let fast = vec![MeasuredOnModule { d: D, is_known: true, ..Default::default() }];
    let long = Measured {
        bytes: 64 << 10,
        c: Nanos(10 * D.0),
        hand_over: Nanos::ZERO,
        single: Nanos::ZERO,
        on_modules: fast,
    };
    let short = Measured { bytes: 4 << 10, ..long.clone() };
    let of = |measured| wide.predict(measured, Policy::SharedQueue, 68).unwrap();
    near(of(&short).makespan_ms, 320.0 * ms(D), 0.05);
    assert!(of(&long).makespan_ms < 200.0 * ms(D), "{:?}", of(&long));
}

#[test]
fn what_the_live_policy_does_not_know_the_simulated_one_finds_out_where_it_is_worth_it() {
    let unknown = |mut measured: Measured| {
        measured.on_modules[0].is_known = false;
        measured
    };
    let of = |jobs| machine(1, 0).predict(&unknown(measured(Nanos::ZERO)), Policy::Adaptive, jobs).unwrap();
    // 10 jobs are 12 ms of core time: a short run never tries.
    assert_eq!(of(10).module_jobs, 0.0);
    assert!(of(400).module_jobs > 200.0, "{:?}", of(400));
}

#[test]
fn errors_are_told_in_parts_of_what_was_measured() {
    let (live, predicted) = (
        Prediction { makespan_ms: 200.0, module_jobs: 50.0 },
        Prediction { makespan_ms: 190.0, module_jobs: 60.0 },
    );
    let compared = Compared { jobs: 400, live, predicted };
    near(compared.makespan_error_percent(), -5.0, 1e-9);
    near(compared.split_error_points(), 2.5, 1e-9);
    near(compared.split_error_percent(), 20.0, 1e-9);
    let none = Compared { live: Prediction { module_jobs: 0.0, ..live }, ..compared };
    assert_eq!(none.split_error_percent(), f64::INFINITY);
}
