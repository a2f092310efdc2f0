//! What the adaptive policy takes of its own time: a plan and its look-ups, with 64 modules, 2 cores and 8 classes.
//! `cargo bench -p evener-core`; asked are 50 us for a plan and 10 ns for a look-up.
#![allow(clippy::print_stdout, reason = "says what was measured")]

use std::hint::black_box;
use std::time::Instant;

use evener_core::plan::adaptive::{Lane, Offer, Prospect, Queue, Station, plan};
use evener_core::{Nanos, Objective};

const MODULES: usize = 64;
const LANES: u64 = 8;

/// Classes of growing size; modules that differ a little, and the smaller half of the classes does not pay on them.
fn prospect() -> Prospect {
    let offer = |lane: u64, module: u64| Offer::Known {
        d: Nanos(60_000 + 8_000 * lane + 100 * module),
        h: Nanos(20_000 * (lane + 1) + 300 * module),
        tries_left: 0,
    };
    let lane = |lane: u64| Lane {
        c: Some(Nanos(20_000 * (lane + 1))),
        waiting: 100,
        offers: (0..MODULES as u64).map(|module| offer(lane, module)).collect(),
    };
    Prospect {
        objective: Objective::Throughput,
        cpu_workers: 2,
        share: 1.0,
        lambda: 1.0,
        stations: vec![Station { units: 1, depth: 2 }; MODULES],
        lanes: (0..LANES).map(lane).collect(),
    }
}

/// Prints the least of several means, in nanoseconds: the one that was disturbed least.
fn time<T>(name: &str, rounds: u32, mut once: impl FnMut() -> T) {
    let mean = |_| {
        let start = Instant::now();
        for _ in 0..rounds {
            black_box(once());
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(rounds)
    };
    let least = (0..300).map(mean).fold(f64::INFINITY, f64::min);
    println!("{name:28} {least:10.1} ns");
}

fn main() {
    let prospect = prospect();
    let table = plan(&prospect);
    time("plan", 20, || plan(black_box(&prospect)));
    for (name, waiting) in [("many wait", [100_u32; 8]), ("one waits", [0, 0, 0, 0, 0, 0, 0, 1])] {
        let waiting = black_box(waiting);
        time(&format!("core takes, {name}"), 20_000, || {
            black_box(&table).core_takes(|lane| waiting[lane], black_box(Nanos::ZERO))
        });
        time(&format!("module takes, {name}"), 20_000, || {
            black_box(&table).module_takes(black_box(13), |lane| waiting[lane], black_box(Nanos::ZERO))
        });
    }
    let queues = [Queue::default()];
    time("route, one module", 20_000, || black_box(&table).route(black_box(7), black_box(&queues)));
}
