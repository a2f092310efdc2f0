//! What a process has learned of its modules, and what that says of the next request: guard, costs and tables, written under one lock.
//!
//! [`Learned::choose`] decides where a request goes, in this order:
//!
//! | what holds | where it goes |
//! |---|---|
//! | the guard keeps its class, or takes this one to compare | to its core |
//! | its caller has others under way | to the first module that takes any |
//! | its class is being tried, and the module takes one | to that module |
//! | the table says that a module is the shortest way | to that module |
//! | a module's cost is not known and a try is due | to that module, as a trial |
//! | nothing of this | to its core |
//!
//! What it took is booked by `booking.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use evener_core::estimate::width_class;
use evener_core::guard::BySize;
use evener_core::plan::adaptive::{
    self, ClassInput, CostOnModule, ModuleCapacity, PlanInput, Queue, Route, Table, plan,
};
use evener_core::{Class, Estimator, Method, Nanos, Objective};

use super::super::shared_module::SharedModule;
use super::choice::{Choice, Chosen};
use super::sampling::Sampling;
use super::trial::Trial;
use super::tuning::TUNING;
use super::{Concurrency, KINDS, Query};
use crate::core_price::{self, contested, scaled};

/// What was learned.
pub(super) struct Learned {
    pub(super) guard: BySize,
    pub(super) estimator: Estimator,
    /// With when it was made.
    pub(super) tables: BTreeMap<Class, (Nanos, Arc<Table>)>,
    /// Core time that cores spent on a class.
    pub(super) worked: BTreeMap<Class, Nanos>,
    /// The same at the last try that began, for what others told of needs no more than one in that much work.
    worked_at_try: BTreeMap<Class, Nanos>,
    /// Core time of requests beside others of their thread, as far as it was taken or is known by that.
    pub(super) worked_beside: Nanos,
    /// Part of a core that a thread gets.
    pub(super) share: f64,
    pub(super) sampling: Sampling,
    /// Classes that are being tried.
    pub(super) trials: BTreeMap<Class, Trial>,
    /// By module: whether a request was there. The first one makes the driver, its threads and a key, and teaches nothing.
    pub(super) is_warm: Vec<bool>,
}

