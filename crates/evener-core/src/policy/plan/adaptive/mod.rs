//! The adaptive policy: every job where it costs the process least, by what was measured.
//!
//! The path of one plan: a [`PlanInput`] (costs, price of a core, what waits; `input.rs`) -> [`plan`] makes a row for each class
//! (`rows.rs`) -> a [`Table`] that workers ask what to take (`table/mod.rs`) and callers ask where one request goes (`route.rs`), each in a
//! few nanoseconds. A new plan is made every few milliseconds. Pure code: simulator and live system run it alike.
//!
//! `lambda` is the price of a core, `share` the part of a core that a worker gets; `c`, `d` and `h` are costs of a job.
//!
//! | rule | what it says | where |
//! |---|---|---|
//! | R1 gate | a module takes a class only where that leaves more core time than it costs, `lambda d < c`, and enough of it | `rows.rs` |
//! | R2 order | a module takes the greatest gain per time of its own that waits, a core the least; what is unknown first | `rows.rs` |
//! | R3 tail of a core | it begins nothing that the others would finish sooner | `table/mod.rs` |
//! | R4 tail of a module | it begins nothing that the others would finish sooner | `table/mod.rs` |
//! | R5 saturation | cores leave to modules what these do for less, where module paths can use all core time | here, `table/mod.rs` |
//! | R6 try | an unknown class is sent to a module a few times, one that does not pay now and then | `table/tries.rs`, [`estimate`](crate::estimate) |
//! | R7 route | one request goes where `wait + service + price core time` is least | `route.rs` |
//! | R8 giving way | own CPU workers go behind the modules' threads | `table/mod.rs` |
//! | R9 fair cap | beside other programs the process takes little more than a fair share of the cores | here |
//! | R10 grain | how much a core claims at a time, how old a plan may be, how much of a rest is remembered | callers |
//!
//! `docs/design/adaptive.md` has the formulas, the reasons and the ways not taken. The numbers stand in `tuning.rs`, each with
//! its rule, and in a table of that document.

mod input;
mod route;
mod rows;
mod table;
mod tuning;

pub use input::{ClassInput, CostOnModule, ModuleCapacity, PlanInput};
pub use route::{Queue, Route};
pub use table::{Choice, Table};
pub use tuning::{TUNING, Tuning};

use self::rows::{Cell, Order, RestOfWorkers, Row, float, row};
use crate::policy::objective::Objective;
use crate::units::Nanos;

