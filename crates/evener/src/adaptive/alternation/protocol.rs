//! Turns of the only core and the only module, beside the plan: what workers are told while somebody has one (`accounts.rs`), and
//! what becomes of what they took.
//!
//! The core's worker asks once in a while ([`AdaptivePolicy::offer_to_module`]) -> jobs are shown to the module, the core rests
//! ([`AdaptivePolicy::next_for_core`]), the module takes them ([`AdaptivePolicy::next_for_module`]) -> it is drained
//! ([`AdaptivePolicy::on_module_drained`]) -> the core goes on, and its next burst is measured. Where modules have the class, the module's
//! worker sees that it is the core's turn, drains, and the core runs its jobs.

use evener_core::plan::adaptive::Table;
use evener_core::{Class, Nanos};

use super::accounts::{JOBS, Phase, TrialCost, Turns};
use crate::adaptive::claim::{Claim, WAIT_FOR_CONTROL};
use crate::adaptive::planning::PLAN_AGE_ON_ONE_CORE;
use crate::adaptive::{AdaptivePolicy, WIDTH, WorkerKind};
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
        if queue >= table.lanes() || table.is_open(queue) || self.state().lost[0] {
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

    /// What the core is told in a turn; `None`: what the plan says.
    pub(in crate::adaptive) fn core_in_turn(
        &self,
        queues: &ClassQueues<'_>,
        now: Nanos,
    ) -> Option<Result<Claim, Nanos>> {
        if !self.alternation.has_turn() {
            return None;
        }
        let mut turns = self.alternation.turns()?;
        match turns.phase {
            Phase::Module { until, .. } if now < until => {
                return Some(Err((until - now).min(PLAN_AGE_ON_ONE_CORE)));
            }
            Phase::Core { queue, has_begun: false } if queues.waiting(queue) > 0 => {
                if self.oldest(0).is_some() {
                    return Some(Err(PLAN_AGE_ON_ONE_CORE));
                }
                turns.phase = Phase::Core { queue, has_begun: true };
                self.costs.sample_next(queues.classes()[queue], JOBS as usize);
                let each = self.current().expected(queue, None);
                return Some(Ok(Claim { queue, jobs_max: JOBS, each }));
            }
            _ => {}
        }
        turns.phase = Phase::Nobody;
        drop(turns);
        self.turn_is_over(queues, now);
        // Jobs that wait for cores alone come first.
        Some(Err(Nanos::ZERO))
    }

    /// What the module is told in a turn; `None`: what the plan says. It may have come to the core's turn.
    pub(in crate::adaptive) fn module_in_turn(
        &self,
        table: &Table,
        queues: &ClassQueues<'_>,
    ) -> Option<Result<Claim, Nanos>> {
        let mut turns = self.alternation.turns()?;
        let requests = turns.requests();
        match &mut turns.phase {
            Phase::Module { queue, left, .. } => {
                let (queue, is_there) = (*queue, queues.waiting(*queue) > 0);
                // Before the first one they may be on their way.
                *left = if is_there || *left == requests { *left } else { 0 };
                if *left == 0 || !is_there {
                    return Some(Err(WAIT_FOR_CONTROL));
                }
                *left -= 1;
                Some(Ok(Claim { queue, jobs_max: 1, each: table.expected(queue, Some(0)) }))
            }
            Phase::Core { .. } => Some(Err(PLAN_AGE_ON_ONE_CORE)),
            Phase::Nobody => {
                let is_alarmed = self.alternation.take_alarm();
                let (queue, trial) = self.due_to_core(&mut turns, table, queues, is_alarmed)?;
                turns.begin_core(queue, &trial);
                self.alternation.set_turn(true);
                Some(Err(PLAN_AGE_ON_ONE_CORE))
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
        let count = queues.count().min(table.lanes());
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
            turns.phase = Phase::Nobody;
            drop(turns);
            // The other half of the pair: the next burst of the core.
            self.costs.sample_next(queues.classes()[queue], WIDTH);
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

    /// What the one who rests could have a turn with.
    fn trial(&self, table: &Table, queue: usize, class: Class, waiting: u32) -> Option<TrialCost> {
        let (c, latency) = (table.expected(queue, None), table.expected(queue, Some(0)));
        if c == Nanos::ZERO || latency == Nanos::ZERO {
            return None;
        }
        let turns = self.fixed.turns_held(0);
        let turn = Nanos(latency.0 / u64::from(turns));
        // What pairs say is without the checks.
        let even = f64::from(turns) * (c - self.fixed.check(0, c)).as_secs_f64() / c.as_secs_f64();
        let known = self.costs.known().estimator.on_module(0, class);
        let is_sure = known.is_sure_beside(even) || known.is_surely_near(even);
        Some(TrialCost { c, turn, is_open: table.is_open(queue), is_sure, waiting })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adaptive::tests::adaptive_with;
    use evener_core::cost::Line;
    use evener_core::estimate::ModuleSample;
    use evener_core::{Estimator, Method};

    use crate::adaptive::Observation;
    use crate::costs::CostSample;
    use crate::queue::class_queues::tests::{job, session};

    const fn us(micros: u64) -> Nanos {
        Nanos::from_micros(micros)
    }

    const NOW: Nanos = Nanos::from_millis(10);

    fn sample(turn: u64) -> ModuleSample {
        ModuleSample { jobs: 1, bytes: 16_384, d: us(turn), h: us(2 * turn), now: NOW }
    }

    fn seen(turn: u64, is_alone: bool) -> Observation {
        Observation { sample: sample(turn), waited: Nanos::ZERO, opened_key: false, is_alone }
    }

    fn burst(class: Class, each: u64) -> CostSample {
        let (core, bytes) = (us(16 * each), 16 * 16_384);
        CostSample { class, method: Method::Plain, jobs: 16, bytes, core, wall: core, stands_for: 1 }
    }

    /// The only core, which takes 400 us for what the only module takes `turn` for, and so many jobs that wait.
    fn beside(turn: u64, waiting: usize) -> (AdaptivePolicy, ClassQueues<'static>, Class) {
        beside_of(&sample(turn), waiting)
    }

    fn beside_of(seen: &ModuleSample, waiting: usize) -> (AdaptivePolicy, ClassQueues<'static>, Class) {
        let class = job(session(), 16_384).class();
        let mut learned = Estimator::new(1);
        learned.keep_unseen(0, Line { fixed_ns: 100_000, per_byte_ps: 0 });
        for _ in 0..16 {
            learned.saw_cpu(class, Method::Plain, 16, 16 * 16_384, us(16 * 400));
            learned.saw_module(0, class, seen);
        }
        learned.pair_up(0, 16);
        let (adaptive, queues) = (adaptive_with(1, learned), ClassQueues::new(4_096));
        let mut jobs: Vec<_> = (0..waiting).map(|_| job(session(), 16_384)).collect();
        queues.queue_of(class);
        queues.push_all(&mut jobs);
        adaptive.table(&queues, NOW);
        (adaptive, queues, class)
    }

    fn module_takes(adaptive: &AdaptivePolicy, queues: &ClassQueues<'_>) -> bool {
        adaptive.next_for_module(0, queues, NOW).is_ok_and(|claim| {
            queues.ring(claim.queue).pop_many(&mut Vec::new(), 1);
            true
        })
    }

    #[test]
    fn a_class_of_which_costs_are_known_begins_on_the_module_without_a_job_of_the_cores() {
        let (adaptive, queues, class) = beside(100, 100);
        assert!((0..30).all(|_| module_takes(&adaptive, &queues)));
        // What they took is no loss, for it is known what the core would have taken.
        (0..300).for_each(|_| adaptive.record_module(0, &queues, class, &seen(100, true)));
        assert!(module_takes(&adaptive, &queues) && !adaptive.alternation.has_turn());
        // Until the core's turn says otherwise.
        adaptive.record_core(&queues, &[burst(class, 40)]);
        (0..300).for_each(|_| adaptive.record_module(0, &queues, class, &seen(100, true)));
        assert!(!module_takes(&adaptive, &queues) && adaptive.alternation.has_turn());
    }

    #[test]
    fn the_core_rests_while_the_module_has_its_turn_and_the_pair_decides() {
        let (adaptive, queues, class) = beside(430, 24);
        assert!(!module_takes(&adaptive, &queues), "430 us instead of 400");
        assert_eq!(
            adaptive.offer_to_module(&queues, class, 4_000, NOW),
            Some(0),
            "they wait where modules look"
        );
        assert!(adaptive.next_for_core(&queues, NOW).is_err());
        // Between two of its requests it may hold nothing; the core is not woken for that.
        assert!(module_takes(&adaptive, &queues) && !adaptive.on_module_drained(&queues, NOW));
        assert_eq!((0..24).filter(|_| module_takes(&adaptive, &queues)).count(), 23);
        // It is faster than was known.
        (0..12).for_each(|_| adaptive.record_module(0, &queues, class, &seen(900, true)));
        (0..9).for_each(|_| adaptive.record_module(0, &queues, class, &seen(220, true)));
        assert!(adaptive.on_module_drained(&queues, NOW) && !adaptive.alternation.has_turn());
        let ratio = || adaptive.costs.learned().on_module(0, class).ratio().unwrap();
        let before = ratio();
        adaptive.record_core(&queues, &[burst(class, 400)]);
        // Three times the turn of 430 us; a fourth pair of 220.
        let after = (3.0 * 430.0 + 220.0) / 4.0 * 3.0 / 400.0;
        assert!((before - 3.225).abs() < 1e-3 && (ratio() - after).abs() < 1e-3, "{}", ratio());
        adaptive.table(&queues, NOW);
        assert!(adaptive.current().is_open(0));
    }

    #[test]
    fn what_checks_take_of_the_only_core_counts_against_the_module() {
        // One in 32 results costs 400 us: 12.5 of each.
        let is_open = |turn| beside(turn, 0).0.current().is_open(0);
        assert_eq!([370, 385].map(is_open), [true, false]);
    }

    #[test]
    fn the_module_rests_while_the_core_has_its_turn() {
        let (adaptive, queues, class) = beside(300, 4_000);
        adaptive.set_oldest(0, Some((class, NOW)));
        assert!(!module_takes(&adaptive, &queues) && adaptive.alternation.has_turn(), "it is the core's");
        assert!(adaptive.next_for_core(&queues, NOW).is_err(), "the module is not drained yet");
        adaptive.set_oldest(0, None);
        assert_eq!(adaptive.next_for_core(&queues, NOW).ok().map(|claim| claim.jobs_max), Some(JOBS));
        assert!(!module_takes(&adaptive, &queues));
        assert_eq!(adaptive.next_for_core(&queues, NOW).err(), Some(Nanos::ZERO));
        assert!(!adaptive.alternation.has_turn() && module_takes(&adaptive, &queues));
    }

    #[test]
    fn nobody_sleeps_on_an_answer_that_a_turn_has_made_old_and_nobody_is_kept_awake_by_its_own_question() {
        let (adaptive, queues, class) = beside(300, 4_000);
        let news = || [WorkerKind::Core, WorkerKind::Module].map(|who| adaptive.alternation.has_changed(who));
        adaptive.set_oldest(0, Some((class, NOW)));
        assert!(adaptive.next_for_core(&queues, NOW).is_err(), "it leaves them to the module");
        assert!(!module_takes(&adaptive, &queues) && adaptive.alternation.has_turn(), "it is the core's");
        assert!(adaptive.next_for_core(&queues, NOW).is_err(), "the module is not drained yet");
        assert_eq!(news(), [false, false]);
        // Before the core sleeps.
        adaptive.set_oldest(0, None);
        assert!(adaptive.on_module_drained(&queues, NOW));
        assert_eq!(news(), [true, false]);
        assert!(adaptive.next_for_core(&queues, NOW).is_ok() && !module_takes(&adaptive, &queues));
        // Before the module does.
        assert_eq!(adaptive.next_for_core(&queues, NOW).err(), Some(Nanos::ZERO));
        assert!(adaptive.alternation.has_changed(WorkerKind::Module));
        assert!(module_takes(&adaptive, &queues));
        assert!(!adaptive.alternation.has_changed(WorkerKind::Module));
    }

    #[test]
    fn the_module_s_worker_takes_many_at_a_time_and_the_last_ones_one_by_one_where_a_core_may_want_them() {
        // The core was measured, so that nothing is owed.
        let row = |seen: &ModuleSample, waiting| {
            let (adaptive, queues, class) = beside_of(seen, waiting);
            adaptive.record_core(&queues, &[burst(class, 400)]);
            adaptive.next_for_module(0, &queues, NOW).map(|claim| claim.jobs_max)
        };
        let all = sample(300);
        assert_eq!([320, 47, 32, 1].map(|waiting| row(&all, waiting).ok()), [64, 47, 32, 1].map(Some));
        // It leaves most of the core.
        let part = ModuleSample { d: us(20), ..all };
        assert_eq!([320, 47, 32, 31].map(|waiting| row(&part, waiting).ok()), [20, 2, 2, 1].map(Some));
        let (adaptive, queues, class) = beside(300, 2_000);
        adaptive.record_core(&queues, &[burst(class, 400)]);
        assert!(adaptive.next_for_module(0, &queues, NOW).is_err(), "the core has its turn first");
        assert!(adaptive.next_for_core(&queues, NOW).is_ok_and(|claim| claim.jobs_max == JOBS));
        assert!(adaptive.next_for_core(&queues, NOW).is_err(), "which is over");
        assert_eq!(adaptive.next_for_module(0, &queues, NOW).ok().map(|claim| claim.jobs_max), Some(64));
        // Elsewhere a core may want them.
        let (adaptive, queues, class) = crate::adaptive::tests::adaptive(2);
        queues.queue_of(class);
        let mut jobs: Vec<_> = (0..2_000).map(|_| job(session(), 16_384)).collect();
        queues.push_all(&mut jobs);
        let alone = (0..40).find_map(|_| adaptive.next_for_module(0, &queues, NOW).ok());
        assert_eq!(alone.map(|claim| claim.jobs_max), Some(1));
    }

    #[test]
    fn requests_beside_a_core_that_works_change_nothing_that_is_known() {
        let (adaptive, queues, class) = beside(300, 0);
        let known = || adaptive.costs.learned().on_module(0, class).at(16_384).unwrap();
        (0..50).for_each(|_| adaptive.record_module(0, &queues, class, &seen(700, false)));
        assert_eq!(known(), (us(300), us(600)));
        (0..50).for_each(|_| adaptive.record_module(0, &queues, class, &seen(700, true)));
        assert_eq!(known(), (us(700), us(1_400)));
    }

    #[test]
    fn jobs_beside_a_module_that_works_are_no_half_of_a_pair() {
        let (adaptive, queues, class) = beside(300, 0);
        let pairs = || adaptive.costs.learned().on_module(0, class).in_turn.samples;
        let before = pairs();
        (0..21).for_each(|_| adaptive.record_module(0, &queues, class, &seen(300, true)));
        adaptive.record_core(&queues, &[CostSample { wall: us(16 * 450), ..burst(class, 400) }]);
        assert_eq!(pairs(), before);
        adaptive.record_core(&queues, &[CostSample { wall: us(16 * 410), ..burst(class, 400) }]);
        assert_eq!(pairs(), before + 1);
    }

    #[test]
    fn where_the_guard_would_lock_a_class_it_is_the_cores_turn_at_once() {
        let (adaptive, queues, class) = beside(300, 40);
        adaptive.record_core(&queues, &[burst(class, 400)]);
        assert!(module_takes(&adaptive, &queues), "so few are not worth a turn");
        // Perhaps the machine stood still for a moment.
        adaptive.record_module(0, &queues, class, &seen(20_000, true));
        assert!(!module_takes(&adaptive, &queues) && adaptive.alternation.has_turn());
        adaptive.plan_anew(&queues, NOW);
        assert!(adaptive.current().is_open(0), "the pair decides, not the guard");
    }

    #[test]
    fn a_module_was_alone_where_the_core_has_rested_all_the_time() {
        let (adaptive, ..) = beside(300, 0);
        let rests = |works: bool| {
            adaptive.alternation.set_core_working(works);
            adaptive.alternation.core_rest()
        };
        assert_eq!(
            [false, true, true, false, false, true].map(rests),
            [Some(0), None, None, Some(2), Some(2), None]
        );
    }

    #[test]
    fn what_tries_cost_in_their_turn_is_not_held_against_the_class() {
        let (adaptive, queues, class) = beside(500, 24);
        adaptive.record_core(&queues, &[burst(class, 400)]);
        adaptive.offer_to_module(&queues, class, 4_000, NOW);
        (0..24).for_each(|_| adaptive.record_module(0, &queues, class, &seen(1_600, true)));
        assert!(!adaptive.state().is_locked(0, 0, NOW));
    }
}
