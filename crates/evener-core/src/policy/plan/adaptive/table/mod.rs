//! The table that workers ask: what does an idle worker take?
//!
//! A look walks over the classes in the planner's order to the first that waits, and adds up what waits of all of
//! them for the question which worker would be done first.
//!
//! | an idle worker finds | and |
//! |---|---|
//! | nothing that waits, or nothing for a module | leaves |
//! | a core: only classes that are left to modules | asks again soon |
//! | a module: a class whose cost there is not known, a try of which is worth it (`table/tries.rs`) | takes one as a try |
//! | that others would be done with all that waits before it had done one (R3, R4) | asks again, the sooner the less they have |
//! | none of this | takes the first class in its order that waits |

mod tries;

use super::input::{ModuleCapacity, PlanInput};
use super::rows::{Order, RestOfWorkers, Row, float};
use super::tuning::TUNING;
use crate::policy::objective::Objective;
use crate::units::Nanos;

/// What an idle worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Takes jobs of this class.
    Take {
        /// The class.
        class: usize,
        /// Whether it is to find out what the class costs: one job at a time, counted against the tries.
        is_try: bool,
    },
    /// Takes nothing now; asks again after this time, or when anything has changed.
    AskAgainIn(Nanos),
    /// Takes nothing of what waits, before more comes or a new plan says otherwise.
    Leave,
}

/// What was planned.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub(super) rows: Vec<Row>,
    pub(super) lambda: f64,
    pub(super) capacities: Vec<ModuleCapacity>,
    /// The price of a core to a single request.
    pub(super) price_of_one: f64,
    cpu_workers: u32,
    share: f64,
    core_order: Vec<usize>,
    orders: Vec<Order>,
    /// By class: what all workers but one core could do of it.
    without_core: Vec<RestOfWorkers>,
    /// By module, then class: what all workers but that module could do of it. Beside each other, for a look-up reads
    /// all lanes.
    without_module: Vec<Vec<RestOfWorkers>>,
    /// Jobs of a class that must wait for cores to leave them to modules altogether: enough to keep those busy.
    left_min: u32,
}

impl Table {
    pub(super) fn new(
        plan_input: &PlanInput,
        lambda: f64,
        rows: Vec<Row>,
        core_order: Vec<usize>,
        orders: Vec<Order>,
    ) -> Self {
        let modules = 0..plan_input.capacities.len();
        let without = |module: usize| rows.iter().map(|row| row.without.module[module]).collect();
        Self {
            without_core: rows.iter().map(|row| row.without.core).collect(),
            without_module: modules.map(without).collect(),
            rows,
            lambda,
            price_of_one: match plan_input.objective {
                Objective::Latency => lambda * TUNING.latency_price,
                Objective::Throughput | Objective::Cpu => lambda,
            },
            capacities: plan_input.capacities.clone(),
            cpu_workers: plan_input.cpu_workers,
            share: plan_input.share,
            core_order,
            orders,
            left_min: match plan_input.objective {
                Objective::Cpu => 1,
                _ => plan_input
                    .capacities
                    .iter()
                    .map(|capacity| TUNING.left_per_request * capacity.depth)
                    .sum(),
            },
        }
    }

    /// The price of a core that it was made with.
    #[must_use]
    pub const fn lambda(&self) -> f64 {
        self.lambda
    }

    /// What an idle core takes. `waiting` gives the jobs that wait of a class; `modules_busy` the time until a
    /// module has done what it holds.
    #[must_use]
    pub fn core_takes(&self, waiting: impl Fn(usize) -> u32, modules_busy: Nanos) -> Choice {
        let mut waits = self.core_order.iter().filter(|&&class| waiting(class) > 0).peekable();
        let is_empty = waits.peek().is_none();
        let is_left = |class: usize| {
            let is_enough = || self.rows[class].is_left_to_modules && waiting(class) >= self.left_min;
            self.is_left_whole(class) || is_enough()
        };
        let Some(&class) = waits.find(|&&class| !is_left(class)) else {
            return if is_empty { Choice::Leave } else { Choice::AskAgainIn(TUNING.wait_for_plan) };
        };
        let row = &self.rows[class];
        let take = Choice::Take { class, is_try: false };
        if row.c.is_none() || row.gain <= 0.0 {
            return take;
        }
        // Whether the others would have done all that waits before this core had done one of them.
        let rest = row.on_shared_core - float(modules_busy);
        match done_before(rest, &waiting, &self.without_core) {
            Some(others) => Choice::AskAgainIn(wait(others + float(modules_busy))),
            None => take,
        }
    }

