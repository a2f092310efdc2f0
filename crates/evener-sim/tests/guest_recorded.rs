//! Runs that were made live in a guest of one core, its module behind the kernel, again in virtual time: judged by what was measured.

use evener_core::Nanos;
use evener_core::plan::Policy;
use evener_sim::engine::SchedulerSpec;
use evener_sim::lab::{Opening, Runners};
use evener_sim::live::{Compared, Machine, Measured, MeasuredOnModule, Module, Prediction};

/// Bytes of a job; `c`, and what a job claimed by itself takes more; `d`, what of it is unseen, what of it is the driver's, `h`; what the first
/// request takes beside them of the worker, of the driver and asleep, all in microseconds; for each of [`POLICIES`] milliseconds and jobs of
/// the module.
type Row = (u64, [f64; 2], [f64; 4], [f64; 3], [(f64, f64); 5]);

/// What was measured in one guest.
#[derive(Clone, Copy)]
struct Recorded {
    /// Jobs of each run.
    jobs: usize,
    /// Requests that may be outstanding, and the driver's threads.
    depth: u32,
    runners: Runners,
    rows: &'static [Row],
}

const POLICIES: [Policy; 5] =
    [Policy::CpuOnly, Policy::ModuleOnly, Policy::RoundRobin, Policy::SharedQueue, Policy::Adaptive];

#[test]
fn what_a_guest_with_one_core_took_is_predicted_by_its_costs() {
    // Of 40; docs/results/README.md says what is known of them.
    assert_eq!(off(&PLAIN), OFF);
}

#[test]
fn what_a_guest_took_whose_clock_counts_instructions_is_predicted_by_its_costs() {
    assert_eq!(off(&COUNTED), OFF_COUNTED);
    let errors = || all(&COUNTED, true).map(|it| it.2.makespan_error_percent().abs());
    assert!(errors().all(|error| error < 10.0), "{:?}", errors().fold(0.0, f64::max));
}

#[test]
fn what_a_guest_took_whose_driver_has_more_requests_than_threads_is_predicted_by_its_costs() {
    assert_eq!(off(&WAITING), OFF_WAITING);
}

#[test]
fn with_a_thread_for_each_request_the_shared_queue_sends_too_much_to_the_module() {
    // What was wrong before: each thread has a share of the core.
    let errors = |count| {
        let recorded = Recorded { runners: Runners { count, together: 4 }, ..WAITING };
        let shared =
            all(&recorded, true).filter(|it| it.1 == Policy::SharedQueue && (16..=256).contains(&it.0));
        shared.map(|it| it.2.split_error_percent()).collect::<Vec<_>>()
    };
    assert!(errors(2).iter().all(|error| error.abs() < 10.0), "{:?}", errors(2));
    assert!(errors(8).iter().all(|error| *error > 20.0), "{:?}", errors(8));
}

#[test]
fn without_what_claims_of_one_job_take_the_shared_queue_is_thought_too_fast_with_short_ones() {
    let rows =
        COUNTED.rows.iter().map(|&(bytes, [c, _], d, opening, live)| (bytes, [c, 0.0], d, opening, live));
    let compared = |row: &Row| compare(&COUNTED, row, (Policy::SharedQueue, row.4[3]), true);
    let errors: Vec<f64> = rows.take(2).map(|row| compared(&row).makespan_error_percent()).collect();
    assert!(errors.iter().all(|error| *error < -10.0), "{errors:?}");
}

#[test]
fn without_the_drivers_threads_the_shared_queue_sends_too_little_to_the_module() {
    // What was wrong before: with all of the path in the worker, a core that works gets half of the core's time.
    let shared = |has_threads| {
        let all = all(&PLAIN, has_threads).filter(|it| it.1 == Policy::SharedQueue && it.0 >= 4_096);
        all.map(|it| it.2.split_error_percent()).collect::<Vec<_>>()
    };
    assert!(shared(true).iter().all(|error| error.abs() < 10.0), "{:?}", shared(true));
    assert!(shared(false).iter().all(|error| *error < -10.0), "{:?}", shared(false));
}

fn is_near(compared: &Compared) -> bool {
    let split = compared.split_error_percent().abs() <= 10.0 || compared.split_error_points().abs() <= 1.0;
    compared.makespan_error_percent().abs() <= 10.0 && split
}

/// Where the prediction is not near.
fn off(recorded: &Recorded) -> Vec<(u64, Policy)> {
    all(recorded, true).filter(|it| !is_near(&it.2)).map(|it| (it.0, it.1)).collect()
}

/// All rows and policies; `has_threads`: whether the driver's threads are simulated.
fn all(recorded: &Recorded, has_threads: bool) -> impl Iterator<Item = (u64, Policy, Compared)> {
    let recorded = *recorded;
    let each = move |row: &'static Row| {
        let lines = POLICIES.into_iter().zip(row.4);
        lines.map(move |live| (row.0, live.0, compare(&recorded, row, live, has_threads)))
    };
    recorded.rows.iter().flat_map(each)
}

