//! Several cores, several modules of different speed, modules with several units.

use evener_core::{Nanos, Objective};
use evener_sim::adaptive::Adaptive;
use evener_sim::engine::{Faults, ModuleSpec, SchedulerSpec};
use evener_sim::lab::{
    Arrivals, Class, CpuSide, ModuleCost, ModulePath, ModuleSide, Opening, Path, Setup, Workload, run,
};

use crate::bench::millis;

/// A module: `d` and `h` in microseconds, units, requests outstanding.
type Module = (u64, u64, u32, u32);

/// Jobs of one class that cost 400 us on a core.
const C_US: u64 = 400;
const JOBS: usize = 6_000;

fn setup(cores: u32, modules: &[Module], jobs: &Workload) -> Setup {
    let side = |&(d, h, units, depth): &Module| ModuleSide {
        spec: ModuleSpec { units, faults: Faults::default() },
        costs: vec![ModuleCost { d: Nanos::from_micros(d), h: Nanos::from_micros(h) }],
        path: ModulePath::DIRECT,
        depth,
        priority: 0,
        hand_over: Nanos::ZERO,
        opening: Opening::default(),
        check_every: 0,
    };
    let mut setup = Setup {
        cores: cores as usize,
        scheduler: SchedulerSpec::linux(250, 300),
        classes: vec![Class { bytes: 8192, c: Nanos::from_micros(C_US) }],
        cpu: CpuSide { workers: cores, nice: 0, cap: None, hand_over: Nanos::ZERO },
        modules: modules.iter().map(side).collect(),
        hogs: 0,
        first: Path::Cpu,
        turn: 0,
        monitor: Nanos::ZERO,
        jitter: 0.05,
        seed: 7,
        end_max: Nanos::from_millis(100_000),
    };
    Adaptive::arrange(&mut setup, jobs);
    setup
}

/// The least time in milliseconds: jobs as fluid, and each module takes what it can in the order of what a job there
/// saves the cores; the least time in which all of it fits.
fn bound_ms(cores: u32, modules: &[Module]) -> f64 {
    let mut modules = modules.to_vec();
    modules.sort_by_key(|&(d, ..)| d);
    let fits = |time: f64| {
        let (mut left, mut core) = (JOBS as f64, 0.0);
        for &(d, h, units, _) in modules.iter().filter(|&&(d, ..)| d < C_US) {
            let most = time / h as f64 * f64::from(units);
            // One thread prepares the module's requests, on one core at a time.
            let jobs = most.min(time / d as f64).min(left);
            left -= jobs;
            core += jobs * d as f64;
        }
        core + left * C_US as f64 <= f64::from(cores) * time
    };
    let (mut low, mut high) = (0.0, JOBS as f64 * C_US as f64);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if fits(middle) { high = middle } else { low = middle }
    }
    high / 1e3
}

#[test]
fn long_work_ends_near_the_least_time_on_any_number_of_cores_and_modules() {
    let fast: Module = (40, 120, 1, 4);
    let slow: Module = (60, 700, 1, 3);
    let wide: Module = (30, 600, 4, 8);
    let dear: Module = (500, 100, 1, 2);
    let cases: [&[Module]; 6] =
        [&[fast], &[fast, slow], &[slow, wide], &[fast, slow, wide], &[wide, dear], &[fast, fast, slow]];
    for cores in [1, 2, 4, 8] {
        for modules in cases {
            let jobs = Workload::new(std::iter::repeat_n(0, JOBS), Arrivals::AtOnce, 0);
            let setup = setup(cores, modules, &jobs);
            let mut policy = Adaptive::new(&setup, Objective::Throughput);
            let report = run(&setup, &jobs, &mut policy).unwrap();
            let (took, bound) = (millis(report.makespan), bound_ms(cores, modules));
            let split: Vec<u32> = report.modules.iter().map(|module| module.worker.jobs).collect();
            println!(
                "{cores} cores, {modules:?}: {took:.1} ms, {:.4} x the bound, {split:?} {:?}",
                took / bound,
                policy.guarded().locks
            );
            assert_eq!(report.lost(), 0);
            assert!(took <= 1.05 * bound, "{cores} cores, {modules:?}: {took} ms, bound {bound} ms");
        }
    }
}
