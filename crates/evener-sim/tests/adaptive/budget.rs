//! A share of the core that must not be exceeded over any second.

use evener_core::{Nanos, Objective};
use evener_sim::adaptive::Adaptive;
use evener_sim::lab::{Choice, Chooser, Sample, View, run};

use crate::bench::{arranged, workload};

/// The policy, and when which core time was taken.
struct Metered {
    policy: Adaptive,
    /// When a job ended, when it began, and the core time of both paths and of interrupts.
    taken: Vec<(Nanos, Nanos, Nanos)>,
}

impl Chooser for Metered {
    fn cpu_takes(&mut self, index: u32, view: &View<'_>) -> Choice {
        self.policy.cpu_takes(index, view)
    }

    fn module_takes(&mut self, index: u32, view: &View<'_>) -> Choice {
        self.policy.module_takes(index, view)
    }

    fn observe(&mut self, sample: &Sample) {
        self.taken.push((sample.now, sample.now - sample.wall, sample.core + sample.interrupt));
        self.policy.observe(sample);
    }

    fn lose(&mut self, index: u32) {
        self.policy.lose(index);
    }
}

impl Metered {
    /// The most and the least that any second took, in seconds; windows begin each 10 ms. Of a job that began
    /// before a window or ended behind it, all counts for the most and nothing for the least.
    fn extremes(&self, end: Nanos) -> (f64, f64) {
        let (mut most, mut least) = (0.0_f64, f64::INFINITY);
        let second = Nanos::from_millis(1_000);
        let mut from = Nanos::ZERO;
        while from + second <= end {
            let to = from + second;
            let of = |is_in: &dyn Fn(Nanos, Nanos) -> bool| -> f64 {
                let inside = self.taken.iter().filter(|(ended, began, _)| is_in(*ended, *began));
                inside.map(|(_, _, core)| core.as_secs_f64()).sum()
            };
            most = most.max(of(&|ended, began| ended > from && began < to));
            least = least.min(of(&|ended, began| began >= from && ended <= to));
            from += Nanos::from_millis(10);
        }
        (most, least)
    }
}

#[test]
fn a_budget_is_kept_over_every_second_by_both_paths_and_their_interrupts() {
    for name in ["4096", "16384", "mixed_tls"] {
        for percent in [30, 50, 70] {
            for (hogs, depth) in [(0, 1), (0, 2), (1, 1), (1, 2)] {
                let jobs = workload(name);
                let setup = arranged(&jobs, hogs, depth);
                let mut policy = Adaptive::new(&setup, Objective::Throughput);
                policy.keep_to(percent).unwrap();
                let mut metered = Metered { policy, taken: Vec::new() };
                let report = run(&setup, &jobs, &mut metered).unwrap();
                let (most, least) = metered.extremes(report.makespan);
                let used = report.crypto() + report.interrupts;
                let mean = used.as_secs_f64() / report.makespan.as_secs_f64();
                let what = format!("{name}, {percent} %, {hogs} hogs, depth {depth}");
                println!(
                    "{what}: {:.1} ms, most {most:.4}, least {least:.4}, mean {mean:.4}",
                    report.makespan.as_secs_f64() * 1e3
                );
                let share = f64::from(percent) / 100.0;
                assert!(most <= share + 0.02 && mean <= share + 0.02, "{what}: most {most}, mean {mean}");
                assert!(hogs > 0 || mean >= share - 0.06, "{what}: mean {mean}");
            }
        }
    }
}