fn compare(
    recorded: &Recorded,
    row: &Row,
    (policy, live): (Policy, (f64, f64)),
    has_threads: bool,
) -> Compared {
    let &Recorded { jobs, depth, runners, .. } = recorded;
    let modules = vec![Module { units: 1, depth, runners, check_every: 32 }];
    let scheduler = SchedulerSpec::linux(250, 0);
    let machine = Machine { cores: 1, scheduler, workers: 1, width: 1, modules };
    let &(bytes, [c, single], d, opening, _) = row;
    let [d, overhead, driver, h] = d.map(us);
    let [own, opens, wait] = opening.map(us);
    let opening = Opening { own, driver: opens, wait };
    let driver = if has_threads { driver } else { Nanos::ZERO };
    let on = MeasuredOnModule { d, overhead, driver, opening, h, hand_over: Nanos::ZERO, is_known: true };
    let measured =
        Measured { bytes, c: us(c), hand_over: Nanos::ZERO, single: us(single), on_modules: vec![on] };
    let predicted = machine.predict(&measured, policy, jobs).expect("it ends");
    Compared { jobs, live: Prediction { makespan_ms: live.0, module_jobs: live.1 }, predicted }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few milliseconds")]
fn us(time: f64) -> Nanos {
    Nanos((time * 1e3) as u64)
}

/// Those that are off by more than a tenth: what takes a millisecond or two strays by as much, and where small jobs are done before the path
/// has had its share of the core, its start decides.
const OFF: [(u64, Policy); 9] = [
    (8, Policy::SharedQueue),
    (16, Policy::CpuOnly),
    (16, Policy::SharedQueue),
    (16, Policy::Adaptive),
    (64, Policy::CpuOnly),
    (64, Policy::SharedQueue),
    (64, Policy::Adaptive),
    (256, Policy::SharedQueue),
    (1_024, Policy::SharedQueue),
];

/// Splits that are off by more than a tenth, with times that are not: where core and path are within a few per cent of each other, many splits take
/// as long.
const OFF_COUNTED: [(u64, Policy); 4] = [
    (8, Policy::SharedQueue),
    (16, Policy::SharedQueue),
    (256, Policy::SharedQueue),
    (1_024, Policy::Adaptive),
];

/// `docs/results/guest/simulated.json.gz`: what was measured, and medians of what the policies took live in 9 runs of 500 jobs, core and
/// module on processors of their own that were kept awake. What single claims take was not measured then.
#[rustfmt::skip]
const PLAIN: Recorded = Recorded { jobs: 500, depth: 2, runners: TOLD_OF_EACH, rows: &[
    (8, [2.46, 0.0], [176.68, 34.55, 84.47, 27.63], [240.90, 657.36, 450.78], [(1.25, 0.0), (88.18, 500.0), (46.26, 250.0), (4.25, 6.0), (1.30, 0.0)]),
    (16, [2.35, 0.0], [173.48, 36.00, 86.12, 19.41], [152.20, 639.75, 374.72], [(1.31, 0.0), (91.01, 500.0), (47.39, 250.0), (5.23, 10.0), (1.48, 0.0)]),
    (64, [4.38, 0.0], [179.18, 35.65, 90.17, 15.77], [195.58, 686.61, 552.38], [(1.97, 0.0), (89.92, 500.0), (48.14, 250.0), (6.18, 10.0), (1.84, 0.0)]),
    (256, [7.93, 0.0], [183.96, 35.81, 87.68, 15.44], [154.90, 807.87, 466.51], [(3.99, 0.0), (91.74, 500.0), (49.68, 250.0), (8.97, 19.0), (4.16, 0.0)]),
    (1024, [16.97, 0.0], [202.43, 36.79, 94.16, 18.47], [103.30, 850.75, 250.08], [(8.72, 0.0), (97.45, 500.0), (55.76, 250.0), (22.11, 64.0), (8.95, 0.0)]),
    (4096, [57.41, 0.0], [214.27, 37.73, 89.36, 13.45], [92.21, 980.40, 403.44], [(29.76, 0.0), (107.82, 500.0), (69.88, 250.0), (62.19, 189.0), (29.20, 0.0)]),
    (8192, [113.00, 0.0], [226.09, 38.99, 93.26, 13.36], [106.66, 938.59, 344.90], [(56.58, 0.0), (117.24, 500.0), (90.93, 250.0), (90.30, 266.0), (56.64, 0.0)]),
    (16384, [222.03, 0.0], [237.26, 41.50, 96.80, 13.61], [550.40, 962.51, 451.46], [(110.18, 0.0), (122.64, 500.0), (121.38, 250.0), (126.56, 337.0), (112.26, 0.0)]),
] };

/// An earlier `docs/results/guest/simulated-counted.json.gz`: the same of 5 runs of 4000 jobs in a guest whose clock counts instructions.
#[rustfmt::skip]
const COUNTED: Recorded = Recorded { jobs: 4_000, depth: 2, runners: TOLD_OF_EACH, rows: &[
    (8, [5.67, 2.20], [65.61, 14.72, 34.32, 3.16], [92.61, 0.00, 31.96], [(22.68, 0.0), (264.57, 4000.0), (143.83, 2000.0), (92.60, 1010.0), (22.71, 0.0)]),
    (16, [8.44, 2.40], [66.33, 14.72, 35.19, 4.27], [72.51, 17.76, 19.83], [(33.75, 0.0), (263.38, 4000.0), (150.55, 2000.0), (119.82, 1367.0), (33.80, 0.0)]),
    (64, [16.76, 1.84], [66.56, 14.74, 36.14, 2.93], [119.70, 0.00, 6.50], [(67.05, 0.0), (262.22, 4000.0), (165.77, 2000.0), (170.81, 2009.0), (67.09, 0.0)]),
    (256, [50.15, 2.31], [65.57, 14.79, 35.44, 2.55], [90.53, 0.00, 77.79], [(200.58, 0.0), (266.92, 4000.0), (237.62, 2000.0), (253.32, 2555.0), (200.62, 0.0)]),
    (1024, [73.02, 2.31], [68.66, 14.97, 37.77, 3.13], [141.95, 0.00, 35.23], [(292.07, 0.0), (284.63, 4000.0), (284.43, 2000.0), (284.21, 3141.0), (292.63, 24.0)]),
    (4096, [272.20, 2.70], [80.26, 15.52, 44.02, 4.50], [112.58, 40.15, 80.65], [(1088.27, 0.0), (354.07, 4000.0), (717.04, 2000.0), (446.13, 3472.0), (362.75, 3984.0)]),
    (8192, [537.76, 2.42], [89.86, 16.55, 49.47, 3.69], [157.39, 55.01, 76.05], [(2151.07, 0.0), (429.22, 4000.0), (1290.47, 2000.0), (571.15, 3668.0), (435.62, 3990.0)]),
    (16384, [1069.14, 3.31], [109.94, 19.21, 61.29, 5.10], [277.97, 28.72, 82.81], [(4276.53, 0.0), (576.90, 4000.0), (2428.32, 2000.0), (807.25, 3751.0), (581.32, 3998.0)]),
] };

/// Drivers as they were before requests waited in their queue.
const TOLD_OF_EACH: Runners = Runners { count: 2, together: 1 };

/// `docs/results/guest/simulated-counted.json.gz` of 25 November: the same with a driver in whose queue six more requests wait.
#[rustfmt::skip]
const WAITING: Recorded = Recorded { jobs: 4_000, depth: 8, runners: Runners { count: 2, together: 4 }, rows: &[
    (8, [5.67, 2.22], [54.69, 14.99, 33.68, 7.83], [78.39, 102.69, 71.37], [(22.69, 0.0), (234.08, 4000.0), (121.70, 2000.0), (79.75, 1008.0), (22.68, 0.0)]),
    (16, [8.44, 2.89], [59.16, 14.99, 37.35, 2.37], [53.99, 110.80, 0.00], [(33.76, 0.0), (221.33, 4000.0), (128.78, 2000.0), (113.00, 1558.0), (33.81, 0.0)]),
    (64, [16.77, 2.23], [55.28, 15.01, 34.05, 9.05], [74.30, 102.06, 6.52], [(67.06, 0.0), (225.58, 4000.0), (145.57, 2000.0), (151.21, 2013.0), (67.10, 0.0)]),
    (256, [50.15, 2.30], [60.39, 15.06, 37.96, 8.99], [82.93, 94.09, 76.19], [(200.59, 0.0), (246.41, 4000.0), (215.47, 2000.0), (224.47, 2739.0), (201.38, 30.0)]),
    (1024, [73.02, 2.32], [56.85, 15.28, 34.53, 9.01], [100.37, 106.15, 73.88], [(292.10, 0.0), (251.94, 4000.0), (265.04, 2000.0), (256.62, 2847.0), (253.30, 3992.0)]),
    (4096, [272.22, 2.58], [68.32, 16.16, 40.85, 8.18], [141.97, 78.02, 52.55], [(1088.86, 0.0), (312.11, 4000.0), (693.57, 2000.0), (429.93, 3338.0), (305.87, 4000.0)]),
    (8192, [537.91, 2.55], [77.50, 17.33, 45.67, 9.07], [179.46, 100.85, 48.69], [(2151.11, 0.0), (384.27, 4000.0), (1263.06, 2000.0), (552.35, 3597.0), (376.86, 4000.0)]),
    (16384, [1069.15, 2.99], [97.97, 19.67, 56.09, 8.78], [313.19, 90.07, 33.45], [(4276.03, 0.0), (529.21, 4000.0), (2400.99, 2000.0), (780.40, 3725.0), (533.65, 4000.0)]),
] };

/// Live the shared queue sends 231 to 1211 jobs of 8 B to the module and 1858 to 3153 of 1 KiB; of 4 and 8 KiB 3243 to 3718 and 3590 to
/// 3768, of which the medians are the less usual end: in another guest they were 3686 and 3753, near what is predicted (docs/results/README.md).
const OFF_WAITING: [(u64, Policy); 4] = [
    (8, Policy::SharedQueue),
    (1_024, Policy::SharedQueue),
    (4_096, Policy::SharedQueue),
    (8_192, Policy::SharedQueue),
];
