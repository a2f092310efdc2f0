//! Modules that processes share (docs/design/arbiter.md): permits, who has one, who waits, what was learned.

use std::fmt::Write as _;

use evener_arbiter::{Costs, HolderView, Mean, ModuleCount, ModuleView};
use serde::Serialize;

use crate::terminal::columns;
use crate::terminal::units::{self, counted, time};

/// A module, as JSON.
#[derive(Serialize)]
pub(super) struct SharedModuleView<'r> {
    name: &'r str,
    permits: usize,
    /// Requests that were done there, and their bytes.
    requests: u64,
    bytes: u64,
    /// Null where no permit is predicted to come back.
    expected_wait_ns: Option<u64>,
    holders: Vec<Holder<'r>>,
    waiting: Vec<Waiter<'r>>,
    waited: u64,
    timed_out: u64,
    refused_too_long: u64,
    refused_queue_full: u64,
    repaired: u64,
    passed_over: u64,
    costs: Vec<ClassCosts>,
}

#[derive(Serialize)]
struct Holder<'r> {
    pid: u32,
    name: &'r str,
    held_us: u32,
    predicted_ns: u32,
}

#[derive(Serialize)]
struct Waiter<'r> {
    pid: u32,
    name: &'r str,
    weight: u32,
}

/// What single requests of a class take.
#[derive(Serialize)]
struct ClassCosts {
    algorithm: &'static str,
    direction: String,
    bytes: u32,
    samples: u32,
    /// Core time on the core's own path.
    c: Cost,
    /// Core time on the module's path.
    d: Cost,
    /// Time in which the module works and the core is free.
    h: Cost,
}

#[derive(Serialize)]
struct Cost {
    ns: u32,
    deviation_ns: u32,
}

impl From<Mean> for Cost {
    fn from(mean: Mean) -> Self {
        Self { ns: mean.ns, deviation_ns: mean.deviation_ns }
    }
}

impl<'r> SharedModuleView<'r> {
    pub(super) fn new(module: &'r ModuleView) -> Self {
        let count = |wanted| count(module, wanted);
        let holder = |holder: &'r HolderView| Holder {
            pid: holder.process.pid,
            name: &holder.process.name,
            held_us: holder.held_us,
            predicted_ns: holder.predicted_ns,
        };
        let costs = module.costs.iter().map(|(class, Costs { c, d, h, bytes, samples })| ClassCosts {
            algorithm: class.algorithm().name(),
            direction: class.direction().to_string(),
            bytes: *bytes,
            samples: *samples,
            c: (*c).into(),
            d: (*d).into(),
            h: (*h).into(),
        });
        Self {
            name: &module.name,
            permits: module.capacity,
            requests: module.work.requests,
            bytes: module.work.bytes,
            expected_wait_ns: module.expected_wait_ns,
            holders: module.holders.iter().map(holder).collect(),
            waiting: module
                .waiting
                .iter()
                .map(|waiter| Waiter { pid: waiter.pid, name: &waiter.name, weight: waiter.weight })
                .collect(),
            waited: count(ModuleCount::Waited),
            timed_out: count(ModuleCount::TimedOut),
            refused_too_long: count(ModuleCount::TooLong),
            refused_queue_full: count(ModuleCount::Full),
            repaired: count(ModuleCount::Repaired),
            passed_over: count(ModuleCount::PassedOver),
            costs: costs.collect(),
        }
    }
}

/// One of its counts.
pub(super) fn count(module: &ModuleView, wanted: ModuleCount) -> u64 {
    module.counts.iter().find(|(count, _)| *count == wanted).map_or(0, |(_, number)| *number)
}

/// A module, as text: who has it, what was counted, what was learned.
pub(super) fn write(text: &mut String, module: &ModuleView) {
    writeln!(text, "{}", line(module)).expect(TAKES);
    for HolderView { process, predicted_ns, held_us } in &module.holders {
        let (name, predicted) = (columns::plain(&process.name), time(u64::from(*predicted_ns)));
        let held = time(u64::from(*held_us) * 1_000);
        let weight = if process.weight > 1 { format!(", weight {}", process.weight) } else { String::new() };
        writeln!(text, "  held by {} {name} for {held} of {predicted}{weight}", process.pid).expect(TAKES);
    }
    if module.work.requests > 0 {
        let (requests, size) = (counted(module.work.requests, "request"), units::bytes(module.work.bytes));
        writeln!(text, "  {requests} done there, {size}").expect(TAKES);
    }
    let counts = module.counts.iter().filter(|(_, number)| *number > 0);
    let counts: Vec<String> = counts.map(|(count, number)| format!("{number} {}", count.name())).collect();
    if !counts.is_empty() {
        writeln!(text, "  {}", counts.join(", ")).expect(TAKES);
    }
    for (class, Costs { c, d, h, bytes, samples }) in &module.costs {
        let what =
            format!("{} {}, {}", class.algorithm().name(), class.direction(), units::bytes((*bytes).into()));
        let [c, d, h] = [c, d, h].map(|mean| time(mean.ns.into()));
        let samples = counted((*samples).into(), "sample");
        writeln!(text, "  {what:<34} core {c}, beside the module {d} and there {h} ({samples})")
            .expect(TAKES);
    }
}

/// A module in one line.
pub(super) fn line(module: &ModuleView) -> String {
    let (held, waiting) = (module.holders.len(), module.waiting.len());
    let wait = module.expected_wait_ns.map_or_else(|| "nobody knows how long".to_owned(), time);
    let name = columns::plain(&module.name);
    format!(
        "module {name}: {held} of {} permits held, {waiting} waiting, a request waits {wait}",
        module.capacity
    )
}

const TAKES: &str = "a String takes everything";
