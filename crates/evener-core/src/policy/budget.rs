//! A share of the cores that must not be exceeded: `--cpu-budget PERCENT`.
//!
//! The path of core time: [`Budget::may_spend`] says how much a worker may start now or how long it waits, and
//! [`Budget::spent`] takes what a job on the CPU, the module path of one on a module, or an interrupt took.
//!
//! A bucket fills at the budgeted rate and holds 4 ms per core at most. What was started is not stopped: the
//! bucket goes into debt by it and nothing starts before that is paid. Jobs in flight when a window begins, a
//! full bucket and the debt when it ends add up to less than 2 % of one second on every core, as long as
//! no job takes more than 2 ms and an interrupt's part is charged within some 10 ms.

use std::fmt;
use std::num::NonZero;

use crate::units::Nanos;

/// What the bucket holds at most, per core.
const DEPTH_PER_CORE: Nanos = Nanos::from_millis(4);

/// The least that a worker starts, so that it sleeps once per millisecond of work and not once per job.
const GRANT_MIN: Nanos = Nanos::from_millis(1);

/// A limit on the core time of a process, the same over every second.
#[derive(Clone, Debug)]
pub struct Budget {
    percent: u8,
    cores: u64,
    /// In hundredths of a nanosecond of core time, since one nanosecond adds `percent` per core; below zero: debt.
    level: i128,
    filled_at: Nanos,
}

impl Budget {
    /// A budget of `percent` (1 to 100) of the `cores` that the process may use; its bucket is full.
    ///
    /// # Errors
    ///
    /// [`PercentOutOfRange`] where `percent` is not in 1..=100.
    pub fn new(percent: u32, cores: NonZero<usize>) -> Result<Self, PercentOutOfRange> {
        let valid = u8::try_from(percent).ok().filter(|percent| (1..=100).contains(percent));
        let cores = u64::try_from(cores.get()).unwrap_or(u64::MAX);
        let mut budget = Self {
            percent: valid.ok_or(PercentOutOfRange(percent))?,
            cores,
            level: 0,
            filled_at: Nanos::ZERO,
        };
        budget.level = budget.of_all_cores(DEPTH_PER_CORE);
        Ok(budget)
    }

    /// The share, in percent of the cores.
    #[must_use]
    pub const fn percent(&self) -> u8 {
        self.percent
    }

    /// Charges core time: of jobs on the CPU, of the module path, of interrupts as soon as they are known.
    pub fn spent(&mut self, core: Nanos) {
        self.level -= i128::from(core.0) * 100;
    }

    /// Core time that one worker may start at `now`: a core's part of what is left, since other workers ask too.
    /// One job that takes longer may be started as well. The whole of the cores is no limit.
    ///
    /// # Errors
    ///
    /// The time to wait before it is worth asking again.
    pub fn may_spend(&mut self, now: Nanos) -> Result<Nanos, Nanos> {
        if self.percent == 100 {
            return Ok(Nanos(u64::MAX));
        }
        self.fill(now);
        let missing = self.of_all_cores(GRANT_MIN) - self.level;
        if missing > 0 {
            return Err(span((missing + self.rate() - 1) / self.rate()));
        }
        Ok(span(self.level / (i128::from(self.cores) * 100)))
    }

    fn fill(&mut self, now: Nanos) {
        let passed = now - self.filled_at;
        self.filled_at = self.filled_at.max(now);
        let level = self.level + i128::from(passed.0) * self.rate();
        self.level = level.min(self.of_all_cores(DEPTH_PER_CORE));
    }

    /// What one nanosecond adds to the level.
    fn rate(&self) -> i128 {
        i128::from(self.percent) * i128::from(self.cores)
    }

    /// The level that lets every core work for `core`.
    fn of_all_cores(&self, core: Nanos) -> i128 {
        i128::from(core.0) * 100 * i128::from(self.cores)
    }
}

fn span(ns: i128) -> Nanos {
    Nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

/// A percentage that is no share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PercentOutOfRange(pub u32);

impl fmt::Display for PercentOutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a CPU budget of {} % is not between 1 and 100", self.0)
    }
}

impl std::error::Error for PercentOutOfRange {}
