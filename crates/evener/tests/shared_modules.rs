//! Single requests at a module that other processes have, too: each test's processes are children of a fork, for each has a policy of its own.
//!
//! The module is a sleep, the core a loop: what they take is ten times apart, so that no noise turns them round.

use std::hint::black_box;
use std::thread;
use std::time::Duration;

use evener::SystemClock;
use evener::offload::policy::{Concurrency, Measurement, Query, policy, prepare};
use evener::offload::{Refused, SharedModule};
use evener_arbiter::{Arbiter, Costs, Mean, Module};
use evener_core::driver::Clock as _;
use evener_core::guard::RequestSize;
use evener_core::{Algorithm, Class, Direction, Nanos};
use evener_testing::arbiters::ArbiterFolder;
use evener_testing::programs::is_right_in_child;
use evener_testing::waiting::soon;

const BYTES: usize = 16_384;
const ON_CORE: Nanos = Nanos::from_millis(20);
const AT_MODULE: Duration = Duration::from_micros(400);
const AGES: Nanos = Nanos::from_millis(4_000);

fn class() -> Class {
    Class::of(Algorithm::Aes128Cbc, Direction::Encrypt, BYTES, false)
}

/// As one process knows the module, and as the tests themselves look at it.
fn module(arbiter: &Arbiter) -> (&'static SharedModule, Module) {
    (Box::leak(Box::new(SharedModule::new(arbiter, "sleep", 1))), arbiter.module("sleep", 1))
}

fn begin(shared: &'static SharedModule, concurrency: Concurrency) -> Measurement {
    let shared = [Some(shared)];
    let query = Query {
        size: RequestSize { kind: 0, bytes: BYTES },
        class: class(),
        ahead: &[Some(0)],
        shared: &shared,
        concurrency,
    };
    let mut turn = policy().expect("the kernel tells of forks").begin(&query);
    turn.begins();
    turn
}

/// What became of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Went {
    Stayed,
    Module,
    Refused(Refused),
}

/// One request from its beginning to its end, of a caller that waits for it.
fn request(shared: &'static SharedModule) -> Went {
    request_of(shared, Concurrency::Alone, ON_CORE)
}

/// One with that beside it, which takes a core so long.
fn request_of(shared: &'static SharedModule, concurrency: Concurrency, on_core: Nanos) -> Went {
    let turn = begin(shared, concurrency);
    let went = match turn.module().map(|_| turn.acquire(shared)) {
        None => Went::Stayed,
        Some(Err(why)) => Went::Refused(why),
        Some(Ok(permit)) => {
            thread::sleep(AT_MODULE);
            drop(permit);
            Went::Module
        }
    };
    if went != Went::Module {
        let began = SystemClock.thread_time();
        while SystemClock.thread_time() - began < on_core {
            black_box(());
        }
    }
    turn.end(|| Nanos::ZERO);
    went
}

/// Requests until one that goes to the module is no news any more.
fn learn(shared: &'static SharedModule) {
    let went = (0..2_000).filter(|_| request(shared) == Went::Module).take(40).count();
    assert_eq!(went, 40);
}

#[test]
fn the_first_request_of_a_second_process_goes_where_the_first_process_learned_that_it_pays() {
    prepare();
    let folder = ArbiterFolder::new();
    let alone = || assert_eq!(request(module(&folder.attach()).0), Went::Stayed);
    assert!(is_right_in_child(alone));
    assert!(is_right_in_child(|| learn(module(&folder.attach()).0)));
    let costs = folder.attach().module("sleep", 1).costs(class()).expect("they were told");
    assert!(costs.samples > 1 && costs.d.ns < costs.c.ns && costs.h.ns < costs.c.ns, "{costs:?}");
    assert!(is_right_in_child(|| {
        let shared = module(&folder.attach()).0;
        assert_eq!(request(shared), Went::Module);
    }));
}

