//! The table that workers ask: what does an idle worker take?
//!
//! A look walks over the classes in the planner's order to the first that waits, and adds up what waits of all of
//! them for the question who would be done first.

use super::input::{Prospect, Station};
use super::rows::{Order, RestOfWorkers, Row, float};
use super::tuning::TUNING;
use crate::policy::objective::Objective;
use crate::units::Nanos;

/// What an idle worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Takes jobs of this lane.
    Take {
        /// The lane.
        lane: usize,
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
    pub(super) stations: Vec<Station>,
    /// The price of a core to a single request.
    pub(super) price_of_one: f64,
    cpu_workers: u32,
    share: f64,
    core_order: Vec<usize>,
    orders: Vec<Order>,
    /// By lane: what everybody but one core could do of it.
    without_core: Vec<RestOfWorkers>,
    /// By module, then lane: what everybody but that module could do of it. Beside each other, for a look-up reads
    /// all lanes.
    without_module: Vec<Vec<RestOfWorkers>>,
    /// Jobs of a lane that must wait for cores to leave them to modules altogether: enough to keep those busy.
    left_min: u32,
}

impl Table {
    pub(super) fn new(
        prospect: &Prospect,
        lambda: f64,
        rows: Vec<Row>,
        core_order: Vec<usize>,
        orders: Vec<Order>,
    ) -> Self {
        let modules = 0..prospect.stations.len();
        let without = |module: usize| rows.iter().map(|row| row.without_module[module]).collect();
        Self {
            without_core: rows.iter().map(|row| row.without_core).collect(),
            without_module: modules.map(without).collect(),
            rows,
            lambda,
            price_of_one: match prospect.objective {
                Objective::Latency => lambda * TUNING.latency_price,
                Objective::Throughput | Objective::Cpu => lambda,
            },
            stations: prospect.stations.clone(),
            cpu_workers: prospect.cpu_workers,
            share: prospect.share,
            core_order,
            orders,
            left_min: match prospect.objective {
                Objective::Cpu => 1,
                _ => prospect.stations.iter().map(|station| TUNING.left_per_request * station.depth).sum(),
            },
        }
    }

    /// The price of a core that it was made with.
    #[must_use]
    pub const fn lambda(&self) -> f64 {
        self.lambda
    }

