//! One other program always has something to compute.

use evener_core::Objective;
use evener_core::plan::Policy;
use evener_sim::adaptive::Adaptive;
use evener_sim::lab::run;
use evener_sim::papers::am3358::Means;

use crate::bench::{WORKLOADS, adaptive, arranged, papers, workload};

/// Core time by the threads' clocks, and with interrupts.
fn core_times(means: &Means) -> [f64; 2] {
    [means.crypto_ms, means.crypto_ms + means.interrupt_ms]
}

fn hog_share(means: &Means) -> f64 {
    means.hog_ms / means.makespan_ms
}

#[test]
fn it_takes_less_core_time_than_the_shared_queue() {
    for name in WORKLOADS {
        let pull = papers(name, Policy::SharedQueue, 1);
        let most = match name {
            "1024" => 0.80,
            "mixed_uniform8" => 0.65,
            _ => 1.01,
        };
        for depth in [1, 2] {
            for objective in [Objective::Throughput, Objective::Cpu] {
                let ours = adaptive(name, 1, depth, objective);
                let [clocks, all] = [0, 1].map(|way| core_times(&ours)[way] / core_times(&pull)[way]);
                println!(
                    "{name}, depth {depth}, {objective}: {clocks:.3}, {all:.3} of the shared queue's core time, \
                     {:.3} of its makespan; {:.3} left",
                    ours.makespan_ms / pull.makespan_ms,
                    hog_share(&ours)
                );
                assert!(clocks <= most && all <= most, "{name}, {depth}, {objective}: {clocks}, {all}");
            }
        }
    }
}

#[test]
fn the_other_program_keeps_its_part() {
    for name in WORKLOADS {
        for depth in [1, 2] {
            for (objective, least) in [(Objective::Throughput, 0.28), (Objective::Cpu, 0.45)] {
                let share = hog_share(&adaptive(name, 1, depth, objective));
                assert!(share >= least, "{name}, depth {depth}, {objective}: {share}");
            }
        }
    }
}

/// The simulator's threads keep one nice value for a run; it is the one of the table.
#[test]
fn the_table_asks_for_the_nice_value_that_the_runs_have() {
    for (name, hogs) in [("16384", 0), ("16384", 1), ("mixed_tls", 1), ("64", 1)] {
        let jobs = workload(name);
        let setup = arranged(&jobs, hogs, 1);
        let mut policy = Adaptive::new(&setup, Objective::Throughput);
        run(&setup, &jobs, &mut policy).unwrap();
        assert_eq!(policy.table().unwrap().core_nice(), setup.cpu.nice, "{name}, {hogs}");
    }
}
