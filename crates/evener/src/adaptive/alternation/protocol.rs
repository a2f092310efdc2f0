//! The only core and the only module alternate, beside the plan: a crossover trial. How a turn begins and ends (`accounts.rs` has what it
//! costs), and what becomes of the costs that were measured in it. The state is [`Phase`]:
//!
//! | phase | the core's worker | the module's worker | it ends |
//! |---|---|---|---|
//! | by plan | takes what the plan says; where a turn is due, shows jobs to the module ([`AdaptivePolicy::offer_to_module`]): module | as the plan says; where the core's turn is due: core, and it drains | |
//! | module | rests, until the latest end ([`AdaptivePolicy::core_in_turn`]) | takes one request after the other, so many ([`AdaptivePolicy::module_in_turn`]) | none is left and it is drained ([`AdaptivePolicy::on_module_drained`]), or time is up: by plan, and the core's next burst is measured |
//! | core, not begun | waits until the module is drained, then claims and is measured: begun | takes nothing | nothing waits: by plan |
//! | core, begun | runs its jobs | takes nothing | it asks again: by plan |

use evener_core::estimate::PLAN_WIDTH;
use evener_core::plan::adaptive::Table;
use evener_core::{Class, Nanos};

use super::accounts::{Phase, TrialCost, Turns};
use crate::adaptive::claim::{AskAgainWithin, Claim};
use crate::adaptive::tuning::TUNING;
use crate::adaptive::{AdaptivePolicy, WorkerKind};
use crate::queue::class_queues::ClassQueues;

impl AdaptivePolicy {
    /// It may be the module's turn with jobs of a class of which `alone` wait for cores alone: then so many of them are to be
    /// shown to it.
    pub(crate) fn offer_to_module(
        &self,
        queues: &ClassQueues<'_>,
        class: Class,
        alone: u32,
        now: Nanos,
    ) -> Option<usize> {
        let (table, queue) = (self.current(), queues.queue_of(class));
        if queue >= table.classes() || table.is_open(queue) || self.state().lost[0] {
            return None;
        }
        let mut turns = self.alternation.turns()?;
        let trial = self.trial(&table, queue, class, queues.waiting(queue) + alone)?;
        if !turns.is_due(queue, &trial) {
            return None;
        }
        turns.begin_module(queue, &trial, now);
        let requests = turns.requests();
        drop(turns);
        self.alternation.set_turn(true);
        self.alternation.mark_changed(&[WorkerKind::Module]);
        Some(requests.saturating_sub(queues.waiting(queue)) as usize)
    }

    /// What the core is to take in a turn; `None`: the plan decides.
    pub(in crate::adaptive) fn core_in_turn(
        &self,
        queues: &ClassQueues<'_>,
        now: Nanos,
    ) -> Option<Result<Claim, AskAgainWithin>> {
        if !self.alternation.has_turn() {
            return None;
        }
        let mut turns = self.alternation.turns()?;
        match turns.phase {
            Phase::Module { until, .. } if now < until => {
                return Some(Err(AskAgainWithin((until - now).min(TUNING.plan_age_on_one_core))));
            }
            Phase::Core { queue, has_begun: false } if queues.waiting(queue) > 0 => {
                if self.oldest(0).is_some() {
                    return Some(Err(AskAgainWithin(TUNING.plan_age_on_one_core)));
                }
                turns.phase = Phase::Core { queue, has_begun: true };
                self.costs.sample_next(queues.classes()[queue], TUNING.jobs as usize);
                let each = self.current().expected(queue, None);
                return Some(Ok(Claim { queue, jobs_max: TUNING.jobs, each }));
            }
            _ => {}
        }
        turns.phase = Phase::ByPlan;
        drop(turns);
        self.turn_is_over(queues, now);
        // Jobs that wait for cores alone come first.
        Some(Err(AskAgainWithin(Nanos::ZERO)))
    }

