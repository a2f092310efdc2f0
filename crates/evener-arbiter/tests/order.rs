//! Permits of real threads and processes: exact order, bounded waits, places.
#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use std::sync::Mutex;
use std::thread;

use evener_arbiter::{Arbiter, Costs, Mean, Module, Options, Refused};
use evener_core::{Algorithm, Class, Direction, Nanos};

use support::{AGES, FOREVER, Ground, LONG, ffi, until};

/// A process has 32 places, so that a thousand threads need as many as 40 attachments of 25.
const ATTACHMENTS: usize = 40;
const THREADS: usize = 25;

#[test]
fn a_thousand_waiters_are_served_in_the_order_in_which_they_came() {
    let ground = Ground::new();
    let modules: Vec<Module> = (0..ATTACHMENTS).map(|_| ground.attach().module("one", 1)).collect();
    let (watcher, served) = (ground.attach(), Mutex::new(Vec::new()));
    let held = watcher.module("one", 1).acquire(AGES, FOREVER).unwrap();
    thread::scope(|scope| {
        for number in 0..ATTACHMENTS * THREADS {
            let (module, served) = (&modules[number % ATTACHMENTS], &served);
            scope.spawn(move || {
                let permit = module.acquire(LONG, FOREVER).unwrap();
                served.lock().unwrap().push(number);
                drop(permit);
            });
            until("the next one joins", || watcher.snapshot().modules[0].waiting.len() == number + 1);
        }
        drop(held);
    });
    assert_eq!(served.into_inner().unwrap(), (0..ATTACHMENTS * THREADS).collect::<Vec<_>>());
    let end = watcher.snapshot();
    assert!(end.modules[0].holders.is_empty() && end.modules[0].waiting.is_empty());
}

#[test]
fn as_many_hold_permits_as_there_are_and_the_next_is_refused() {
    let ground = Ground::new();
    let module = ground.attach().module("three", 3);
    let other = ground.attach().module("three", 5);
    assert_eq!([module.capacity(), other.capacity()], [Some(3); 2]);
    let held =
        [module.try_acquire(AGES), other.try_acquire(AGES), module.try_acquire(AGES)].map(Result::unwrap);
    assert_eq!(other.try_acquire(LONG).unwrap_err(), Refused::Busy);
    let short = Nanos(1_000);
    assert_eq!(module.acquire(LONG, short).unwrap_err(), Refused::TooLong);
    drop(held);
    assert!(other.try_acquire(LONG).is_ok());
}

/// A module of so many permits in a directory of its own.
fn grounded(name: &str, capacity: u32) -> (Ground, Module) {
    let ground = Ground::new();
    let module = ground.attach().module(name, capacity);
    (ground, module)
}

#[test]
fn a_wait_ends_when_its_time_is_over() {
    let (_ground, module) = grounded("one", 1);
    // Said to take no time, so that the outlook is good.
    let held = module.try_acquire(Nanos::ZERO).unwrap();
    assert_eq!(module.acquire(LONG, Nanos::from_millis(30)).unwrap_err(), Refused::TimedOut);
    drop(held);
    assert!(module.try_acquire(LONG).is_ok());
}

#[test]
fn a_process_has_as_many_requests_at_once_as_it_has_places_and_no_more() {
    let (_ground, module) = grounded("many", 64);
    let held: Vec<_> = (0..32).map(|_| module.try_acquire(LONG).unwrap()).collect();
    assert_eq!(module.try_acquire(LONG).unwrap_err(), Refused::NoPlace);
    drop(held);
    assert!(module.try_acquire(LONG).is_ok());
}

#[test]
fn the_expected_start_counts_the_work_of_all_processes_over_the_permits() {
    let ground = Ground::new();
    let (mine, other) = (ground.attach().module("two", 2), ground.attach().module("two", 2));
    assert_eq!(mine.expected_start(), Some(Nanos::ZERO));
    // Long enough that what passes meanwhile is nothing.
    let hour = Nanos::from_millis(4_000);
    let _held = [other.try_acquire(hour).unwrap(), mine.try_acquire(hour).unwrap()];
    let expected = mine.expected_start().unwrap();
    assert!(expected > Nanos::from_millis(2_000) && expected <= hour, "{expected:?}");
}

#[test]
fn costs_that_one_process_learned_are_read_by_the_next() {
    let ground = Ground::new();
    let class = |bytes| Class::of(Algorithm::ALL[0], Direction::Encrypt, bytes, false);
    let mean = |ns| Mean { ns, deviation_ns: ns / 10 };
    let costs = Costs { c: mean(900), d: mean(100), h: mean(400), bytes: 16_000, samples: 9 };
    let learned = ffi::child(|| {
        ground.attach().module("learned", 1).publish(class(16_384), &costs);
        true
    });
    assert!(learned.ends_well());
    let module = ground.attach().module("learned", 1);
    assert_eq!(module.costs(class(16_384)), Some(costs));
    assert_eq!(module.costs(class(64)), None);
    assert_eq!(ground.attach().module("other", 1).costs(class(16_384)), None);
}

#[test]
fn a_process_of_weight_three_has_three_requests_for_each_one_of_others() {
    let ground = Ground::new();
    let heavy = Arbiter::attach(&Options { weight: 3, ..ground.options() }).unwrap();
    let watcher = ground.attach();
    let all: Vec<Module> =
        [heavy].into_iter().chain((0..4).map(|_| ground.attach())).map(|one| one.module("one", 1)).collect();
    let held = watcher.module("one", 1).acquire(AGES, FOREVER).unwrap();
    let (served, waiting) = (Mutex::new(String::new()), || watcher.snapshot().modules[0].waiting.len());
    // Each comes again as soon as it was served: a thread that holds lets go once all others wait.
    let come_again = |module: &Module, name: char| {
        loop {
            let permit = module.acquire(LONG, FOREVER).unwrap();
            if served.lock().unwrap().len() >= 35 {
                return;
            }
            served.lock().unwrap().push(name);
            until("the others wait", || waiting() == 4 || served.lock().unwrap().len() >= 35);
            drop(permit);
        }
    };
    thread::scope(|scope| {
        for (number, module) in all.iter().enumerate() {
            let come_again = &come_again;
            scope.spawn(move || come_again(module, if number == 0 { 'H' } else { 'l' }));
            until("it waits", || waiting() == number + 1);
        }
        drop(held);
    });
    // Without a weight it would have 7 of 35. How much of the way to three of seven it has depends on whether it comes again before the next one is awake.
    let served = served.into_inner().unwrap();
    let heavy = served.matches('H').count();
    assert!((11..=16).contains(&heavy), "{heavy} of {served}");
}

#[test]
fn flags_are_taken_by_whoever_comes_first_and_are_not_lost() {
    let ground = Ground::new();
    let module = ground.attach().module("flags", 2);
    let inside = std::sync::atomic::AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let permit = module.acquire_flag(LONG, FOREVER).unwrap();
                    let before = inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    assert!(before < 2, "{before} before it");
                    inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                    drop(permit);
                }
            });
        }
    });
    assert!(module.try_acquire(LONG).is_ok() && module.expected_start() == Some(Nanos::ZERO));
}