#[test]
fn a_request_that_would_wait_longer_than_a_core_takes_stays_and_one_that_would_not_waits() {
    prepare();
    let folder = ArbiterFolder::new();
    assert!(is_right_in_child(|| {
        let arbiter = folder.attach();
        let (shared, other) = module(&arbiter);
        learn(shared);
        let held_since = SystemClock.now();
        let held = other.try_acquire(AGES).expect("it is free");
        let is_far_from_over = || SystemClock.now() - held_since < Nanos(AGES.0 / 2);
        // One that follows another without a look may find it out; then each is asked about.
        let went: Vec<Went> = (0..20).take_while(|_| is_far_from_over()).map(|_| request(shared)).collect();
        assert!(
            went.iter().all(|went| matches!(went, Went::Stayed | Went::Refused(Refused::TooLong))),
            "{went:?}"
        );
        assert!(went.iter().filter(|went| **went != Went::Stayed).count() <= 1, "{went:?}");
        drop(held);
        assert!((0..400).any(|_| request(shared) == Went::Module));
        // It is said to be over soon, and is so but where this thread loses its core: then the wait may pass the time that a core takes.
        let waits_and_goes = || {
            let held = other.try_acquire(Nanos::from_micros(200)).expect("it is free");
            thread::scope(|scope| {
                let waits =
                    scope.spawn(|| (0..40).map(|_| request(shared)).find(|went| *went != Went::Stayed));
                assert!(soon(|| !arbiter.snapshot().modules[0].waiting.is_empty()));
                drop(held);
                waits.join().expect("no panic") == Some(Went::Module)
            })
        };
        assert!((0..20).any(|_| waits_and_goes()));
    }));
}

#[test]
fn time_in_which_others_had_the_module_is_not_taken_for_what_it_takes() {
    prepare();
    let folder = ArbiterFolder::new();
    assert!(is_right_in_child(|| {
        let (shared, other) = module(&folder.attach());
        learn(shared);
        let before = other.costs(class()).expect("they were told").h.ns;
        // Each waits for 3 ms, which was not known before.
        thread::scope(|scope| {
            let holds = scope.spawn(|| {
                for _ in 0..60 {
                    let held = other.acquire(Nanos(1), AGES).expect("nobody has it for long");
                    thread::sleep(Duration::from_millis(3));
                    drop(held);
                }
            });
            while !holds.is_finished() {
                request(shared);
            }
        });
        (0..64).for_each(|_| _ = request(shared));
        let after = other.costs(class()).expect("they were told").h.ns;
        assert!(after < 4 * before, "{before} {after}");
    }));
}

#[test]
fn a_process_that_is_told_that_a_module_does_not_pay_asks_it_nothing_before_it_has_worked_a_while() {
    prepare();
    let folder = ArbiterFolder::new();
    let mean = |ns| Mean { ns, deviation_ns: ns / 10 };
    let (c, d, h) = (mean(2_000_000), mean(4_000_000), mean(100_000));
    let costs = Costs { c, d, h, bytes: 16_384, samples: 15 };
    let _segment = folder.attach();
    folder.attach().module("sleep", 1).publish(class(), &costs);
    assert!(is_right_in_child(|| {
        let shared = module(&folder.attach()).0;
        let short = || request_of(shared, Concurrency::Alone, Nanos::from_millis(2));
        assert_eq!(short(), Went::Stayed);
        // By the clock a try is due.
        thread::sleep(Duration::from_millis(1_100));
        let first: Vec<Went> = (0..80).map(|_| short()).collect();
        assert!(first.iter().all(|went| *went == Went::Stayed), "160 ms of work: {first:?}");
        assert!((0..1_000).any(|_| short() == Went::Module), "and then it looks whether that is so");
    }));
}

#[test]
fn requests_beside_others_of_their_thread_go_to_a_shared_module_once_so_much_was_worked() {
    prepare();
    let folder = ArbiterFolder::new();
    let _segment = folder.attach();
    assert!(is_right_in_child(|| {
        let shared = module(&folder.attach()).0;
        let job = || request_of(shared, Concurrency::SameThread, ON_CORE);
        let first: Vec<Went> = (0..24).map(|_| job()).collect();
        assert!(first.iter().all(|went| *went == Went::Stayed), "480 ms of work: {first:?}");
        assert!((0..100).any(|_| job() == Went::Module));
    }));
}