impl Learned {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Self {
            guard: BySize::new(KINDS),
            estimator: Estimator::default(),
            tables: BTreeMap::new(),
            worked: BTreeMap::new(),
            worked_at_try: BTreeMap::new(),
            worked_beside: Nanos::ZERO,
            share: 1.0,
            sampling: Sampling::default(),
            trials: BTreeMap::new(),
            is_warm: Vec::new(),
        }
    }

    /// After so many that followed the last one.
    pub(super) fn choose(&mut self, query: &Query<'_>, followed: u32, now: Nanos) -> Choice {
        self.estimator.make_space_for(query.ahead.len());
        if !self.tables.contains_key(&query.class) {
            self.believe_others(query, now);
        }
        let is_locked = self.guard.is_locked(query.size, now);
        if self.guard.stays_after(query.size, followed, now) {
            return if is_locked { Choice::Inline } else { Choice::Control };
        }
        if !query.concurrency.is_alone() {
            let takes = |module: &usize| query.ahead[*module].is_some() && self.may_begin(query, *module);
            let module = (0..query.ahead.len()).find(takes);
            return module
                .map_or(Choice::Inline, |module| Choice::Module(Chosen { module, ..Chosen::default() }));
        }
        let table = self.table(query, now);
        let on_core = table.expected(0, None);
        let expected = |module: usize| table.expected(0, Some(module));
        let chosen = |module: usize| Choice::Module(Chosen { module, expected: expected(module), on_core });
        let own_wait = |(module, ahead): (usize, &Option<u32>)| Queue {
            wait: Nanos(expected(module).0.saturating_mul(ahead.unwrap_or_default().into())),
        };
        let queues: Vec<Queue> = query.ahead.iter().enumerate().map(own_wait).collect();
        if !self.may_go(query, &table, &queues) && !cfg!(mutant = "others_always_asked") {
            return Choice::Inline;
        }
        let wait = |(module, own): (usize, &Queue)| {
            let of_all = query.shared(module).map(SharedModule::expected_start).unwrap_or_default();
            (of_all <= on_core, Queue { wait: own.wait.max(of_all) })
        };
        let (is_near, queues): (Vec<bool>, Vec<Queue>) = queues.iter().enumerate().map(wait).unzip();
        // Not even a try waits behind other processes for longer than a core takes.
        let takes = |module: &usize| query.ahead[*module].is_some() && is_near[*module];
        if let Some(trial) = self.trials.get(&query.class).filter(|trial| takes(&trial.module)) {
            return chosen(trial.module);
        }
        if let Route::Module(module) = table.route(0, &queues) {
            if takes(&module) {
                return chosen(module);
            }
        }
        let wants_try = |module: &usize| takes(module) && self.wants_try(query, &table, *module);
        let Some(module) = (0..queues.len()).find(wants_try) else { return Choice::Inline };
        self.tables.remove(&query.class);
        if !self.estimator.tries(module, query.class, now) {
            return Choice::Inline;
        }
        self.trials.insert(query.class, Trial::new(module, now));
        let worked = self.worked.get(&query.class).copied().unwrap_or_default();
        self.worked_at_try.insert(query.class, worked);
        chosen(module)
    }

    /// Whether the request could go to a module if no other process had any: what others have there makes it wait longer and never less, so of a request that stays by this process's own costs none of them
    /// else is asked.
    fn may_go(&self, query: &Query<'_>, table: &Table, queues: &[Queue]) -> bool {
        let takes = |module: &usize| query.ahead[*module].is_some();
        self.trials.contains_key(&query.class)
            || matches!(table.route(0, queues), Route::Module(_))
            || (0..queues.len()).filter(takes).any(|module| self.wants_try(query, table, module))
    }

    /// Whether a try is due there, and worth it.
    fn wants_try(&self, query: &Query<'_>, table: &Table, module: usize) -> bool {
        table.wants_single_try(0, module) && self.has_earned_try(query, module)
    }

    /// Whether so much was worked since the last try that the next one, at a module that other processes have, too, is a small part of it: a thousand processes that each
    /// try again after a second would do little else.
    fn has_earned_try(&self, query: &Query<'_>, module: usize) -> bool {
        if query.shared(module).is_none() || cfg!(mutant = "tries_by_the_clock") {
            return true;
        }
        let [worked, before] =
            [&self.worked, &self.worked_at_try].map(|of| of.get(&query.class).copied().unwrap_or_default());
        let is_told = self.estimator.on_module(module, query.class).d.samples > 0;
        let least = if is_told && !self.is_warm(module) {
            TUNING.first_try_work
        } else {
            adaptive::TUNING.try_work_min
        };
        worked - before >= least
    }

    /// Whether a request beside others of its thread, of which it is not known what it takes at a module that other processes have, may be this process's first there: that, and what the guard
    /// lets such requests lose until it knows, is a small part of what was worked.
    fn may_begin(&self, query: &Query<'_>, module: usize) -> bool {
        query.concurrency != Concurrency::SameThread
            || query.shared(module).is_none()
            || self.is_warm(module)
            || self.worked_beside >= TUNING.first_beside_work
            || cfg!(mutant = "jobs_go_at_once")
    }

    /// Whether a request was there.
    fn is_warm(&self, module: usize) -> bool {
        self.is_warm.get(module).copied().unwrap_or_default()
    }

    /// Whether the core time of a request that goes to `module` after so many that followed another is to be taken.
    pub(super) fn is_sampled(&mut self, query: &Query<'_>, module: usize, followed: u32) -> bool {
        let is_due = self.sampling.count_routed(1 + followed);
        let samples = self.estimator.on_module(module, query.class).d.samples;
        let is_tried = self.trials.contains_key(&query.class);
        !query.concurrency.is_alone() || is_tried || samples < TUNING.sampled_first || is_due
    }

    /// The table in force for the class.
    fn table(&mut self, query: &Query<'_>, now: Nanos) -> Arc<Table> {
        let class = query.class;
        if let Some((made, table)) = self.tables.get(&class) {
            if now - *made < TUNING.table_age_max && table.modules() == query.ahead.len() {
                return Arc::clone(table);
            }
        }
        self.believe_others(query, now);
        let bytes = *class.bytes().end().min(&(2 << 20));
        let on_module = |module: usize| {
            let tries_left = self.estimator.tries_left(module, class, now);
            match self.estimator.on_module(module, class).at(bytes) {
                // A try is made whatever else waits.
                Some((d, h)) => CostOnModule::Known { d, h, tries_left, is_long_untried: true },
                None => CostOnModule::Unknown { tries_left },
            }
        };
        let class_input = ClassInput {
            c: self.estimator.c(class, bytes, 1),
            waiting: 1,
            on_modules: (0..query.ahead.len()).map(on_module).collect(),
        };
        let plan_input = PlanInput {
            objective: Objective::Throughput,
            cpu_workers: 1,
            share: self.share.max(core_price::TUNING.share_min),
            lambda: contested(self.share),
            yields: false,
            capacities: vec![ModuleCapacity { units: 1, depth: 1 }; query.ahead.len()],
            classes: vec![class_input],
        };
        let worked = self.worked.get(&class).copied().unwrap_or_default();
        let table = Arc::new(plan(&plan_input).having_worked(|_| worked));
        self.tables.insert(class, (now, Arc::clone(&table)));
        table
    }

    /// Takes what other processes know of modules of which this one knows nothing.
    fn believe_others(&mut self, query: &Query<'_>, now: Nanos) {
        let class = query.class;
        for module in 0..query.ahead.len() {
            let is_new = self.estimator.on_module(module, class).d.samples == 0;
            let shared = query.shared(module).filter(|_| is_new && !cfg!(mutant = "others_not_believed"));
            let Some(known) = shared.and_then(|shared| shared.known(class, TUNING.believed, now)) else {
                continue;
            };
            self.estimator.keep_module(module, class, known.on_module);
            if self.estimator.cpu(class, Method::Plain, 1).is_none() {
                self.estimator.keep_cpu(class, Method::Plain, width_class(1), known.c);
                let c = known.c.at(query.size.bytes).unwrap_or_default();
                self.guard.tell(query.size, c + scaled(c, contested(self.share)));
            }
        }
    }
}
