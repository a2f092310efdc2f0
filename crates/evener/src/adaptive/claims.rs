//! Claims: what an idle worker takes next.
//!
//! A core asks [`AdaptivePolicy::next_for_core`], a module's worker [`AdaptivePolicy::next_for_module`] -> turns and control jobs come first, then
//! the table answers -> where the core is to rest, [`AdaptivePolicy::rest`] says how long; where a job is to go to a module, the guard
//! ([`AdaptivePolicy::may_route`]) and the number of tries ([`AdaptivePolicy::count_try`]) have the last word.

use std::sync::atomic::Ordering;

use evener_core::Nanos;
use evener_core::estimate::PLAN_WIDTH;
use evener_core::guard;
use evener_core::plan::adaptive::{self, Choice, Table};

use super::claim::{AskAgainWithin, Claim};
use super::tuning::TUNING;
use super::{AdaptivePolicy, WorkerKind};
use crate::queue::class_queues::ClassQueues;

/// Jobs that a core does in `claim_time` at so much each; where that is not known, one fill of lanes.
fn jobs_in_time(each: Nanos) -> u32 {
    match each {
        Nanos::ZERO => u32::try_from(PLAN_WIDTH).expect("a width is small"),
        each => u32::try_from(adaptive::TUNING.claim_time.0 / each.0).unwrap_or(u32::MAX).max(1),
    }
}

impl AdaptivePolicy {
    /// What an idle core takes: a queue and how many jobs, or how long to wait at most for something to change.
    pub(crate) fn next_for_core(
        &self,
        queues: &ClassQueues<'_>,
        now: Nanos,
    ) -> Result<Claim, AskAgainWithin> {
        self.alternation.note_query(WorkerKind::Core);
        if self.has_only_absent() {
            return self.without_modules(queues, now);
        }
        if let Some(turn) = self.core_in_turn(queues, now) {
            return turn;
        }
        let table = self.table(queues, now);
        if let Some(queue) = self.controls.due(|queue| queue < table.classes() && queues.waiting(queue) > 0) {
            // One job, and its burst is sampled.
            self.costs.sample_next(queues.classes()[queue], 1);
            return Ok(Claim { queue, jobs_max: 1, each: table.expected(queue, None) });
        }
        let modules_busy = self.least_busy(self.fixed.first_module_worker..self.busy_until_ns.len(), now);
        match table.core_takes(|queue| queues.waiting(queue), modules_busy) {
            Choice::Take { class: queue, .. } => {
                let each = table.expected(queue, None);
                Ok(Claim { queue, jobs_max: jobs_in_time(each), each })
            }
            Choice::AskAgainIn(time) => Err(AskAgainWithin(self.rest(queues, &table, time))),
            Choice::Leave => Err(AskAgainWithin(adaptive::TUNING.plan_age_max)),
        }
    }

    /// What a core takes while other processes have all modules: the first in its order that waits.
    fn without_modules(&self, queues: &ClassQueues<'_>, now: Nanos) -> Result<Claim, AskAgainWithin> {
        let table = self.table(queues, now);
        let queue = table.core_takes_alone(|queue| queues.waiting(queue));
        queue.ok_or(AskAgainWithin(adaptive::TUNING.plan_age_max)).map(|queue| {
            let each = table.expected(queue, None);
            Claim { queue, jobs_max: jobs_in_time(each), each }
        })
    }

    /// How long a core rests that is to claim again after `time`. Where there is only one, each look takes it from the modules'
    /// paths: then until modules may have done half of what waits, and no longer than a plan is good.
    fn rest(&self, queues: &ClassQueues<'_>, table: &Table, time: Nanos) -> Nanos {
        if self.fixed.cores > 1 {
            return time;
        }
        let state = self.state();
        let modules = || 0..state.modules;
        // A worker whose class was not measured on a core yet may be waiting for this one.
        let is_measured =
            |queue: usize| modules().all(|module| state.guard.has_measure(state.ledger(queue, module)));
        let at_best = |queue: usize| {
            let turn = |module: usize| {
                let requests = u64::from(self.fixed.capacities[module].depth) + 1;
                table.expected(queue, Some(module)).0 / requests
            };
            modules().map(turn).min().unwrap_or(0)
        };
        let waiting = || (0..table.classes()).filter(|&queue| queues.waiting(queue) > 0);
        if !waiting().all(is_measured) {
            return time;
        }
        let all: u64 =
            waiting().map(|queue| u64::from(queues.waiting(queue)).saturating_mul(at_best(queue))).sum();
        Nanos(all / 2).min(TUNING.plan_age_on_one_core).max(time)
    }

