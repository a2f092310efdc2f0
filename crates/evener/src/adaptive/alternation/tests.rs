//! The protocol of turns, worker by worker and step by step, on one thread.

use evener_core::cost::Line;
use evener_core::estimate::ModuleSample;
use evener_core::{Class, Estimator, Method, Nanos, Sample};

use super::*;
use crate::adaptive::claim::AskAgainWithin;
use crate::adaptive::tests::adaptive_with;
use crate::adaptive::tuning::TUNING;
use crate::adaptive::{AdaptivePolicy, Circumstances, Observation};
use crate::costs::CostSample;
use crate::queue::test_support::{job, session};

const fn us(micros: u64) -> Nanos {
    Nanos::from_micros(micros)
}

const NOW: Nanos = Nanos::from_millis(10);

fn sample(turn: u64) -> ModuleSample {
    ModuleSample { jobs: 1, bytes: 16_384, d: us(turn), h: us(2 * turn), now: NOW }
}

fn observation(turn: u64, is_alone: bool) -> Observation {
    let circumstances = Circumstances { opened_key: false, is_alone };
    Observation { sample: sample(turn), waited: Nanos::ZERO, circumstances }
}

/// As that, but it took so long.
fn delayed(burst: CostSample, wall: Nanos) -> CostSample {
    CostSample { took: Sample { wall, ..burst.took }, ..burst }
}

fn burst(class: Class, each: u64) -> CostSample {
    let (core, bytes) = (us(16 * each), 16 * 16_384);
    CostSample {
        class,
        method: Method::Plain,
        took: Sample { jobs: 16, bytes, core, wall: core },
        stands_for: 1,
    }
}

/// The only core, which takes 400 us for what the only module takes `turn` for, and so many jobs that wait.
fn beside(turn: u64, waiting: usize) -> (AdaptivePolicy, ClassQueues<'static>, Class) {
    competing(&sample(turn), waiting)
}

fn competing(observation: &ModuleSample, waiting: usize) -> (AdaptivePolicy, ClassQueues<'static>, Class) {
    let class = job(session(), 16_384).class();
    let mut learned = Estimator::new(1);
    learned.keep_overhead(0, Line { fixed_ns: 100_000, per_byte_ps: 0 });
    for _ in 0..16 {
        learned.saw_cpu(class, Method::Plain, 16, 16 * 16_384, us(16 * 400));
        learned.saw_module(0, class, observation);
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
    (0..300).for_each(|_| adaptive.record_module(0, &queues, class, &observation(100, true)));
    assert!(module_takes(&adaptive, &queues) && !adaptive.alternation.has_turn());
    // Until the core's turn says otherwise.
    adaptive.record_core(&queues, &[burst(class, 40)]);
    (0..300).for_each(|_| adaptive.record_module(0, &queues, class, &observation(100, true)));
    assert!(!module_takes(&adaptive, &queues) && adaptive.alternation.has_turn());
}

#[test]
fn the_core_rests_while_the_module_has_its_turn_and_the_pair_decides() {
    let (adaptive, queues, class) = beside(430, 24);
    assert!(!module_takes(&adaptive, &queues), "430 us instead of 400");
    assert_eq!(adaptive.offer_to_module(&queues, class, 4_000, NOW), Some(0), "they wait where modules look");
    assert!(adaptive.next_for_core(&queues, NOW).is_err());
    // Between two of its requests it may hold nothing; the core is not woken for that.
    assert!(module_takes(&adaptive, &queues) && !adaptive.on_module_drained(&queues, NOW));
    assert_eq!((0..24).filter(|_| module_takes(&adaptive, &queues)).count(), 23);
    // It is faster than was known.
    (0..12).for_each(|_| adaptive.record_module(0, &queues, class, &observation(900, true)));
    (0..9).for_each(|_| adaptive.record_module(0, &queues, class, &observation(220, true)));
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
    assert_eq!(adaptive.next_for_core(&queues, NOW).ok().map(|claim| claim.jobs_max), Some(TUNING.jobs));
    assert!(!module_takes(&adaptive, &queues));
    assert_eq!(adaptive.next_for_core(&queues, NOW).err(), Some(AskAgainWithin(Nanos::ZERO)));
    assert!(!adaptive.alternation.has_turn() && module_takes(&adaptive, &queues));
}

#[test]
fn nobody_sleeps_on_an_answer_that_a_turn_has_made_old_and_nobody_is_kept_awake_by_its_own_question() {
    let (adaptive, queues, class) = beside(300, 4_000);
    let news =
        || [WorkerKind::Core, WorkerKind::Module].map(|worker| adaptive.alternation.has_changed(worker));
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
    assert_eq!(adaptive.next_for_core(&queues, NOW).err(), Some(AskAgainWithin(Nanos::ZERO)));
    assert!(adaptive.alternation.has_changed(WorkerKind::Module));
    assert!(module_takes(&adaptive, &queues));
    assert!(!adaptive.alternation.has_changed(WorkerKind::Module));
}

#[test]
fn the_module_s_worker_takes_many_at_a_time_and_the_last_ones_one_by_one_where_a_core_may_want_them() {
    // The core was measured, so that nothing is owed.
    let row = |observation: &ModuleSample, waiting| {
        let (adaptive, queues, class) = competing(observation, waiting);
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
    assert!(adaptive.next_for_core(&queues, NOW).is_ok_and(|claim| claim.jobs_max == TUNING.jobs));
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
    (0..50).for_each(|_| adaptive.record_module(0, &queues, class, &observation(700, false)));
    assert_eq!(known(), (us(300), us(600)));
    (0..50).for_each(|_| adaptive.record_module(0, &queues, class, &observation(700, true)));
    assert_eq!(known(), (us(700), us(1_400)));
}

#[test]
fn jobs_beside_a_module_that_works_are_no_half_of_a_pair() {
    let (adaptive, queues, class) = beside(300, 0);
    let pairs = || adaptive.costs.learned().on_module(0, class).in_turn.samples;
    let before = pairs();
    (0..21).for_each(|_| adaptive.record_module(0, &queues, class, &observation(300, true)));
    adaptive.record_core(&queues, &[delayed(burst(class, 400), us(16 * 450))]);
    assert_eq!(pairs(), before);
    adaptive.record_core(&queues, &[delayed(burst(class, 400), us(16 * 410))]);
    assert_eq!(pairs(), before + 1);
}

#[test]
fn where_the_guard_would_lock_a_class_it_is_the_cores_turn_at_once() {
    let (adaptive, queues, class) = beside(300, 40);
    adaptive.record_core(&queues, &[burst(class, 400)]);
    assert!(module_takes(&adaptive, &queues), "so few are not worth a turn");
    // Perhaps the machine stood still for a moment.
    adaptive.record_module(0, &queues, class, &observation(20_000, true));
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
    (0..24).for_each(|_| adaptive.record_module(0, &queues, class, &observation(1_600, true)));
    assert!(!adaptive.state().is_locked(0, 0, NOW));
}
