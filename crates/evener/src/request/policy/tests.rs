//! What of a program's requests goes to a module, of which the tests say what it takes: requests in virtual time but for one test.

use evener_arbiter::{Costs, Mean};
use evener_core::plan::adaptive;
use evener_core::{Algorithm, Direction};
use evener_testing::arbiters::ArbiterFolder;

use super::super::shared_module::QUESTIONS;
use super::choice::Chosen;
use super::*;
use crate::core_price::scaled;

const BYTES: usize = 16_384;

/// Requests at a module that is free, with so much beside them.
fn query(concurrency: Concurrency) -> Query<'static> {
    let class = Class::of(Algorithm::Aes128Cbc, Direction::Encrypt, BYTES, false);
    Query { size: RequestSize { kind: 0, bytes: BYTES }, class, ahead: &[Some(0)], shared: &[], concurrency }
}

/// One that knows nothing yet.
fn unlearned() -> &'static Policy {
    Box::leak(Box::new(Policy::new()))
}

/// Keeps this thread's core busy.
fn spin(time: Nanos) {
    let began = SystemClock.thread_time();
    while SystemClock.thread_time() - began < time {}
}

/// What was learned of a module by its first two requests, before, in and after each of which the thread is busy for `besides` with something
/// else: asking, comparing, looking at clocks.
fn learned(besides: Nanos) -> [(u64, Nanos); 2] {
    let (policy, query) = (unlearned(), query(Concurrency::Alone));
    let went = || loop {
        let mut turn = policy.begin(&query);
        if !turn.stays() {
            spin(besides);
        }
        turn.begins();
        if turn.stays() {
            // A slow core, so that the class is soon worth a try.
            spin(Nanos::from_millis(5));
        } else {
            turn.excluding(|| spin(besides));
        }
        let stays = turn.stays();
        turn.end(|| {
            if !stays {
                spin(besides);
            }
            Nanos::ZERO
        });
        if !stays {
            let learned = policy.learned.lock().expect("nobody panics here");
            let known = learned.estimator.on_module(0, query.class);
            let took = known.at(BYTES).map_or(Nanos::ZERO, |(d, h)| d + h);
            return (known.d.samples.into(), took);
        }
    };
    [went(), went()]
}

/// Requests of 300 us on a core, at a module that takes so long for its first request of all, its first 12 after 3 ms of rest, of
/// which the first takes five times as long, and for others: how many of the last 500 of 2000 went there, and how many in all.
fn went(first_us: u64, cold_us: u64, warm_us: u64) -> (usize, usize) {
    let (policy, query) = (unlearned(), query(Concurrency::Alone));
    let mut learned = policy.learned.lock().expect("nobody panics here");
    let count = |part: &[bool]| part.iter().filter(|is_gone| **is_gone).count();
    let (mut now, mut rested, mut awake, mut gone) = (Nanos::from_millis(1_000), 10, 0, Vec::new());
    for _ in 0..2_000 {
        let turn = Measurement::unsampled(policy, &query);
        let is_gone = matches!(learned.choose(&query, 0, now), Choice::Module(_));
        (rested, awake) = if is_gone { (0, awake + 1) } else { (rested + 1, awake) };
        awake = if rested >= 10 { 0 } else { awake };
        let took = Nanos::from_micros(match is_gone {
            true if count(&gone) == 0 => first_us,
            true if awake == 1 => 5 * cold_us,
            true if awake <= 12 => cold_us,
            true => warm_us,
            false => 300,
        });
        now += took;
        match is_gone {
            true => _ = learned.went(&turn.booked(), 0, took, Some(scaled(took, 0.8)), now),
            false => learned.stayed(&turn.booked(), took, took),
        }
        gone.push(is_gone);
    }
    (count(&gone[1_500..]), count(&gone))
}

#[test]
fn a_module_that_is_slow_after_a_rest_is_known_by_what_it_takes_once_it_is_awake() {
    let [late, awake, opened_late] = [(400, 400, 240), (180, 180, 180), (40_000, 400, 240)]
        .map(|(first, cold, warm)| went(first, cold, warm).0);
    assert!([late, awake, opened_late].iter().all(|&count| count > 480), "{late} {awake} {opened_late}");
}

#[test]
fn a_module_of_no_use_gets_few_requests_and_a_hopeless_one_next_to_none() {
    let [slow, hopeless, dead] =
        [(400, 330), (1_500, 1_500), (9_000, 9_000)].map(|(cold, warm)| went(cold, cold, warm).1);
    assert!((8..=40).contains(&slow), "{slow}");
    assert!((2..=8).contains(&hopeless) && (2..=4).contains(&dead), "{hopeless} {dead}");
}

