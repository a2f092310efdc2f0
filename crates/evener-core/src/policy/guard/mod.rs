//! The regret guard: what routing to modules may lose at most, enforced while it runs.
//!
//! What it is in the literature: a circuit breaker (Nygard, "Release It!", 2007) over each class of jobs, opened by the budget of a
//! conservative bandit (Wu et al., 2016): a way other than the usual one is taken only while what it lost stays within a part of what
//! the usual one would have cost. Control jobs, which stay inline though they need not, measure that.
//!
//! | state of a class | jobs | ends when |
//! |---|---|---|
//! | free (closed) | may be routed but for the controls | more than `loss_allowed`, or one in `loss_share` parts, is lost: locked |
//! | locked (open) | stay inline | `lock_first` is over, twice as long each time: on trial |
//! | on trial (half-open) | may be routed | more than `loss_allowed_on_trial`, or that part, is lost: locked; `trial_jobs` that gained: free |
//!
//! The path of one class: [`Guard::is_locked`] and [`Guard::is_control`] say whether the next job stays inline; [`Guard::control`] takes
//! what inline jobs took, [`Guard::routed`] what routed ones took, [`Guard::failed`] what those took that failed and [`Guard::idled`] what
//! a core waited for a module. What that means for the class stands in `ledger.rs`, the numbers in `tuning.rs`; `by_size.rs` has a guard
//! over requests of any length.
//!
//! The guard knows no estimate and no plan, only what was measured, so that it also catches a wrong planner and a wrong cost. A cost is
//! core time where throughput counts, interrupts included, and time that passed where latency counts; the caller chooses one of them and
//! keeps to it, for control and routed jobs alike.
//!
//! The loss of a class is a sum that never falls below zero: a gain pays back what was lost before it and is forgotten beyond that. A
//! class that could save up credit would earn an hour and then, when its module grows slow, lose for minutes before the guard locked it.

mod by_size;
mod counters;
mod ledger;
mod tuning;

use self::ledger::{Entry, Ledger};
use crate::units::Nanos;

pub use by_size::{BySize, RequestSize};
pub use counters::Counters;
pub use tuning::{TUNING, Tuning};

/// The guard's ledgers, one per class; a class is an index that the caller defines.
#[derive(Clone, Debug)]
pub struct Guard {
    ledgers: Vec<Ledger>,
}

impl Guard {
    /// A guard of `classes` classes; none is locked, none has been measured.
    #[must_use]
    pub fn new(classes: usize) -> Self {
        Self { ledgers: vec![Ledger::default(); classes] }
    }

    /// Whether `class` stays inline at `now`. Plain look-up: what was kept inline goes to [`Self::kept_inline`].
    ///
    /// # Panics
    ///
    /// Where `class` is not below the number of classes, as all functions here.
    #[must_use]
    pub fn is_locked(&self, class: usize, now: Nanos) -> bool {
        now < self.ledgers[class].locked_until
    }

    /// Whether the next job of `class` that would be routed runs inline as control; asked once per such job.
    ///
    /// Every job does until `Tuning::control_jobs_first` were measured, or `Tuning::control_time_first` of them, afterwards exactly one in each
    /// `Tuning::control_period`, at a place that wanders, since sizes that alternate would show one half only; and fewer where the routed
    /// ones are much cheaper.
    #[must_use]
    pub fn is_control(&mut self, class: usize) -> bool {
        self.ledgers[class].is_control()
    }

    /// Takes what `jobs` of `class` took inline. More may be reported than [`Self::is_control`] asked for, and
    /// should be while a class is locked.
    pub fn control(&mut self, class: usize, jobs: u64, cost: Nanos) {
        let ledger = &mut self.ledgers[class];
        ledger.counters.control_jobs += jobs;
        ledger.control.add(jobs, cost);
    }

    /// Takes it that a job of `class` takes `cost` inline, until one is measured.
    pub fn assume(&mut self, class: usize, cost: Nanos) {
        self.ledgers[class].assumed = Some(cost);
    }

    /// Takes it that others measured `cost` for a job of `class` inline, where nothing was measured yet: the first jobs may be routed, and one in
    /// each `Tuning::control_period_told` is a control job until there are enough.
    pub fn tell(&mut self, class: usize, cost: Nanos) {
        let ledger = &mut self.ledgers[class];
        if ledger.control.jobs == 0 {
            (ledger.assumed, ledger.is_told) = (Some(cost), true);
        }
    }

    /// Takes what `jobs` of `class` took that were routed and ended at `now`. Where no control job was ever
    /// measured and nothing assumed, all of it counts as lost.
    pub fn routed(&mut self, class: usize, jobs: u64, cost: Nanos, now: Nanos) {
        let ledger = &mut self.ledgers[class];
        ledger.counters.routed_jobs += jobs;
        let inline = ledger.inline_of(jobs);
        ledger.book(&Entry { jobs, inline, cost }, now);
    }

    /// Whether a routed job of `class` that took far too long may be taken for one that lost its core: one in so many
    /// (`Tuning::excuse_period`) may.
    pub fn excuses(&mut self, class: usize) -> bool {
        self.ledgers[class].excuses()
    }

    /// Takes core time, ending at `now`, in which a CPU worker slept and left waiting jobs of `class` to a module.
    pub fn idled(&mut self, class: usize, time: Nanos, now: Nanos) {
        self.ledgers[class].book(&Entry { jobs: 0, inline: Nanos::ZERO, cost: time }, now);
    }

    /// Takes what was spent in vain on jobs of `class` that were routed, failed at `now` and are yet to be done inline.
    pub fn failed(&mut self, class: usize, cost: Nanos, now: Nanos) {
        self.ledgers[class].book(&Entry { jobs: 0, inline: Nanos::ZERO, cost }, now);
    }

    /// Counts `jobs` of `class` that would have been routed, had the class not been locked.
    pub fn kept_inline(&mut self, class: usize, jobs: u64) {
        self.ledgers[class].counters.kept_inline_jobs += jobs;
    }

    /// Whether anything says what a job of `class` takes inline.
    #[must_use]
    pub fn has_measure(&self, class: usize) -> bool {
        self.ledgers[class].control.jobs > 0 || self.ledgers[class].assumed.is_some()
    }

    /// What a job of `class` takes inline, by recent control jobs; `None` where there was none.
    #[must_use]
    pub fn inline_mean(&self, class: usize) -> Option<Nanos> {
        let control = &self.ledgers[class].control;
        (control.jobs > 0).then(|| control.cost_of(1))
    }

    /// What happened in `class` so far.
    #[must_use]
    pub fn counters(&self, class: usize) -> Counters {
        self.ledgers[class].counters
    }

    /// What happened in all classes so far.
    #[must_use]
    pub fn total(&self) -> Counters {
        let mut total = Counters::default();
        for ledger in &self.ledgers {
            total += ledger.counters;
        }
        total
    }
}
