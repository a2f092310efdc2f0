//! What the adaptive policy takes of its own time: a plan and its look-ups, with 66 workers (64 modules, 2 cores) and
//! 8 classes.
//! `cargo bench -p evener-decisions`; asked are 50 us for a plan and 10 ns for a look-up.
#![allow(missing_docs, reason = "criterion's macro makes a public function")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use evener_core::plan::adaptive::{ClassInput, CostOnModule, ModuleCapacity, PlanInput, Queue, plan};
use evener_core::{Nanos, Objective};

const MODULES: usize = 64;
const CLASSES: u64 = 8;

/// Classes of growing size; modules that differ a little, and the smaller half of the classes does not pay on them.
fn plan_input() -> PlanInput {
    let on_module = |class: u64, module: u64| CostOnModule::Known {
        d: Nanos(60_000 + 8_000 * class + 100 * module),
        h: Nanos(20_000 * (class + 1) + 300 * module),
        tries_left: 0,
        is_long_untried: false,
    };
    let class = |class: u64| ClassInput {
        c: Some(Nanos(20_000 * (class + 1))),
        waiting: 100,
        on_modules: (0..MODULES as u64).map(|module| on_module(class, module)).collect(),
    };
    PlanInput {
        objective: Objective::Throughput,
        cpu_workers: 2,
        share: 1.0,
        lambda: 1.0,
        yields: true,
        capacities: vec![ModuleCapacity { units: 1, depth: 2 }; MODULES],
        classes: (0..CLASSES).map(class).collect(),
    }
}

fn table(criterion: &mut Criterion) {
    let plan_input = plan_input();
    let table = plan(&plan_input);
    criterion.bench_function("plan", |timer| timer.iter(|| plan(black_box(&plan_input))));
    for (name, waiting) in [("many wait", [100_u32; 8]), ("one waits", [0, 0, 0, 0, 0, 0, 0, 1])] {
        let waiting = black_box(waiting);
        criterion.bench_function(&format!("core takes, {name}"), |timer| {
            timer.iter(|| black_box(&table).core_takes(|class| waiting[class], black_box(Nanos::ZERO)));
        });
        criterion.bench_function(&format!("module takes, {name}"), |timer| {
            timer.iter(|| {
                black_box(&table).module_takes(black_box(13), |class| waiting[class], black_box(Nanos::ZERO))
            });
        });
    }
    let queues = [Queue::default()];
    criterion.bench_function("route, one module", |timer| {
        timer.iter(|| black_box(&table).route(black_box(7), black_box(&queues)));
    });
}

/// Together 10 s: long enough for bounds of a few per cent, short enough to be asked for.
fn short() -> Criterion {
    Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(1))
}

criterion_group! { name = benches; config = short(); targets = table }
criterion_main!(benches);