/// The part of the cores, in per cent, beyond which CPU workers of a process with a fair `share` (1 where nothing
/// competes) begin nothing: a [`Budget`](crate::policy::budget::Budget) to which both paths are charged. Modules' workers
/// go on, for they spend less; but for the least effect on other programs they keep to it too.
#[must_use]
pub fn cap_percent(objective: Objective, share: f64) -> u32 {
    let cap = match objective {
        Objective::Cpu => share,
        Objective::Throughput | Objective::Latency => share * TUNING.over_fair_max,
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 1..=100")]
    let percent = (cap * 100.0).round().clamp(1.0, 100.0) as u32;
    percent
}

/// `d` of a job on a module beside the only core, with what is of no use to others beside it. `h` of several outstanding is the time of
/// all.
#[must_use]
pub fn all_of_turn(d: Nanos, h: Nanos, depth: u32) -> Nanos {
    let turn = if depth > 1 { d.max(Nanos(h.0 / u64::from(depth))) } else { d + h };
    let is_left =
        d.as_secs_f64() < (1.0 - TUNING.of_use) * turn.as_secs_f64() || cfg!(mutant = "crumbs_of_use");
    if is_left { d } else { turn }
}

/// Makes the plan.
///
/// # Panics
///
/// Where a class has not its costs on each module.
#[must_use]
pub fn plan(plan_input: &PlanInput) -> Table {
    assert!(
        plan_input.classes.iter().all(|class| class.on_modules.len() == plan_input.capacities.len()),
        "a class has its costs on each module"
    );
    let lambda = price(plan_input);
    let mut rows: Vec<Row> = plan_input.classes.iter().map(|class| row(plan_input, lambda, class)).collect();
    let mut core_order: Vec<usize> = (0..rows.len()).collect();
    // What is unknown first: everything else waits for its cost.
    core_order.sort_by(|&a, &b| rows[a].core_rank().total_cmp(&rows[b].core_rank()));
    let orders: Vec<Order> =
        (0..plan_input.capacities.len()).map(|module| Order::new(&rows, module)).collect();
    let leaves_to_modules =
        plan_input.objective == Objective::Cpu || is_saturated(plan_input, lambda, &rows, &orders);
    let cores = cores(plan_input);
    for row in &mut rows {
        row.is_left_to_modules = leaves_to_modules && row.gain > 0.0;
        // Of one module: with several it is not known which will take it.
        let takes_all = |cell: &Cell| cell.gain > 0.0 && cell.path().core_use >= TUNING.saturated * cores;
        row.keeps_all_cores =
            row.is_left_to_modules && row.cells.len() == 1 && row.cells.iter().all(takes_all);
        if row.keeps_all_cores && !cfg!(mutant = "last_ones_left_by_both") {
            row.without.module = vec![RestOfWorkers { drain: f64::INFINITY, least: f64::INFINITY }];
        }
    }
    Table::new(plan_input, lambda, rows, core_order, orders)
}

/// Cores that the threads which run jobs get.
fn cores(plan_input: &PlanInput) -> f64 {
    plan_input.share * f64::from(plan_input.cpu_workers)
}

/// Whether the module paths can use all core time that the process gets: then a core that runs a job which a
/// module does for less only keeps the module's path from it. Where cores do not give way, also whether the paths do more
/// jobs by themselves than paths and cores together where each thread gets its fair part of the cores.
fn is_saturated(plan_input: &PlanInput, lambda: f64, rows: &[Row], orders: &[Order]) -> bool {
    if lambda < 1.0 || plan_input.classes.iter().any(|class| class.waiting > 0 && class.c.is_none()) {
        return false;
    }
    // What each module would work on now.
    let next = |(module, order): (usize, &Order)| {
        let class = order.gains.iter().find(|&&class| plan_input.classes[class].waiting > 0);
        class.map(|&class| (&rows[class].cells[module], rows[class].c.unwrap_or(f64::INFINITY)))
    };
    let paths: Vec<(&Cell, f64)> = orders.iter().enumerate().filter_map(next).collect();
    let wanted: f64 = paths.iter().map(|(cell, _)| cell.path().core_use).sum();
    let cores = cores(plan_input);
    wanted >= TUNING.saturated * cores || !plan_input.yields && are_better_alone(&paths, cores)
}

/// Whether module paths do more jobs where cores leave them all core time than where both share it fairly, as threads of one
/// priority do. `paths` are what they would work on, with its cost on a core.
fn are_better_alone(paths: &[(&Cell, f64)], cores: f64) -> bool {
    let threads = cores + float(Nanos(paths.len() as u64));
    let fair = cores / threads;
    let [mut alone, mut beside, mut left] = [0.0, 0.0, cores];
    for (cell, _) in paths {
        let gets = cell.path().core_use.min(fair);
        alone += cell.path().core_use / cell.path().d.max(1.0);
        beside += gets / cell.path().d.max(1.0);
        left -= gets;
    }
    let c = paths.iter().map(|(_, c)| *c).fold(f64::INFINITY, f64::min);
    !paths.is_empty() && alone > beside + left / c && !cfg!(mutant = "fair_parts_ignored")
}

/// For the least effect on other programs core time has its full price even where a core is idle.
fn price(plan_input: &PlanInput) -> f64 {
    match plan_input.objective {
        Objective::Cpu => 1.0,
        Objective::Throughput | Objective::Latency => plan_input.lambda.clamp(0.0, 1.0),
    }
}

#[cfg(test)]
mod tests;
