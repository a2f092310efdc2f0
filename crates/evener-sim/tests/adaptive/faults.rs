//! A module that becomes slow or goes away in mid-run, against a policy that knew it.

use evener_core::{Cost, Nanos, Objective};
use evener_sim::adaptive::Adaptive;
use evener_sim::engine::Slowdown;
use evener_sim::lab::{Choice, Chooser, Report, Sample, Setup, View, run};

use crate::bench::{arranged, costs, set_known_cost, workload};

/// The policy with the true costs from the start, and with the new ones at a change.
struct Informed {
    policy: Adaptive,
    at: Nanos,
    change: Option<Change>,
}

#[derive(Clone, Copy)]
enum Change {
    Slower(u64),
    Lost,
}

impl Informed {
    fn new(setup: &Setup, at: Nanos, change: Change) -> Self {
        let mut policy = Adaptive::new(setup, Objective::Throughput);
        for (bytes, cost) in costs() {
            set_known_cost(&mut policy, 0, bytes, cost);
        }
        policy.estimator().freeze();
        policy.unguarded();
        Self { policy, at, change: Some(change) }
    }

    fn look(&mut self, now: Nanos) {
        let Some(change) = self.change.take_if(|_| now >= self.at) else { return };
        match change {
            Change::Lost => self.policy.lose(0),
            Change::Slower(factor) => {
                for (bytes, cost) in costs() {
                    set_known_cost(&mut self.policy, 0, bytes, Cost { h: Nanos(cost.h.0 * factor), ..cost });
                }
            }
        }
    }
}

impl Chooser for Informed {
    fn cpu_takes(&mut self, index: u32, view: &View<'_>) -> Choice {
        self.look(view.now);
        self.policy.cpu_takes(index, view)
    }

    fn module_takes(&mut self, index: u32, view: &View<'_>) -> Choice {
        self.look(view.now);
        self.policy.module_takes(index, view)
    }

    fn observe(&mut self, sample: &Sample) {
        self.policy.observe(sample);
    }

    fn lose(&mut self, index: u32) {
        self.policy.lose(index);
    }
}

/// The run of a policy that learns, and of one that knew.
fn both(name: &str, depth: u32, change: Change) -> [Report; 2] {
    let jobs = workload(name);
    let mut setup = arranged(&jobs, 0, depth);
    let at = Nanos::from_millis(200);
    // A caller that knows this submits nothing that would fail: a job of the largest size takes less than 1 ms.
    let (faults, known_at) = (&mut setup.modules[0].spec.faults, at - Nanos::from_millis(1));
    match change {
        Change::Lost => faults.lost_at = Some(at),
        Change::Slower(factor) => faults.slow = Some(Slowdown { at, factor }),
    }
    let learner = run(&setup, &jobs, &mut Adaptive::new(&setup, Objective::Throughput)).unwrap();
    [learner, run(&setup, &jobs, &mut Informed::new(&setup, known_at, change)).unwrap()]
}

#[test]
fn a_module_that_becomes_slow_or_goes_away_costs_little_more_than_had_it_been_known_and_no_job() {
    for name in ["4096", "8192", "16384", "mixed_uniform8", "mixed_tls"] {
        for depth in [1, 2] {
            for (change, word) in [(Change::Slower(10), "slower"), (Change::Lost, "lost")] {
                let [learner, knower] = both(name, depth, change);
                let ratio = learner.makespan.as_secs_f64() / knower.makespan.as_secs_f64();
                println!("{name}, depth {depth}, {word}: {ratio:.3} x {}", knower.makespan);
                assert_eq!((learner.lost(), learner.jobs.len()), (0, 4000), "{name}, {word}");
                assert!(ratio <= 1.10, "{name}, depth {depth}, {word}: {ratio}");
            }
        }
    }
}

#[test]
fn a_module_that_was_lost_gets_nothing_any_more() {
    let [learner, _] = both("16384", 2, Change::Lost);
    assert!(learner.modules[0].worker.jobs > 100 && learner.modules[0].failed <= 2, "{:?}", learner.modules);
}
