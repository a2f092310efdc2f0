//! What is in force at one width of a class, and when the two methods may be compared again.

use super::tuning::TUNING;
use crate::job::method::Method;

/// What is in force at a width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Choice {
    pub(super) method: Method,
    /// Bursts that tried the other.
    pub(super) tries: u32,
    /// What the method in force cost when the other was last measured; 0 before.
    pub(super) compared_ns: f64,
    /// It has drifted since, and stays in force until the other was measured under the conditions of today.
    pub(super) contest: Option<Contest>,
}

/// What is left to do until two methods can be compared again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Contest {
    /// Samples of the method that is not in force.
    others: u32,
    /// Samples of the one that is: those that showed the drift may have met cold memory, or a neighbour.
    own: u32,
    /// Tries until the first are there.
    tries: u32,
}

impl Contest {
    pub(super) const fn wants_try(&self) -> bool {
        self.others > 0
    }

    const fn is_over(&self) -> bool {
        self.others == 0 && self.own == 0
    }
}

impl Choice {
    /// Whether the method in force costs something else than when the other was last measured.
    pub(super) fn has_drifted(&self, in_force: f64) -> bool {
        self.compared_ns > 0.0
            && (in_force / self.compared_ns - 1.0).abs() > TUNING.drift
            && !cfg!(mutant = "drift_ignored")
    }

    pub(super) fn contest(&mut self) {
        let samples = TUNING.samples_of_comparison;
        let own = if cfg!(mutant = "drift_believed") { 0 } else { samples };
        self.contest = Some(Contest { others: samples, own, tries: TUNING.tries_of_comparison });
    }

    /// Counts a sample of the method in force.
    pub(super) fn record_own(&mut self) {
        if let Some(contest) = &mut self.contest {
            contest.own = contest.own.saturating_sub(1);
            if contest.is_over() {
                self.compare();
            }
        }
    }

    /// Counts a sample of the method that is not in force.
    pub(super) fn record_other(&mut self) {
        if let Some(contest) = &mut self.contest {
            contest.others = contest.others.saturating_sub(1);
            if !contest.is_over() {
                return;
            }
        }
        self.compare();
    }

    /// Counts a try of it.
    pub(super) fn tries(&mut self) {
        match &mut self.contest {
            Some(contest) if contest.tries > 1 || !contest.wants_try() => {
                contest.tries = contest.tries.saturating_sub(1);
            }
            Some(_) => self.compare(),
            None => self.tries += 1,
        }
    }

    /// The methods may be compared now. What a contest showed rests on few samples, which may be doubted again.
    fn compare(&mut self) {
        if self.contest.take().is_some() {
            self.tries = self.tries.min(TUNING.looks_again);
        }
        self.compared_ns = 0.0;
    }
}
