//! Jobs that come one after the other.

use std::time::Duration;

use evener_core::plan::Policy;
use evener_core::{Nanos, Objective};
use evener_sim::adaptive::Adaptive;
use evener_sim::lab::{Arrivals, CpuSide, Report, Setup, Workload, run};
use evener_sim::random::Random;

use crate::bench::{arranged, class_of, costs, millis, planned};

/// Jobs that come before this time find out what the module takes; the bars are for those behind them.
const FIRST_CONTACT: Nanos = Nanos::from_millis(100);

/// Mean time from coming to end, and what 99 % do not exceed, in milliseconds.
fn latencies(report: &Report) -> [f64; 2] {
    let behind = report.jobs.iter().filter(|job| job.arrived > FIRST_CONTACT);
    let mut spans: Vec<Nanos> = behind.map(|job| job.ended.unwrap().0 - job.arrived).collect();
    spans.sort_unstable();
    let mean = spans.iter().copied().sum::<Nanos>().as_secs_f64() / spans.len() as f64;
    [mean * 1e3, millis(spans[spans.len() * 99 / 100])]
}

fn classes(name: &str) -> Vec<usize> {
    let mut random = Random::new(11);
    let count = if name == "256" { 20_000 } else { 3_000 };
    let sizes: &[u64] = match name {
        "mixed" => &[64, 256, 1024, 4096, 16384],
        _ => &[],
    };
    let one = || match sizes {
        [] => class_of(name.parse().unwrap()),
        sizes => class_of(sizes[usize::try_from(random.below(sizes.len() as u64)).unwrap()]),
    };
    std::iter::repeat_with(one).take(count).collect()
}

/// Mean time between jobs of which a core alone would be busy for `load` of the time.
fn mean_between(classes: &[usize], load: f64) -> Nanos {
    let costs = costs();
    let all: Nanos = classes.iter().map(|&class| costs[class].1.c).sum();
    Duration::from(all).div_f64(load * classes.len() as f64).into()
}

/// Our latencies, and the better of core alone and shared queue in each.
fn both(jobs: &Workload, depth: u32) -> [[f64; 2]; 2] {
    let setup = arranged(jobs, 0, depth);
    let ours = run(&setup, jobs, &mut Adaptive::new(&setup, Objective::Throughput)).unwrap();
    assert_eq!(ours.lost(), 0);
    let setup = Setup { cpu: CpuSide { nice: 0, ..setup.cpu }, ..setup };
    let [core, queue] =
        [Policy::CpuOnly, Policy::SharedQueue].map(|policy| latencies(&planned(&setup, jobs, policy)));
    [latencies(&ours), [core[0].min(queue[0]), core[1].min(queue[1])]]
}

/// What may be worse: 10 %, and 0.05 ms for finding out what the module takes.
fn is_no_worse(ours: f64, best: f64) -> bool {
    ours <= 1.10 * best + 0.05
}

#[test]
fn jobs_that_come_in_time_wait_no_longer_than_with_the_better_of_core_alone_and_shared_queue() {
    for name in ["256", "4096", "16384", "mixed"] {
        let classes = classes(name);
        for load in [0.3, 0.6, 0.9, 1.2] {
            let mean = mean_between(&classes, load);
            let (half, [on, off]) = (Nanos(mean.0 / 2), [20, 20].map(Nanos::from_millis));
            for arrivals in [Arrivals::Poisson { mean }, Arrivals::Bursts { mean: half, on, off }] {
                let jobs = Workload::new(classes.iter().copied(), arrivals, 3);
                for depth in [1, 2] {
                    let [ours, best] = both(&jobs, depth);
                    let what = format!(
                        "{name}, load {load}, depth {depth}, {arrivals:?}: {ours:.3?}, {best:.3?} ms"
                    );
                    println!("{what}");
                    assert!(is_no_worse(ours[0], best[0]) && is_no_worse(ours[1], best[1]), "{what}");
                }
            }
        }
    }
}
