//! What a module's worker claims, and how long the module may take for it.

use evener_core::plan::Take;
use evener_core::{Job, Nanos};

use super::ModuleWorker;
use super::turns::Turn;
use crate::adaptive::{AdaptivePolicy, AskAgainWithin};
use crate::module_limits::{SILENCE_MIN, TIMES_EXPECTED};

impl<'m> ModuleWorker<'_, 'm> {
    /// Claims what the plan gives the module, unless workers are to stop before their next claim.
    pub(super) fn claim(&mut self) -> bool {
        let shared = self.shared;
        let may = !shared.backlog.is_held() && shared.charge(&mut self.meter).is_ok();
        let has_claimed = may && self.has_turn() && (self.claim_module_only() || self.claim_by_plan());
        if !has_claimed && self.holds_nothing() {
            // The worker may sleep now, and others are not to wait for that.
            self.turns.rest();
        }
        if has_claimed && self.driver.in_flight() == 0 {
            self.progress = shared.clock.now();
            if let Some(feedback) = &mut self.feedback {
                feedback.begin();
            }
        }
        has_claimed
    }

    /// Whether it is this run's turn at the module; where other processes have it, too, none is taken while nothing waits.
    fn has_turn(&mut self) -> bool {
        let shared = self.shared;
        if self.turns.is_alone() {
            return true;
        }
        if shared.backlog.has_nothing_for(self.worker) {
            return false;
        }
        let mut turn = self.turns.ask(self.driver.in_flight() == 0, shared.clock.now());
        if turn == Turn::Others {
            self.set_absent(true);
            shared.backlog.wake_cores();
            turn = self.turns.wait(shared.clock.now(), WAIT_MAX);
        }
        if turn == Turn::Mine {
            self.set_absent(false);
        }
        turn == Turn::Mine
    }

    /// Tells cores that nothing is to be left to the module, or that it may be.
    fn set_absent(&self, is_absent: bool) {
        if let Some(adaptive) = &self.shared.adaptive {
            adaptive.set_absent(self.module(), is_absent);
        }
    }

    /// Claims a job that only this module may do.
    fn claim_module_only(&mut self) -> bool {
        let shared = self.shared;
        let Some(job) = shared.backlog.pop_module_only(self.worker) else { return false };
        match &shared.adaptive {
            Some(adaptive) => self.claim_single(adaptive, job, shared.clock.now()),
            None => {
                self.set_deadline(Nanos::ZERO);
                self.claimed.push(job);
            }
        }
        true
    }

    fn claim_single(&mut self, adaptive: &AdaptivePolicy, job: Box<Job<'m>>, now: Nanos) {
        let claim =
            adaptive.claim_single(self.module(), self.shared.backlog.class_queues(), job.class(), now);
        adaptive.set_busy(self.worker, &claim, 1, now);
        self.set_deadline(claim.each());
        self.claimed.push(job);
    }

    fn claim_by_plan(&mut self) -> bool {
        let (shared, take) = (self.shared, &self.shared.plan.module);
        let Some(adaptive) = &shared.adaptive else {
            return shared.backlog.claim(Some(self.worker), take, &mut self.claimed) > 0;
        };
        let (queues, now) = (shared.backlog.class_queues(), shared.clock.now());
        if let Some(job) = shared.backlog.pop_given(self.worker) {
            self.claim_single(adaptive, job, now);
            return true;
        }
        match adaptive.next_for_module(self.module(), queues, now) {
            Ok(claim) => {
                self.claim_wait = Some(Nanos::ZERO);
                let row = Take { jobs_max: claim.jobs_max, ..*take };
                let claimed = shared.backlog.claim_of(claim.queue, &row, claim.jobs_max, &mut self.claimed);
                if claimed > 0 {
                    adaptive.set_busy(self.worker, &claim, claimed, now);
                    self.set_deadline(claim.each());
                }
                claimed > 0
            }
            Err(AskAgainWithin(timeout)) => {
                self.claim_wait = Some(timeout);
                let is_drained = self.driver.in_flight() == 0 && adaptive.alternation.has_turn();
                // It may be the core's turn, or what is left its work, and the core asleep.
                if is_drained && adaptive.on_module_drained(queues, now)
                    || adaptive.alternation.should_wake_core(queues)
                {
                    shared.backlog.wake_cores();
                }
                false
            }
        }
    }

    /// Allows the module what it takes by what is known of it: all that it may hold, each many times as long as expected. Of
    /// jobs held together the longest counts.
    fn set_deadline(&mut self, each: Nanos) {
        let allowed = match each {
            Nanos::ZERO => self.timeout,
            each => {
                let all = Nanos(each.0.saturating_mul(TIMES_EXPECTED * self.width() as u64));
                all.max(SILENCE_MIN).min(self.timeout)
            }
        };
        let is_alone = self.driver.in_flight() == 0;
        self.deadline = if is_alone { allowed } else { self.deadline.max(allowed) };
    }
}

/// Longest sleep in the queue of those who wait for a turn, with no job claimed. Assumed, not measured: 5 ms, two turns of others, because the end of the run waits for
/// it, and cores take what waits meanwhile.
const WAIT_MAX: Nanos = Nanos::from_millis(5);