/// Whether a module loses requests that take ten times as long there and a tenth of the core time.
fn loses(concurrency: Concurrency) -> bool {
    let (policy, query) = (unlearned(), query(concurrency));
    let mut learned = policy.learned.lock().expect("nobody panics here");
    let mut now = Nanos::from_millis(1_000);
    (0..200).any(|_| {
        let turn = Measurement::unsampled(policy, &query);
        match learned.choose(&query, 0, now) {
            Choice::Module(Chosen { module, .. }) => {
                now += Nanos::from_millis(3);
                learned.went(&turn.booked(), module, Nanos::from_millis(3), Some(Nanos::from_micros(30)), now)
            }
            Choice::Control | Choice::Inline => {
                now += Nanos::from_micros(300);
                learned.stayed(&turn.booked(), Nanos::from_micros(300), Nanos::from_micros(300));
                false
            }
        }
    })
}

#[test]
fn a_module_is_tried_as_soon_as_so_much_was_worked() {
    let (policy, query, each) = (unlearned(), query(Concurrency::Alone), Nanos::from_millis(2));
    let mut now = Nanos::from_millis(1_000);
    let stayed = (0..).take_while(|_| {
        let turn = policy.begin_at(&query, now);
        let stays = turn.stays();
        now += each;
        turn.end_at(Some(each), Nanos::ZERO, now);
        stays
    });
    assert_eq!(stayed.count() as u64, adaptive::TUNING.try_work_min.0 / each.0);
}

#[test]
fn most_requests_that_stay_are_not_looked_at_whatever_stands_beside_them() {
    for concurrency in [Concurrency::Alone, Concurrency::SameThread] {
        let (policy, mut now) = (unlearned(), Nanos::from_millis(1_000));
        let query = Query { ahead: &[None], ..query(concurrency) };
        let mut looks = 0;
        for _ in 0..1_000 {
            if !policy.is_unsampled(query.class, concurrency) {
                looks += 1;
                now += Nanos::from_micros(10);
                policy.begin_at(&query, now).end_at(Some(Nanos::from_micros(10)), Nanos::ZERO, now);
            }
        }
        assert!(looks < 40, "{concurrency:?}: {looks}");
    }
}

/// What became of requests of 2 us at a module that is known to take 50 us of a core for each.
#[derive(Debug, Default)]
struct Small {
    looks: u32,
    went: u32,
    /// Questions to all processes' module.
    questions: u32,
}

/// So many of them, of a process that others told so.
fn small_requests(count: u32) -> Small {
    let folder = ArbiterFolder::new();
    let arbiter = folder.attach();
    let query = query(Concurrency::Alone);
    let mean = |ns| Mean { ns, deviation_ns: ns / 10 };
    let told = Costs { c: mean(2_000), d: mean(50_000), h: mean(10_000), bytes: 16_384, samples: 15 };
    arbiter.module("host", 64).publish(query.class, &told);
    let shared: &'static SharedModule = Box::leak(Box::new(SharedModule::new(&arbiter, "host", 64)));
    let query = Query { shared: &[Some(shared)], ..query };
    let (policy, mut now, mut seen) = (unlearned(), Nanos::from_millis(1_000), Small::default());
    let before = QUESTIONS.get();
    for _ in 0..count {
        let is_looked_at = !policy.is_unsampled(query.class, query.concurrency);
        let turn = is_looked_at.then(|| policy.begin_at(&query, now));
        let stays = turn.as_ref().is_none_or(Measurement::stays);
        seen.looks += u32::from(is_looked_at);
        seen.went += u32::from(!stays);
        now += Nanos::from_micros(if stays { 2 } else { 60 });
        let core = Nanos::from_micros(if stays { 2 } else { 50 });
        turn.into_iter().for_each(|turn| _ = turn.end_at(Some(core), Nanos::ZERO, now));
    }
    Small { questions: QUESTIONS.get() - before, ..seen }
}

#[test]
fn of_small_requests_that_no_module_pays_for_few_are_looked_at_and_others_are_asked_about_none() {
    let [first, all] = [90_000, 1_000_000].map(small_requests);
    // 180 ms of work, less than what the first try is worth.
    assert!(first.looks < 200 && (first.went, first.questions) == (0, 0), "{first:?}");
    // 2 s, in which it may be tried.
    assert!(all.looks < 500 && all.went < 60 && all.questions <= all.went, "{all:?}");
}

#[test]
fn time_counts_where_a_call_waits_for_it_and_not_where_its_thread_goes_on() {
    assert_eq!([Concurrency::SameCall, Concurrency::SameThread].map(loses), [true, false]);
}

