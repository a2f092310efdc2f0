//! Settlement: what becomes of a result, and of what a module held that is given up.
//!
//! | a result | what becomes of it | what it says against the module |
//! |---|---|---|
//! | right, or not checked | sent home | nothing |
//! | found wrong ([`Verifier`](crate::worker::verifier::Verifier)) | the right one is sent home | out of service at once |
//! | failed, the module's fault | redone on the core | lost: out of service; else after [`ERRORS_MAX`] in a row |
//! | failed for its own bytes | sent home as it is | nothing |

use evener_core::{Job, JobError, Outcome};

use super::{ModuleWorker, is_failed, path_core};
use crate::cpu::{count, is_module_only};
use crate::module_limits::ERRORS_MAX;
use crate::state::report::Quarantine;

impl<'m> ModuleWorker<'_, 'm> {
    /// Settles all that came before the module is judged, because all that is to be checked is checked.
    pub(super) fn settle_all(&mut self) {
        let now = self.shared.clock.now();
        let has_failed = self.done.iter().any(|job| is_failed(job));
        self.turns.count(&self.done);
        self.record_results(now);
        self.busy += now - self.progress;
        self.progress = now;
        let mut done = std::mem::take(&mut self.done);
        let verdicts: Vec<_> = done.drain(..).filter_map(|job| self.settle(job)).collect();
        self.done = done;
        if has_failed && !cfg!(mutant = "redoing_is_the_modules") {
            // Nor is what was redone.
            if let Some(feedback) = &mut self.feedback {
                let core_time = path_core(self.shared, &*self.driver, self.barrier_time);
                feedback.redid(self.shared.clock.now() - now, core_time);
            }
        }
        if let Some(&first) = verdicts.first() {
            self.take_out_of_service(first);
        }
    }

    /// Completes one result: as it is, corrected, or redone. Returns what it says against the module.
    fn settle(&mut self, mut job: Box<Job<'m>>) -> Option<Quarantine> {
        if !self.is_right_or_unchecked(&mut job) {
            self.fallback.count_corrected(&job);
            self.complete(job);
            return Some(Quarantine::WrongResult);
        }
        match job.outcome() {
            Outcome::Failed(error) if is_failed(&job) => {
                self.redo(job);
                if error == JobError::ModuleFull { None } else { self.count_error(error) }
            }
            _ => {
                self.errors_in_row = 0;
                self.tally.bursts += 1;
                count(&mut self.tally, &job);
                self.complete(job);
                None
            }
        }
    }

    /// Compares a result that is to be checked, and puts the right one in its place where it is wrong. What that costs a core is no
    /// cost of the module's path.
    fn is_right_or_unchecked(&mut self, job: &mut Job<'m>) -> bool {
        if !self.verifier.is_to_check(job) {
            return true;
        }
        let start = self.shared.clock.thread_time();
        let is_right = self.verifier.verify(job, &mut self.fallback);
        self.exclude(self.shared.clock.thread_time() - start);
        is_right
    }

    fn count_error(&mut self, error: JobError) -> Option<Quarantine> {
        self.errors_in_row += 1;
        match error {
            JobError::ModuleLost => Some(Quarantine::Lost),
            _ => (self.errors_in_row >= ERRORS_MAX).then_some(Quarantine::Errors(error)),
        }
    }

    fn complete(&mut self, job: Box<Job<'m>>) {
        self.publish();
        self.single.push(job);
        self.shared.complete(&mut self.single);
    }

    pub(super) fn run_on_core(&mut self, job: Box<Job<'m>>) {
        self.single.push(job);
        self.shared.run_on_core(&mut self.fallback, &mut self.single);
    }

    /// Redoes a job on the CPU, from the same bytes: the driver has not touched them. One that is for modules only fails.
    fn redo(&mut self, mut job: Box<Job<'m>>) {
        if is_module_only(&job) {
            count(&mut self.tally, &job);
            return self.complete(job);
        }
        job.retry();
        self.fallback.count_redone();
        self.single.push(job);
        self.shared.redo(&mut self.fallback, &mut self.single);
    }

    /// Gives the module no more jobs and redoes what it holds.
    pub(super) fn take_out_of_service(&mut self, reason: Quarantine) {
        self.quarantine.get_or_insert(reason);
        if let Some(adaptive) = &self.shared.adaptive {
            adaptive.set_lost(self.module());
            adaptive.set_idle(self.worker);
            adaptive.set_oldest(self.module(), None);
            // What callers gave it: after `lost`, so that none is put here any more that no worker would find.
            self.claimed.extend(std::iter::from_fn(|| self.shared.backlog.pop_given(self.worker)));
        }
        self.shared.backlog.leave_service(self.worker);
        self.claimed.extend(std::iter::from_fn(|| self.shared.backlog.pop_module_only(self.worker)));
        let mut given_back = Vec::new();
        self.driver.abandon(&mut given_back);
        self.verifier.clear();
        given_back.into_iter().for_each(|job| self.redo(job));
        std::mem::take(&mut self.claimed).into_iter().for_each(|job| self.run_on_core(job));
    }
}
