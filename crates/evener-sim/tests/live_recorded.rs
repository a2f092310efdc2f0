//! Runs that were made live, again in virtual time, where more threads than cores want one: judged by what was measured.

use evener_core::Nanos;
use evener_core::plan::Policy;
use evener_sim::engine::SchedulerSpec;
use evener_sim::lab::Runners;
use evener_sim::live::{Compared, Machine, Measured, MeasuredOnModule, Module, Prediction};

/// Bytes of a job; `c` and its hand-over, `d`, `h` and theirs, all in microseconds; whether the policy knows `d` and `h`; for each
/// of [`POLICIES`] milliseconds and jobs of the module.
type Row = (u64, f64, f64, f64, f64, f64, bool, [(f64, f64); 5]);

const POLICIES: [Policy; 5] =
    [Policy::CpuOnly, Policy::ModuleOnly, Policy::RoundRobin, Policy::SharedQueue, Policy::Adaptive];

#[test]
fn what_a_recorded_machine_took_is_predicted_where_threads_share_cores() {
    // Of 40 each; of the others docs/results/README.md says what is known.
    assert_eq!(near(500, SHORT), 37, "of short runs, times and splits within a tenth");
    assert_eq!(near(4_000, LONG), 38, "of long runs");
}

/// How many of the recorded times and splits are predicted within a tenth.
fn near(jobs: usize, rows: &[Row]) -> usize {
    let modules = vec![Module { units: 1, depth: 1, runners: Runners::ONE, check_every: 32 }];
    let scheduler = SchedulerSpec::by_deadline(2, 250, 0);
    let machine = Machine { cores: 2, scheduler, workers: 2, width: 1, modules };
    let mut near = 0;
    for row in rows {
        for (policy, live) in POLICIES.into_iter().zip(row.7) {
            let compared = compare(&machine, row, policy, live, jobs);
            let time_error = compared.makespan_error_percent().abs();
            let split_is_near =
                compared.split_error_percent().abs() <= 10.0 || compared.split_error_points().abs() <= 1.0;
            near += usize::from(time_error <= 10.0 && split_is_near);
            assert!(time_error < 12.5, "{} B, {policy}: {compared:?}", row.0);
        }
    }
    near
}

fn compare(machine: &Machine, row: &Row, policy: Policy, live: (f64, f64), jobs: usize) -> Compared {
    let &(bytes, c, hand_over, d, h, on_module, is_known, _) = row;
    let on_module =
        MeasuredOnModule { d: us(d), h: us(h), hand_over: us(on_module), is_known, ..Default::default() };
    let measured = Measured {
        bytes,
        c: us(c),
        hand_over: us(hand_over),
        single: Nanos::ZERO,
        on_modules: vec![on_module],
    };
    let predicted = machine.predict(&measured, policy, jobs).expect("it ends");
    Compared { jobs, live: Prediction { makespan_ms: live.0, module_jobs: live.1 }, predicted }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few hundred microseconds")]
fn us(time: f64) -> Nanos {
    Nanos((time * 1e3) as u64)
}

/// `docs/results/sim-live.txt`, two CPU workers beside the thread of the module: what was measured, and what the policies took live,
/// medians of 11 runs of 500 jobs.
#[rustfmt::skip]
const SHORT: &[Row] = &[
    (8, 20.24, 0.56, 88.2, 0.0, 0.3, false, [(5.18, 0.0), (44.66, 500.0), (17.65, 166.0), (6.74, 39.0), (5.17, 0.0)]),
    (16, 21.58, 0.54, 106.4, 0.0, 0.2, false, [(5.45, 0.0), (53.81, 500.0), (21.61, 166.0), (7.33, 39.0), (5.46, 0.0)]),
    (64, 24.40, 0.00, 141.6, 0.0, 0.2, false, [(6.21, 0.0), (71.50, 500.0), (27.97, 166.0), (8.05, 29.0), (6.22, 0.0)]),
    (256, 35.43, 0.86, 144.4, 0.0, 0.3, false, [(9.10, 0.0), (74.08, 500.0), (25.03, 166.0), (11.65, 39.0), (9.05, 0.0)]),
    (1024, 83.57, 1.63, 162.8, 28.7, 0.4, false, [(21.28, 0.0), (104.42, 500.0), (44.57, 166.0), (24.24, 65.0), (21.50, 0.0)]),
    (4096, 290.71, 5.73, 217.1, 96.9, 0.6, true, [(73.55, 0.0), (173.59, 500.0), (82.35, 166.0), (70.31, 133.0), (71.68, 130.0)]),
    (8192, 538.46, 9.80, 261.8, 200.0, 0.8, true, [(136.28, 0.0), (249.96, 500.0), (131.02, 166.0), (115.79, 168.0), (116.61, 165.0)]),
    (16384, 1179.13, 20.12, 339.9, 402.2, 1.4, true, [(301.35, 0.0), (401.34, 500.0), (265.69, 166.0), (212.98, 221.0), (212.83, 220.0)]),
];

/// The same with 4,000 jobs, medians of 5 runs.
#[rustfmt::skip]
const LONG: &[Row] = &[
    (8, 20.29, 0.08, 87.4, 0.0, 0.2, false, [(40.93, 0.0), (351.81, 4000.0), (134.48, 1333.0), (51.84, 295.0), (40.88, 0.0)]),
    (16, 21.50, 0.11, 105.7, 0.0, 0.2, false, [(42.94, 0.0), (426.78, 4000.0), (142.30, 1333.0), (54.86, 259.0), (43.03, 1.0)]),
    (64, 24.42, 0.13, 141.1, 0.0, 0.2, false, [(48.99, 0.0), (566.17, 4000.0), (189.89, 1333.0), (62.73, 219.0), (49.27, 1.0)]),
    (256, 35.42, 0.11, 143.2, 0.0, 0.2, false, [(71.14, 0.0), (577.31, 4000.0), (193.71, 1333.0), (92.08, 309.0), (71.36, 1.0)]),
    (1024, 83.57, 0.34, 161.3, 28.6, 0.3, false, [(167.83, 0.0), (779.00, 4000.0), (311.37, 1333.0), (193.27, 556.0), (168.77, 1.0)]),
    (4096, 290.71, 2.60, 216.0, 99.6, 0.5, true, [(588.85, 0.0), (1333.35, 4000.0), (615.00, 1333.0), (556.97, 1058.0), (562.14, 1062.0)]),
    (8192, 538.46, 2.32, 260.2, 198.7, 0.9, true, [(1091.33, 0.0), (1960.12, 4000.0), (960.52, 1333.0), (911.95, 1365.0), (916.44, 1346.0)]),
    (16384, 1179.13, 5.37, 334.3, 404.1, 0.7, true, [(2384.59, 0.0), (3153.36, 4000.0), (1975.80, 1333.0), (1655.62, 1797.0), (1670.20, 1789.0)]),
];
