//! Runs that were made live, again in virtual time, where more threads than cores want one: judged by what was measured.

use evener_core::Nanos;
use evener_core::plan::Policy;
use evener_sim::engine::SchedulerSpec;
use evener_sim::live::{Compared, Machine, Measured, MeasuredOnModule, Module, Prediction};

/// Bytes of a job; `c` and its hand-over, `d`, `h` and theirs, all in microseconds; whether the policy knows `d` and `h`; for each
/// of [`POLICIES`] milliseconds and jobs of the module.
type Row = (u64, f64, f64, f64, f64, f64, bool, [(f64, f64); 5]);

const POLICIES: [Policy; 5] =
    [Policy::CpuOnly, Policy::ModuleOnly, Policy::RoundRobin, Policy::SharedQueue, Policy::Adaptive];

const JOBS: usize = 500;

#[test]
fn what_a_recorded_machine_took_is_predicted_where_threads_share_cores() {
    let modules = vec![Module { units: 1, depth: 1, check_every: 32 }];
    let scheduler = SchedulerSpec::by_deadline(2, 250, 0);
    let machine = Machine { cores: 2, scheduler, workers: 2, width: 1, modules };
    let (mut times, mut both) = (0, 0);
    for row in ROWS {
        for (policy, live) in POLICIES.into_iter().zip(row.7) {
            let compared = compare(&machine, row, policy, live);
            let is_time_near = compared.makespan_error_percent().abs() <= 10.0;
            let split_error = compared.split_error_percent().abs();
            times += usize::from(is_time_near);
            both += usize::from(
                is_time_near && (split_error <= 10.0 || compared.split_error_points().abs() <= 1.0),
            );
            assert!(compared.makespan_error_percent().abs() < 20.0, "{} B, {policy}: {compared:?}", row.0);
        }
    }
    // Of 40; of the others docs/results/README.md says what is known.
    assert!(times >= 38 && both >= 33, "{times} times, {both} times and splits within a tenth");
}

fn compare(machine: &Machine, row: &Row, policy: Policy, live: (f64, f64)) -> Compared {
    let &(bytes, c, hand_over, d, h, on_module, is_known, _) = row;
    let on_module =
        MeasuredOnModule { d: us(d), unseen: us(0.0), h: us(h), hand_over: us(on_module), is_known };
    let measured = Measured { bytes, c: us(c), hand_over: us(hand_over), on_modules: vec![on_module] };
    let predicted = machine.predict(&measured, policy, JOBS).expect("it ends");
    Compared { jobs: JOBS, live: Prediction { makespan_ms: live.0, module_jobs: live.1 }, predicted }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few hundred microseconds")]
fn us(time: f64) -> Nanos {
    Nanos((time * 1e3) as u64)
}

/// `docs/results/sim-live.txt`, two CPU workers beside the thread of the module: what was measured, and what the policies took live,
/// medians of 5 runs of 500 jobs.
const ROWS: &[Row] = &[
    (
        8,
        20.41,
        0.34,
        87.6,
        0.0,
        0.2,
        false,
        [(5.16, 0.0), (44.32, 500.0), (18.22, 166.0), (6.81, 44.0), (5.15, 0.0)],
    ),
    (
        16,
        21.46,
        0.36,
        105.8,
        0.0,
        0.2,
        false,
        [(5.41, 0.0), (53.69, 500.0), (20.65, 166.0), (6.97, 27.0), (5.7, 0.0)],
    ),
    (
        64,
        24.46,
        0.46,
        142.0,
        0.0,
        0.2,
        false,
        [(6.17, 0.0), (71.23, 500.0), (26.92, 166.0), (7.86, 24.0), (6.2, 0.0)],
    ),
    (
        256,
        35.52,
        0.49,
        143.5,
        0.0,
        0.3,
        false,
        [(8.99, 0.0), (72.62, 500.0), (30.28, 166.0), (11.32, 39.0), (9.1, 0.0)],
    ),
    (
        1024,
        83.73,
        1.14,
        162.0,
        29.7,
        0.5,
        false,
        [(21.41, 0.0), (106.15, 500.0), (43.54, 166.0), (24.9, 69.0), (23.32, 0.0)],
    ),
    (
        4096,
        290.92,
        3.31,
        215.2,
        98.2,
        0.8,
        true,
        [(74.27, 0.0), (169.44, 500.0), (82.71, 166.0), (73.46, 133.0), (77.06, 1.0)],
    ),
    (
        8192,
        538.51,
        9.51,
        258.7,
        199.8,
        0.7,
        true,
        [(141.18, 0.0), (252.05, 500.0), (145.92, 166.0), (121.08, 170.0), (129.44, 166.0)],
    ),
    (
        16384,
        1179.13,
        14.85,
        336.1,
        402.3,
        1.3,
        true,
        [(329.99, 0.0), (408.98, 500.0), (272.02, 166.0), (230.06, 225.0), (246.87, 220.0)],
    ),
];