    /// What module `module` takes.
    pub(crate) fn next_for_module(
        &self,
        module: usize,
        queues: &ClassQueues<'_>,
        now: Nanos,
    ) -> Result<Claim, AskAgainWithin> {
        self.alternation.note_query(WorkerKind::Module);
        let table = self.table(queues, now);
        if let Some(turn) = self.module_in_turn(&table, queues) {
            return turn;
        }
        let cores_busy = self.least_busy(0..self.fixed.first_module_worker, now);
        match table.module_takes(module, |queue| queues.waiting(queue), cores_busy) {
            Choice::Take { class: queue, is_try } => {
                let jobs_max = if is_try { 1 } else { self.in_a_row(&table, queue, queues.waiting(queue)) };
                let goes = match is_try {
                    true => self.count_try(module, queues, queue, now),
                    false => self.may_route(module, queue, jobs_max, table.expected(queue, None)),
                };
                if !goes {
                    return Err(AskAgainWithin(TUNING.wait_for_control));
                }
                Ok(Claim { queue, jobs_max, each: table.expected(queue, Some(module)) })
            }
            Choice::AskAgainIn(time) => Err(AskAgainWithin(time)),
            Choice::Leave => Err(AskAgainWithin(adaptive::TUNING.plan_age_max)),
        }
    }

    /// Jobs that a module's worker takes at once. Where turns are taken the core rests meanwhile, so that none is kept from it, and each
    /// question keeps the next request from the module. What cores leave to it whole it may take as it comes.
    fn in_a_row(&self, table: &Table, queue: usize, waiting: u32) -> u32 {
        let least =
            if table.is_left_whole(queue) && !cfg!(mutant = "one_by_one") { 1 } else { TUNING.rows_min };
        if self.alternation.takes_turns() { (waiting / least).clamp(1, TUNING.in_a_row) } else { 1 }
    }

    /// A module is about to begin some jobs: cores owe its class a control job, where they run too few by themselves. Before
    /// there was any at all, only a few go to modules: the guard takes what they cost for lost. Where turns are taken, what is known to
    /// be `c` is the measure until the core's first turn: one job of 1 MiB takes as long there as eight on the path.
    fn may_route(&self, module: usize, queue: usize, jobs: u32, c: Nanos) -> bool {
        let has_cores = self.fixed.first_module_worker > 0;
        let state = &mut *self.state();
        let ledger = state.ledger(queue, module);
        let measured = state.guard.counters(ledger).control_jobs;
        if self.alternation.takes_turns() && measured == 0 && !cfg!(mutant = "one_job_first") {
            state.guard.assume(ledger, c);
        }
        if has_cores
            && !state.guard.has_measure(ledger)
            && self.controls.count(queue) >= guard::TUNING.control_jobs_first
        {
            // Owed again each time: what a core ran last may not have been sampled, and no module is to wait in vain.
            self.controls.owe(queue);
            return false;
        }
        let is_due = self.controls.routed(queue, jobs, measured < guard::TUNING.control_jobs_first);
        // Where turns are taken, those of the core are the control.
        if has_cores && is_due && !self.alternation.takes_turns() && state.guard.is_control(ledger) {
            self.controls.owe(queue);
        }
        true
    }

    /// A job is about to be a try, for which the table may be too old: another thread may be making the next one.
    pub(super) fn count_try(
        &self,
        module: usize,
        queues: &ClassQueues<'_>,
        queue: usize,
        now: Nanos,
    ) -> bool {
        let Some(&class) = queues.classes().get(queue) else { return false };
        self.state().trying_since = None;
        self.planned_ns.store(0, Ordering::Relaxed);
        self.costs.known().estimator.tries(module, class, now)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::adaptive;
    use super::*;
    use crate::queue::test_support::{job, session};

    const fn ms(millis: u64) -> Nanos {
        Nanos::from_millis(millis)
    }

    #[test]
    fn the_only_core_rests_long_beside_many_jobs_and_short_before_it_was_measured() {
        let us = Nanos::from_micros;
        let rest = |cores: usize, waiting: usize, is_measured: bool| {
            let (adaptive, queues, class) = adaptive(cores);
            let queue = queues.queue_of(class);
            let mut jobs: Vec<_> = (0..waiting).map(|_| job(session(), 16_384)).collect();
            queues.push_all(&mut jobs);
            let table = adaptive.table(&queues, ms(1));
            if is_measured {
                let ledger = adaptive.state().ledger(queue, 0);
                adaptive.state().guard.control(ledger, 1, us(400));
            }
            adaptive.rest(&queues, &table, us(1_000))
        };
        // A third of 240 + 480 us for each, and half of that.
        assert_eq!([10, 40, 100].map(|waiting| rest(1, waiting, true)), [us(1_200), us(4_800), us(12_000)]);
        assert_eq!([rest(1, 100, false), rest(2, 100, true)], [ms(1); 2]);
    }
}