    /// The class that an idle core takes where there is no other worker; `None` where nothing waits.
    #[must_use]
    pub fn core_takes_alone(&self, waiting: impl Fn(usize) -> u32) -> Option<usize> {
        self.core_order.iter().copied().find(|&class| waiting(class) > 0)
    }

    /// What module `module` takes. `cores_busy` is the time until a core has done what it holds.
    ///
    /// # Panics
    ///
    /// Where there is no such module.
    #[must_use]
    pub fn module_takes(&self, module: usize, waiting: impl Fn(usize) -> u32, cores_busy: Nanos) -> Choice {
        let order = &self.orders[module];
        let mut awaits_cost = false;
        for &class in &order.tries {
            match (self.rows[class].c, waiting(class)) {
                (_, 0) => {}
                (None, _) => awaits_cost = true,
                (Some(_), count)
                    if self.is_worth_a_try(class, count) && !self.is_last(class, module, &waiting) =>
                {
                    return Choice::Take { class, is_try: true };
                }
                (Some(_), _) => {}
            }
        }
        if let Some(&class) = order.gains.iter().find(|&&class| waiting(class) > 0) {
            let rest = self.rows[class].cells[module].path().latency - float(cores_busy) / self.share;
            return match done_before(rest, &waiting, &self.without_module[module]) {
                // Not for good: the cores may think otherwise once the module has nothing to do.
                Some(others) => Choice::AskAgainIn(wait(others)),
                None => Choice::Take { class, is_try: false },
            };
        }
        match awaits_cost {
            true => Choice::AskAgainIn(TUNING.wait_for_cost),
            false => Choice::Leave,
        }
    }

    /// The nice value with which own threads run jobs on cores, so that a module's thread gets the core first: the
    /// greatest where nothing competes, a small one beside other programs, where they would starve; and the usual
    /// one, 0, where no class goes to modules.
    #[must_use]
    pub fn core_nice(&self) -> i32 {
        let is_busy = self.lambda >= 1.0 && self.rows.iter().any(|row| row.gain > 0.0);
        match is_busy {
            true if self.share >= 1.0 => TUNING.nice_to_give_way,
            true => TUNING.nice_beside,
            false => 0,
        }
    }

    /// Threads that run jobs on cores.
    #[must_use]
    pub const fn cpu_workers(&self) -> u32 {
        self.cpu_workers
    }

    /// Whether this module may take this class now.
    #[must_use]
    pub fn is_open_to(&self, class: usize, module: usize) -> bool {
        self.rows[class].cells[module].gain > 0.0
    }

    /// Whether cores leave all that waits of a class to the only module, to the last job.
    #[must_use]
    pub fn is_left_whole(&self, class: usize) -> bool {
        let row = &self.rows[class];
        row.is_left_to_modules && row.keeps_all_cores && !cfg!(mutant = "last_ones_shared")
    }

    /// Whether any module may take this class now.
    #[must_use]
    pub fn is_open(&self, class: usize) -> bool {
        self.rows[class].gain > 0.0
    }

    /// Lanes that it was made for: numbers below this.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.rows.len()
    }

    /// Modules that it was made for.
    #[must_use]
    pub fn modules(&self) -> usize {
        self.capacities.len()
    }

    /// The price of a core to a single request, which counts when it ends and what it takes of a core.
    #[must_use]
    pub const fn price_of_one(&self) -> f64 {
        self.price_of_one
    }

    /// Time that a job of a class takes, on a core or on module `module`; nothing where that is not known.
    #[must_use]
    pub fn expected(&self, class: usize, module: Option<usize>) -> Nanos {
        let Some(row) = self.rows.get(class) else { return Nanos::ZERO };
        let ns = match module {
            None => row.c.unwrap_or_default(),
            Some(module) => row.cells.get(module).map_or(0.0, |cell| cell.path().latency),
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a cost is not below zero"
        )]
        Nanos(ns as u64)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped, and not below zero")]
fn wait(others: f64) -> Nanos {
    Nanos((others / TUNING.looks_in_rest).min(1e9) as u64).clamp(TUNING.wait_min, TUNING.wait_max)
}

/// Time until others would have done everything that waits, if that is below `limit`. It is at least that of the
/// longest job, for a job is not shared. So of two workers only the slower ever leaves a job to the other.
fn done_before(limit: f64, waiting: &impl Fn(usize) -> u32, others: &[RestOfWorkers]) -> Option<f64> {
    let (mut all, mut longest) = (0.0, 0.0_f64);
    for (class, others) in others.iter().enumerate() {
        let count = waiting(class);
        if count > 0 {
            all += f64::from(count) * others.drain;
            longest = longest.max(others.least);
            if all.max(longest) >= limit {
                return None;
            }
        }
    }
    (all.max(longest) < limit && !cfg!(mutant = "tail_rule_off")).then(|| all.max(longest))
}
