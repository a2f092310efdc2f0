//! Tries: jobs that go to a module so that it becomes known what they take there (R6). One is worth it where what it may cost is small beside the work of its class.

use super::super::rows::float;
use super::super::tuning::TUNING;
use super::{Table, done_before};
use crate::units::Nanos;

impl Table {
    /// Says how much core time jobs of each class took so far: where little waits at a time, that is what makes it
    /// worth while to find out what a module costs.
    #[must_use]
    pub fn having_worked(mut self, worked: impl Fn(usize) -> Nanos) -> Self {
        for (class, row) in self.rows.iter_mut().enumerate() {
            row.worked = float(worked(class));
        }
        self
    }

    /// Whether `module` may be tried for a class of which so many jobs wait: trying is a small part of the work.
    ///
    /// # Panics
    ///
    /// Where there is no such class or module.
    #[must_use]
    pub fn wants_try(&self, class: usize, module: usize, count: u32) -> bool {
        count > 0 && self.rows[class].cells[module].tries.left > 0 && self.is_worth_a_try(class, count)
    }

    /// Whether a request that comes alone and stays on the core ([`Self::route`]) is wanted at `module` to learn what it takes there.
    ///
    /// # Panics
    ///
    /// Where there is no such class or module.
    #[must_use]
    pub fn wants_single_try(&self, class: usize, module: usize) -> bool {
        let tries_left = match cfg!(mutant = "single_tries_of_what_pays_for_many") {
            true => self.rows[class].cells[module].tries.left,
            false => self.rows[class].cells[module].tries.single_left,
        };
        tries_left > 0 && self.is_worth_a_try(class, 1)
    }

    /// Whether `module` would take a try of a class while so much waits: it wants one, and it is not known that others would be
    /// done with all that waits before it.
    ///
    /// # Panics
    ///
    /// Where there is no such class or module.
    #[must_use]
    pub fn takes_try(&self, class: usize, module: usize, waiting: impl Fn(usize) -> u32) -> bool {
        let is_late = self.is_last(class, module, &waiting) && !cfg!(mutant = "awake_for_late_tries");
        self.wants_try(class, module, waiting(class)) && !is_late
    }

    /// Whether a job whose cost there is known would be the last to end of all that waits: then a try is dear, and only now and then
    /// worth it, for without tries a change would never be noticed.
    pub(super) fn is_last(&self, class: usize, module: usize, waiting: &impl Fn(usize) -> u32) -> bool {
        let cell = &self.rows[class].cells[module];
        cell.path
            .filter(|_| !cell.tries.is_long_untried)
            .is_some_and(|path| done_before(path.latency, waiting, &self.without_module[module]).is_some())
    }

    pub(super) fn is_worth_a_try(&self, class: usize, count: u32) -> bool {
        let row = &self.rows[class];
        row.c.is_some_and(|c| row.worked + c * f64::from(count) >= float(TUNING.try_work_min))
    }
}