    /// What an idle core takes. `waiting` gives the jobs that wait of a lane; `modules_busy` the time until a
    /// module has done what it holds.
    #[must_use]
    pub fn core_takes(&self, waiting: impl Fn(usize) -> u32, modules_busy: Nanos) -> Choice {
        let mut waits = self.core_order.iter().filter(|&&lane| waiting(lane) > 0).peekable();
        let is_empty = waits.peek().is_none();
        let is_left = |lane: usize| {
            let is_enough = || self.rows[lane].is_left_to_modules && waiting(lane) >= self.left_min;
            self.is_left_whole(lane) || is_enough()
        };
        let Some(&lane) = waits.find(|&&lane| !is_left(lane)) else {
            return if is_empty { Choice::Leave } else { Choice::AskAgainIn(TUNING.wait_for_plan) };
        };
        let row = &self.rows[lane];
        let take = Choice::Take { lane, is_try: false };
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

    /// What module `module` takes. `cores_busy` is the time until a core has done what it holds.
    ///
    /// # Panics
    ///
    /// Where there is no such module.
    #[must_use]
    pub fn module_takes(&self, module: usize, waiting: impl Fn(usize) -> u32, cores_busy: Nanos) -> Choice {
        let order = &self.orders[module];
        let mut awaits_cost = false;
        for &lane in &order.tries {
            match (self.rows[lane].c, waiting(lane)) {
                (_, 0) => {}
                (None, _) => awaits_cost = true,
                (Some(_), count)
                    if self.is_worth_a_try(lane, count) && !self.is_last(lane, module, &waiting) =>
                {
                    return Choice::Take { lane, is_try: true };
                }
                (Some(_), _) => {}
            }
        }
        if let Some(&lane) = order.gains.iter().find(|&&lane| waiting(lane) > 0) {
            let rest = self.rows[lane].cells[module].latency - float(cores_busy) / self.share;
            return match done_before(rest, &waiting, &self.without_module[module]) {
                // Not for good: the cores may think otherwise once the module has nothing to do.
                Some(others) => Choice::AskAgainIn(wait(others)),
                None => Choice::Take { lane, is_try: false },
            };
        }
        match awaits_cost {
            true => Choice::AskAgainIn(TUNING.wait_for_cost),
            false => Choice::Leave,
        }
    }

    /// Says how much core time jobs of each lane took so far: where little waits at a time, that is what makes it
    /// worth while to find out what a module costs.
    #[must_use]
    pub fn having_worked(mut self, worked: impl Fn(usize) -> Nanos) -> Self {
        for (lane, row) in self.rows.iter_mut().enumerate() {
            row.worked = float(worked(lane));
        }
        self
    }

    /// Whether `module` may be tried for a lane of which so many jobs wait: trying is a small part of the work.
    ///
    /// # Panics
    ///
    /// Where there is no such lane or module.
    #[must_use]
    pub fn wants_try(&self, lane: usize, module: usize, count: u32) -> bool {
        count > 0 && self.rows[lane].cells[module].tries_left > 0 && self.is_worth_a_try(lane, count)
    }

    /// Whether a request that comes alone and stays on the core ([`Self::route`]) is wanted at `module` to learn what it takes there.
    ///
    /// # Panics
    ///
    /// Where there is no such lane or module.
    #[must_use]
    pub fn wants_single_try(&self, lane: usize, module: usize) -> bool {
        let tries_left = match cfg!(mutant = "single_tries_of_what_pays_for_many") {
            true => self.rows[lane].cells[module].tries_left,
            false => self.rows[lane].cells[module].single_tries_left,
        };
        tries_left > 0 && self.is_worth_a_try(lane, 1)
    }

    /// Whether `module` would take a try of a lane while so much waits: it wants one, and it is not known that others would be
    /// done with all that waits before it.
    ///
    /// # Panics
    ///
    /// Where there is no such lane or module.
    #[must_use]
    pub fn takes_try(&self, lane: usize, module: usize, waiting: impl Fn(usize) -> u32) -> bool {
        let is_late = self.is_last(lane, module, &waiting) && !cfg!(mutant = "awake_for_late_tries");
        self.wants_try(lane, module, waiting(lane)) && !is_late
    }

    /// Whether a job of which it is known what it takes there would come last of all that waits: then a try is dear, and only now and then
    /// worth it, for without any nobody would ever learn that it is so no more.
    fn is_last(&self, lane: usize, module: usize, waiting: &impl Fn(usize) -> u32) -> bool {
        let cell = &self.rows[lane].cells[module];
        cell.is_known
            && !cell.is_long_untried
            && done_before(cell.latency, waiting, &self.without_module[module]).is_some()
    }

    fn is_worth_a_try(&self, lane: usize, count: u32) -> bool {
        let row = &self.rows[lane];
        row.c.is_some_and(|c| row.worked + c * f64::from(count) >= float(TUNING.try_work_min))
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

    /// Whether this module may take this lane now.
    #[must_use]
    pub fn is_open_to(&self, lane: usize, module: usize) -> bool {
        self.rows[lane].cells[module].gain > 0.0
    }

    /// Whether cores leave all that waits of a lane to the only module, to the last job.
    #[must_use]
    pub fn is_left_whole(&self, lane: usize) -> bool {
        let row = &self.rows[lane];
        row.is_left_to_modules && row.keeps_all_cores && !cfg!(mutant = "last_ones_shared")
    }

    /// Whether any module may take this lane now.
    #[must_use]
    pub fn is_open(&self, lane: usize) -> bool {
        self.rows[lane].gain > 0.0
    }

    /// Lanes that it was made for: numbers below this.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.rows.len()
    }

    /// Modules that it was made for.
    #[must_use]
    pub fn modules(&self) -> usize {
        self.stations.len()
    }

    /// The price of a core to a single request, which counts when it ends and what it takes of a core.
    #[must_use]
    pub const fn price_of_one(&self) -> f64 {
        self.price_of_one
    }

    /// Time that a job of a lane takes, on a core or on module `module`; nothing where that is not known.
    #[must_use]
    pub fn expected(&self, lane: usize, module: Option<usize>) -> Nanos {
        let Some(row) = self.rows.get(lane) else { return Nanos::ZERO };
        let ns = match module {
            None => row.c.unwrap_or_default(),
            Some(module) => row.cells.get(module).map_or(0.0, |cell| cell.latency),
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
    for (lane, others) in others.iter().enumerate() {
        let count = waiting(lane);
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