/// Requests of 1 ms on a core, at a module that takes 80 us of the first so many and `later` of others, half of it core time: how many
/// went, how many were looked at, and what those that went took longer than on a core.
fn unsampled_runs(first: usize, later: Nanos) -> (usize, usize, Nanos) {
    let (policy, query) = (unlearned(), query(Concurrency::Alone));
    let (mut now, mut went, mut looks, mut lost) = (Nanos::from_millis(1_000), 0, 0, Nanos::ZERO);
    for _ in 0..4_000 {
        let turn = policy.begin_at(&query, now);
        let on_core = Nanos::from_millis(1);
        looks += usize::from(turn.unsampled_run.is_none());
        let took = match turn.stays() {
            true => on_core,
            false if went < first => Nanos::from_micros(80),
            false => later,
        };
        if !turn.stays() {
            went += 1;
            lost += took - on_core;
        }
        now += took;
        turn.end_at(Some(Nanos(took.0 / 2)), Nanos::ZERO, now);
    }
    assert_eq!(
        routed(policy, query.class),
        went as u64,
        "all of them were booked but for the last unsampled run"
    );
    (went, looks, lost)
}

/// Requests that the guard has booked, with those that are still to be.
fn routed(policy: &Policy, class: Class) -> u64 {
    let (_, waiting) = policy.unsampled_runs.of(class).map(UnsampledRun::take_stats).unwrap_or_default();
    let first = 1; // At a module that was never asked, which is booked nowhere.
    let learned = policy.learned.lock().expect("nobody panics here");
    learned.guard.total().routed_jobs + u64::from(waiting.requests) + first
}

/// As [`unsampled_runs`], at a module that takes 80 us but for three in a row that meet a stall of 3 ms: how many of 4000 went.
fn went_beside_a_stall() -> usize {
    let (policy, query) = (unlearned(), query(Concurrency::Alone));
    let (mut now, mut went) = (Nanos::from_millis(1_000), 0);
    for _ in 0..4_000 {
        let turn = policy.begin_at(&query, now);
        let stays = turn.stays();
        went += usize::from(!stays);
        let took = match stays {
            true => Nanos::from_micros(300),
            false if (500..503).contains(&went) => Nanos::from_micros(3_000),
            false => Nanos::from_micros(80),
        };
        now += took;
        // Little core time: many jobs beside a busy core would pay there all the same.
        let core = if stays { took } else { Nanos::from_micros(40) };
        turn.end_at(Some(core), Nanos::ZERO, now);
    }
    went
}

#[test]
fn a_module_that_met_a_stall_is_asked_again_soon() {
    let went = went_beside_a_stall();
    // What the guard locks for the stall are 1200 requests of 300 us.
    assert!(went > 2_300, "{went}");
}

#[test]
fn none_follow_one_that_locked_its_class() {
    let (policy, query) = (unlearned(), query(Concurrency::Alone));
    let (mut now, mut went) = (Nanos::from_millis(1_000), 0);
    let is_locked = (0..4_000).any(|_| {
        let turn = policy.begin_at(&query, now);
        let (stays, is_looked_at) = (turn.stays(), turn.unsampled_run.is_none());
        went += usize::from(!stays);
        // One that is looked at, of which others are to follow.
        let is_slow = !stays && is_looked_at && went > 500;
        let took = Nanos::from_micros(if stays { 1_000 } else { 80 });
        now += if is_slow { Nanos::from_millis(20) } else { took };
        turn.end_at(Some(took), Nanos::ZERO, now)
    });
    assert!(is_locked && policy.begin_at(&query, now).stays());
}

#[test]
fn most_requests_at_a_module_that_pays_follow_others_without_a_look() {
    let (went, looks, lost) = unsampled_runs(usize::MAX, Nanos::ZERO);
    assert!(went > 3_900 && looks < went / 8 && lost == Nanos::ZERO, "{went} {looks} {lost}");
}

#[test]
fn a_module_that_grows_slow_is_left_after_what_the_guard_allows_and_one_streak() {
    for later in [2, 5, 20] {
        let (went, _, lost) = unsampled_runs(500, Nanos::from_millis(later));
        // 5 ms at first and 1 ms for a try after each lock, of which five end in 4 s, and of each the request that is over it.
        let most = Nanos::from_millis(10 + 7 * later);
        assert!((500..540).contains(&went) && lost < most, "{later}: {went} {lost}");
    }
}

#[test]
fn the_first_request_at_a_module_and_what_is_done_around_and_besides_teach_nothing() {
    let besides = Nanos::from_millis(40);
    // Whatever else the machine does may come between, but hardly each time.
    let is_right = (0..5).any(|_| {
        let [(first, _), (second, took)] = learned(besides);
        (first, second) == (0, 1) && took < besides
    });
    assert!(is_right);
}
