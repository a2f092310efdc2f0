//! The regret guard: what routing to modules may lose at most, enforced while it runs.
//!
//! The path of one class: [`Guard::is_locked`] and [`Guard::is_control`] say whether the next job stays inline;
//! [`Guard::control`] takes what inline jobs took, [`Guard::routed`] what routed ones took,
//! [`Guard::failed`] what those took that failed and
//! [`Guard::idled`] what a core waited for a module. What was lost beyond the allowance locks the class.
//!
//! The guard knows no estimate and no plan, only what was measured, so that it also catches a wrong planner
//! and a wrong cost. A cost is core time where throughput counts, interrupts included, and time that passed
//! where latency counts; the caller chooses one of them and keeps to it, for control and routed jobs alike.
//!
//! The loss of a class is a sum that never falls below zero: a gain pays back what was lost before it and is
//! forgotten beyond that. A class that could save up credit would earn an hour and then, when its module grows
//! slow, lose for minutes before anybody steps in.

mod by_size;
mod counters;
mod ledger;

use self::ledger::{Entry, Ledger};
use crate::units::Nanos;

pub use by_size::{BySize, Load};
pub use counters::Counters;

/// One of so many jobs that would be routed runs inline as control, or of up to [`CONTROL_STRETCH_MAX`] times as many: 1.6 % of the
/// gain is the price of knowing it, and where that is more than one in [`CONTROL_SHARE`] parts of what is routed, fewer will do, for a
/// core would have to become that much faster before routing were wrong.
pub const CONTROL_PERIOD: u64 = 64;

/// Beside a module that takes a thirteenth of a core's time, one job in 64 inline were a fifth of all time. Assumed, not
/// measured: one in 256, 0.4 %.
pub const CONTROL_SHARE: u64 = 256;

/// Controls must not be so rare that a changed core is noticed after minutes only. Assumed, not measured: 64.
pub const CONTROL_STRETCH_MAX: u64 = 64;

/// Jobs that are measured inline before any is routed: their mean is within 12 % of the true one in 19 of 20
/// cases where single jobs vary by 30 %.
pub const CONTROL_JOBS_FIRST: u64 = 8;

/// Where jobs are long so much time of them will do, and two of them: longer ones vary less, and eight of 1 MiB take half a second of a
/// slow core. Assumed, not measured: 10 ms.
pub const CONTROL_TIME_FIRST: Nanos = Nanos::from_millis(10);

/// Loss in core or wall time that a class may always have.
pub const LOSS_ALLOWED: Nanos = Nanos::from_millis(5);

/// The same for a class on trial. Assumed, not measured: 1 ms, because that is small beside
/// [`LOSS_ALLOWED`] and large beside one wake-up.
pub const LOSS_ALLOWED_ON_TRIAL: Nanos = Nanos::from_millis(1);

/// A class may lose one in so many parts of what its routed jobs would have cost inline: 2 %.
pub const LOSS_SHARE: u64 = 50;

/// Length of the first lock of a class; each one after it is twice as long. A trial may lose less than a hundredth of that, and one request
/// that met a stall of 6 ms, of a module that takes a thirteenth of a core's time, costs no second of its gain.
pub const LOCK_FIRST: Nanos = Nanos::from_millis(125);

/// Longest lock: 5 minutes.
pub const LOCK_MAX: Nanos = Nanos::from_millis(300_000);

/// Routed jobs after which a trial is judged. Assumed, not measured: 256, because noise of 30 % in single jobs
/// leaves 2 % in their mean.
pub const TRIAL_JOBS: u64 = 256;

/// Inline cost after which loss and inline cost are halved, so that no class ever has more than 2 % of it to
/// lose at a stroke. Assumed, not measured: 10 s.
const LOSS_WINDOW: Nanos = Nanos::from_millis(10_000);

/// Control jobs after which their weight is halved. Assumed, not measured: 128, a balance between noise and
/// the time in which a changed inline cost is noticed, 64 control jobs to half.
const CONTROL_WINDOW: u64 = 128;

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
    /// Every job does until [`CONTROL_JOBS_FIRST`] were measured, or [`CONTROL_TIME_FIRST`] of them, afterwards exactly one in each
    /// [`CONTROL_PERIOD`], at a place that wanders, since sizes that alternate would show one half only; and fewer where the routed
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

    /// Takes what `jobs` of `class` took that were routed and ended at `now`. Where no control job was ever
    /// measured and nothing assumed, all of it counts as lost.
    pub fn routed(&mut self, class: usize, jobs: u64, cost: Nanos, now: Nanos) {
        let ledger = &mut self.ledgers[class];
        ledger.counters.routed_jobs += jobs;
        let inline = ledger.inline_of(jobs);
        ledger.book(&Entry { jobs, inline, cost }, now);
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
