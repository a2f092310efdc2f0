//! Costs that are wrong and stay so: what the guard allows is what they may take.

use evener_core::guard::TUNING;
use evener_core::plan::Policy;
use evener_core::{Cost, Nanos, Objective};
use evener_sim::adaptive::Adaptive;
use evener_sim::lab::run;

use crate::bench::{arranged, costs, millis, planned, set_known_cost, workload};

type Lie = (&'static str, fn(Cost) -> Cost);

const LIES: [Lie; 6] = [
    ("c / 10", |cost| Cost { c: Nanos(cost.c.0 / 10), ..cost }),
    ("c * 10", |cost| Cost { c: Nanos(cost.c.0 * 10), ..cost }),
    ("d / 10", |cost| Cost { d: Nanos(cost.d.0 / 10), ..cost }),
    ("d * 10", |cost| Cost { d: Nanos(cost.d.0 * 10), ..cost }),
    ("h / 10", |cost| Cost { h: Nanos(cost.h.0 / 10), ..cost }),
    ("h * 10", |cost| Cost { h: Nanos(cost.h.0 * 10), ..cost }),
];

/// What the guard allows: 2 % or 5 ms in each class, and a tail of one job on each path.
fn allowed(name: &str, cpu_only_ms: f64) -> f64 {
    let classes =
        workload(name).jobs().iter().map(|job| job.class).collect::<std::collections::BTreeSet<_>>();
    let tail = 2.0;
    tail + (classes.len() as f64 * millis(TUNING.loss_allowed)).max(0.02 * cpu_only_ms)
}

#[test]
fn a_policy_with_wrong_costs_loses_no_more_than_the_guard_allows() {
    for name in ["64", "1024", "4096", "16384", "mixed_uniform8"] {
        for depth in [1, 2] {
            let jobs = workload(name);
            let setup = arranged(&jobs, 0, depth);
            let alone = millis(planned(&setup, &jobs, Policy::CpuOnly).makespan);
            for (word, lie) in LIES {
                let mut policy = Adaptive::new(&setup, Objective::Throughput);
                for (bytes, cost) in costs() {
                    set_known_cost(&mut policy, 0, bytes, lie(cost));
                }
                policy.estimator().freeze();
                let took = millis(run(&setup, &jobs, &mut policy).unwrap().makespan);
                println!(
                    "{name}, depth {depth}, {word}: {took:.1} ms, CPU only {alone:.1} ms, {:?}",
                    policy.guarded()
                );
                assert!(
                    took <= alone + allowed(name, alone),
                    "{name}, {depth}, {word}: {took} ms, {alone} ms"
                );
            }
        }
    }
}
