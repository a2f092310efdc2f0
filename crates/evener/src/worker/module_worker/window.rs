//! The window of requests outstanding at the module: filled while the module takes more, emptied by what comes back.

use std::thread;

use evener_core::driver::LAST_WAIT;
use evener_core::{Job, Nanos, Refusal};

use super::{GLANCE, ModuleWorker};
use crate::state::report::Quarantine;

impl<'m> ModuleWorker<'_, 'm> {
    /// Hands jobs over while the module takes them and jobs wait; returns whether any was claimed.
    pub(super) fn fill(&mut self) -> bool {
        let mut has_claimed = false;
        while self.driver.in_flight() < self.width() && self.quarantine.is_none() {
            has_claimed |= self.claimed.is_empty() && self.claim();
            let Some(job) = self.claimed.pop() else { break };
            if !self.hand_over(job) {
                break;
            }
        }
        has_claimed
    }

    pub(super) fn width(&self) -> usize {
        self.driver.profile().width.max(1) as usize
    }

    /// The number of the module among its like.
    pub(super) fn module(&self) -> usize {
        self.worker - self.shared.cpu_workers
    }

    /// Hands one job to the module, or to the CPU where it is not for the module. `false` where the module
    /// takes no more now.
    fn hand_over(&mut self, job: Box<Job<'m>>) -> bool {
        let session = job.session();
        let is_for_module = self.driver.supports(session.algorithm(), session.direction())
            && job.lengths_fit()
            && !self.shared.is_given_up(&job);
        if !is_for_module {
            self.run_on_core(job);
            return true;
        }
        self.verifier.capture(&job);
        let class = job.class();
        match self.driver.submit(job) {
            Ok(()) => {
                if let (Some(adaptive), 1) = (&self.shared.adaptive, self.driver.in_flight()) {
                    adaptive.set_oldest(self.module(), Some((class, self.shared.clock.now())));
                }
                true
            }
            Err((job, refusal)) => {
                self.refused(job, refusal);
                false
            }
        }
    }

    fn refused(&mut self, job: Box<Job<'m>>, refusal: Refusal) {
        self.verifier.drop_capture(&job);
        self.claimed.push(job);
        if refusal != Refusal::Full {
            self.take_out_of_service(Quarantine::Lost);
        }
    }

    /// Waits for results and settles them.
    pub(super) fn collect(&mut self) {
        let silent = self.shared.clock.now() - self.progress;
        let left = self.deadline - silent;
        match self.driver.in_flight() {
            // It refuses jobs though it holds none: no result would end a poll.
            0 => thread::sleep(left.min(GLANCE).into()),
            held if held < self.width() => _ = self.driver.poll(&mut self.done, left.min(GLANCE)),
            _ => _ = self.driver.poll(&mut self.done, left),
        }
        if self.done.is_empty() && left == Nanos::ZERO && self.driver.in_flight() > 0 {
            // This process may have been stopped, and who brings the answer goes on only now.
            self.driver.poll(&mut self.done, LAST_WAIT);
        }
        if !self.done.is_empty() {
            self.settle_all();
        } else if left == Nanos::ZERO {
            // It had no time left before it was asked once more: a thread that the system kept from running
            // says nothing against the module.
            self.busy += silent;
            self.take_out_of_service(Quarantine::Hung);
        }
    }
}