    /// What the module is to take in a turn; `None`: the plan decides. The core's turn may begin here.
    pub(in crate::adaptive) fn module_in_turn(
        &self,
        table: &Table,
        queues: &ClassQueues<'_>,
    ) -> Option<Result<Claim, AskAgainWithin>> {
        let mut turns = self.alternation.turns()?;
        let requests = turns.requests();
        match &mut turns.phase {
            Phase::Module { queue, left, .. } => {
                let (queue, is_there) = (*queue, queues.waiting(*queue) > 0);
                // Before the first one they may be on their way.
                *left = if is_there || *left == requests { *left } else { 0 };
                if *left == 0 || !is_there {
                    return Some(Err(AskAgainWithin(TUNING.wait_for_control)));
                }
                *left -= 1;
                Some(Ok(Claim { queue, jobs_max: 1, each: table.expected(queue, Some(0)) }))
            }
            Phase::Core { .. } => Some(Err(AskAgainWithin(TUNING.plan_age_on_one_core))),
            Phase::ByPlan => {
                let is_alarmed = self.alternation.take_alarm();
                let (queue, trial) = self.due_to_core(&mut turns, table, queues, is_alarmed)?;
                turns.begin_core(queue, &trial);
                self.alternation.set_turn(true);
                Some(Err(AskAgainWithin(TUNING.plan_age_on_one_core)))
            }
        }
    }

    /// The queue of which it is the core's turn. With each question one is looked at, for the module's next request waits meanwhile: eight took
    /// longer than a request of the fastest module. In alarm all are.
    fn due_to_core(
        &self,
        turns: &mut Turns,
        table: &Table,
        queues: &ClassQueues<'_>,
        is_alarmed: bool,
    ) -> Option<(usize, TrialCost)> {
        let count = queues.count().min(table.classes());
        let looks = if is_alarmed { count } else { count.min(1) };
        (0..looks).find_map(|_| {
            let queue = turns.next_queue(count);
            let waiting = queues.waiting(queue);
            if waiting == 0 || !table.is_open(queue) {
                return None;
            }
            let trial = self.trial(table, queue, queues.class_of(queue)?, waiting)?;
            (is_alarmed || turns.is_due(queue, &trial)).then_some((queue, trial))
        })
    }

    /// The module holds nothing any more: its turn may be over, or the core's may begin. Whether the core is to look at that; in the
    /// midst of the module's turn it would only take the core from it.
    pub(crate) fn on_module_drained(&self, queues: &ClassQueues<'_>, now: Nanos) -> bool {
        let Some(mut turns) = self.alternation.turns() else { return false };
        let Phase::Module { queue, left, .. } = turns.phase else {
            self.alternation.mark_changed(&[WorkerKind::Core]);
            return true;
        };
        let is_over = left == 0;
        if is_over {
            turns.phase = Phase::ByPlan;
            drop(turns);
            // The other half of the pair: the next burst of the core.
            self.costs.sample_next(queues.classes()[queue], PLAN_WIDTH);
            self.turn_is_over(queues, now);
        }
        is_over || cfg!(mutant = "core_woken_in_turn")
    }

    fn turn_is_over(&self, queues: &ClassQueues<'_>, now: Nanos) {
        self.alternation.set_turn(false);
        self.plan_anew(queues, now);
        self.alternation.mark_changed(&[WorkerKind::Core, WorkerKind::Module]);
        queues.modules.ring_all();
    }

    /// What a turn of the idle one of the two would cost.
    fn trial(&self, table: &Table, queue: usize, class: Class, waiting: u32) -> Option<TrialCost> {
        let (c, latency) = (table.expected(queue, None), table.expected(queue, Some(0)));
        if c == Nanos::ZERO || latency == Nanos::ZERO {
            return None;
        }
        let turns = self.fixed.turns_held(0);
        let per_request = Nanos(latency.0 / u64::from(turns));
        // What pairs say is without the checks.
        let even = f64::from(turns) * (c - self.fixed.check(0, c)).as_secs_f64() / c.as_secs_f64();
        let known = self.costs.known().estimator.on_module(0, class);
        let is_sure = known.is_sure_beside(even) || known.is_surely_near(even);
        Some(TrialCost { c, per_request, is_open: table.is_open(queue), is_sure, waiting })
    }
}
