//! The account of one class: what its jobs take inline, what routed ones lost against that, and the locks that follow.

use std::ops::AddAssign;

use super::counters::Counters;
use super::tuning::TUNING;
use crate::units::Nanos;

/// Routed jobs, or none and the idle time of a core.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    pub(super) jobs: u64,
    /// What they would have cost inline.
    pub(super) inline: Nanos,
    /// What they took.
    pub(super) cost: Nanos,
}

impl AddAssign<&Self> for Entry {
    fn add_assign(&mut self, other: &Self) {
        self.jobs += other.jobs;
        self.inline += other.inline;
        self.cost += other.cost;
    }
}

/// The account of one class.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    pub(super) control: Mean,
    /// What routed jobs cost lately, idle cores and failures included.
    routed: Mean,
    /// Inline cost of a job before any was measured.
    pub(super) assumed: Option<Nanos>,
    /// Whether another process measured that: the first jobs need not all be control jobs.
    pub(super) is_told: bool,
    /// Jobs that [`Guard::is_control`] chose from.
    eligible_jobs: u64,
    /// From so many routed jobs on the next one may be excused.
    excuse_from: u64,
    /// Loss since the class last stood even.
    lost: Nanos,
    /// What its routed jobs would have cost inline in that time.
    inline: Nanos,
    pub(super) locked_until: Nanos,
    /// Length of the next lock.
    lock_next: Nanos,
    /// What was seen since the trial began, while there is one: from the first lock until a gain.
    trial: Option<Entry>,
    pub(super) counters: Counters,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            control: Mean::default(),
            routed: Mean::default(),
            assumed: None,
            is_told: false,
            eligible_jobs: 0,
            excuse_from: 0,
            lost: Nanos::ZERO,
            inline: Nanos::ZERO,
            locked_until: Nanos::ZERO,
            lock_next: TUNING.lock_first,
            trial: None,
            counters: Counters::default(),
        }
    }
}

impl Ledger {
    /// What `jobs` cost inline; nothing where no job was measured.
    pub(super) fn inline_of(&self, jobs: u64) -> Nanos {
        match self.assumed {
            Some(each) if self.control.jobs == 0 => Nanos(each.0.saturating_mul(jobs)),
            _ => self.control.cost_of(jobs),
        }
    }

    pub(super) fn is_control(&mut self) -> bool {
        if self.control.jobs < TUNING.control_jobs_first && !self.has_measured_long() {
            return !self.is_told || self.is_control_told();
        }
        let (round, place) =
            (self.eligible_jobs / TUNING.control_period, self.eligible_jobs % TUNING.control_period);
        self.eligible_jobs += 1;
        // The fractions of multiples of the golden ratio lie evenly, and so do their leading six bits.
        let golden = 0x9E37_79B9_7F4A_7C15_u64;
        let is_place = place == round.wrapping_mul(golden) >> (u64::BITS - TUNING.control_period.ilog2());
        // Divisions last: most jobs are at another place.
        is_place && round % self.stretch() == 0
    }

    /// The same of the first jobs where others have told what they take inline.
    fn is_control_told(&mut self) -> bool {
        self.eligible_jobs += 1;
        self.eligible_jobs % TUNING.control_period_told == 0
    }

    /// Whether few control jobs are enough.
    fn has_measured_long(&self) -> bool {
        let is_long = self.control.jobs >= 2 && self.control.cost >= TUNING.control_time_first;
        is_long && !cfg!(mutant = "long_controls_counted")
    }

    /// Of so many rounds one has a control job: their price is what such a job takes more than a routed one. A power of two, so that a
    /// longer stretch has its controls at some of the places of a shorter one.
    fn stretch(&self) -> u64 {
        if self.routed.jobs < TUNING.control_period || cfg!(mutant = "controls_at_any_price") {
            return 1;
        }
        let (inline, routed) = (self.control.cost_of(1), self.routed.cost_of(1));
        let dearer = (inline - routed).0.saturating_mul(TUNING.control_share / TUNING.control_period)
            / routed.0.max(1);
        dearer.clamp(1, TUNING.control_stretch_max).next_power_of_two()
    }

    pub(super) fn excuses(&mut self) -> bool {
        let routed = self.counters.routed_jobs;
        let may = routed >= self.excuse_from;
        if may {
            self.excuse_from = routed + TUNING.excuse_period;
        }
        may
    }

    pub(super) fn book(&mut self, entry: &Entry, now: Nanos) {
        self.routed.add(entry.jobs, entry.cost);
        self.counters.lost += entry.cost - entry.inline;
        self.counters.gained += entry.inline - entry.cost;
        if now < self.locked_until {
            return; // Was under way when the lock fell; the trial judges what is routed after it.
        }
        self.lost = self.lost + entry.cost - entry.inline;
        self.inline += entry.inline;
        if self.lost == Nanos::ZERO {
            self.inline = Nanos::ZERO;
        }
        if self.lost > self.loss_max() {
            self.lock(now);
            return;
        }
        self.age();
        self.judge(entry);
    }

    fn loss_max(&self) -> Nanos {
        let least = if self.trial.is_some() { TUNING.loss_allowed_on_trial } else { TUNING.loss_allowed };
        least.max(Nanos(self.inline.0 / TUNING.loss_share))
    }

    fn lock(&mut self, now: Nanos) {
        self.counters.locks += 1;
        self.locked_until = now + self.lock_next;
        self.lock_next = TUNING.lock_max.min(self.lock_next + self.lock_next);
        self.lost = Nanos::ZERO;
        self.inline = Nanos::ZERO;
        self.trial = Some(Entry::default());
    }

    /// Forgets half of both sums: at most 2 % of the inline cost that is forgotten with it.
    fn age(&mut self) {
        if self.inline >= TUNING.loss_window {
            self.inline.0 /= 2;
            self.lost.0 = self.lost.0.div_ceil(2);
        }
    }

    /// Ends a trial that gained as much as a loss must be to count; another begins where one did not.
    fn judge(&mut self, entry: &Entry) {
        let Some(trial) = &mut self.trial else { return };
        *trial += entry;
        if trial.jobs < TUNING.trial_jobs {
            return;
        }
        if trial.cost < trial.inline - Nanos(trial.inline.0 / TUNING.loss_share) {
            self.trial = None;
            self.lock_next = TUNING.lock_first;
        } else {
            *trial = Entry::default();
        }
    }
}

/// Mean cost of recent jobs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    pub(super) jobs: u64,
    cost: Nanos,
}

impl Mean {
    pub(super) fn add(&mut self, jobs: u64, cost: Nanos) {
        self.jobs += jobs;
        self.cost += cost;
        if self.jobs >= TUNING.control_window {
            self.cost = self.cost_of(TUNING.control_window / 2);
            self.jobs = TUNING.control_window / 2;
        }
    }

    /// What `jobs` cost at the mean; nothing where there is none.
    pub(super) fn cost_of(&self, jobs: u64) -> Nanos {
        let scaled = u128::from(self.cost.0) * u128::from(jobs);
        let cost = scaled.checked_div(u128::from(self.jobs)).unwrap_or(0);
        Nanos(u64::try_from(cost).unwrap_or(u64::MAX))
    }
}
