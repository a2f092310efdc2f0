//! Small models of the gathering, its permits and its values, each run through every interleaving with few preemptions.
//!
//! Each mutant of `caller_slot.rs`, `combining_list.rs` and `object_pool.rs` in `src/lending/` must turn a model red
//! (`docs/design/ring.md` says which). Loans are places that loom watches, so that a model fails when memory is touched without
//! right or order, not only when a wrong value comes out.
use std::panic::{AssertUnwindSafe, catch_unwind};

use evener_ring::{CombiningList, LendOutcome, LentWork, ObjectPool, PerFork};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use loom::thread;

use super::{beside, shared};

/// Adds one to what is lent; the reply is what stood there.
struct AddOne;

/// A number that loom watches: changed only through `with_mut`, which demands that all that was done to it before
/// happened before, so that it behaves as plain memory does.
struct Watched(AtomicU32);

impl LentWork for AddOne {
    type Loan<'c> = &'c mut Watched;
    type Reply = u32;
}

type Hall = Arc<CombiningList<AddOne>>;

/// As [`super::model`]; but a failed assertion ends the program: a caller whose loan is lost, as with some mutants,
/// waits for ever, in unwinding too. Loom ends its own threads by panics that say nothing; those go on.
fn model(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let default_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        default_hook(info);
        let payload = info.payload();
        if payload.is::<&str>() || payload.is::<String>() {
            std::process::abort();
        }
    }));
    super::model(preemptions, body);
}

fn add_one(loans: Vec<&mut Watched>) -> Vec<u32> {
    loans.into_iter().map(Watched::add_one).collect()
}

impl Watched {
    fn new(value: u32) -> Self {
        Self(AtomicU32::new(value))
    }

    fn add_one(&mut self) -> u32 {
        self.set(|value| value + 1)
    }

    /// Returns what stood there.
    fn set(&mut self, change: impl FnOnce(u32) -> u32) -> u32 {
        self.0.with_mut(|value| std::mem::replace(value, change(*value)))
    }

    fn value(&mut self) -> u32 {
        self.set(|value| value)
    }
}

/// Takes what waits and works on it.
fn serve(hall: &CombiningList<AddOne>) {
    hall.take().run(2, add_one);
    thread::yield_now();
}

/// Lends a number and serves while it waits.
fn lend_and_serve(hall: &CombiningList<AddOne>, hint: usize) {
    let mut number = Watched::new(7);
    let answer = hall.lend(hint, &mut number, |_| serve(hall));
    match answer {
        LendOutcome::Answered(before) => assert_eq!((before, number.value()), (7, 8)),
        LendOutcome::Unused => assert_eq!(number.value(), 7),
        LendOutcome::Broken => unreachable!("no combiner panics here"),
    }
}

#[test]
fn what_is_lent_is_worked_on_once_and_seen_by_its_caller() {
    model(3, || {
        let (hall, other): (Hall, Hall) = shared(CombiningList::new(2));
        beside(move || lend_and_serve(&other, 0), || lend_and_serve(&hall, 1));
        assert_eq!(hall.waiting(), 0);
    });
}

#[test]
fn a_loan_that_is_taken_is_seen_by_the_taker() {
    model(3, || {
        let hall: Hall = Arc::new(CombiningList::new(1));
        let (other, done) = (hall.clone(), Arc::new(AtomicBool::new(false)));
        let ended = done.clone();
        beside(
            move || {
                let mut number = Watched::new(7);
                let answer = other.lend(0, &mut number, |_| thread::yield_now());
                assert_eq!((answer, number.value()), (LendOutcome::Answered(7), 8));
                ended.store(true, Relaxed);
            },
            || {
                while !done.load(Relaxed) {
                    serve(&hall);
                }
            },
        );
    });
}

#[test]
fn what_is_not_run_comes_back_untouched() {
    model(3, || {
        let (hall, other): (Hall, Hall) = shared(CombiningList::new(2));
        let lend = |hall: &CombiningList<AddOne>| {
            let mut number = Watched::new(7);
            let answer = hall.lend(0, &mut number, |_| {
                drop(hall.take());
                thread::yield_now();
            });
            number.set(|_| 9);
            assert_eq!(answer, LendOutcome::Unused);
        };
        beside(move || lend(&other), || lend(&hall));
    });
}

#[test]
fn a_slot_serves_one_caller_after_the_other() {
    model(3, || {
        let (hall, other): (Hall, Hall) = shared(CombiningList::new(1));
        // One slot for two callers: the one who finds it in use does its work itself.
        beside(
            move || lend_and_serve(&other, 0),
            || {
                lend_and_serve(&hall, 0);
                lend_and_serve(&hall, 0);
            },
        );
    });
}

#[test]
fn a_waiting_caller_knows_when_it_was_taken() {
    model(2, || {
        let (hall, taker): (Hall, Hall) = shared(CombiningList::new(2));
        let taken = Arc::new(AtomicUsize::new(0));
        let count = taken.clone();
        let mut number = Watched::new(7);
        let other = thread::spawn(move || {
            let mut batch = taker.take();
            count.store(batch.len(), Relaxed);
            batch.run(2, add_one);
        });
        let answer = hall.lend(0, &mut number, |look| {
            assert_eq!(look.waiting, usize::from(!look.is_taken));
            if !look.is_taken {
                drop(hall.take());
            }
            thread::yield_now();
        });
        other.join().unwrap();
        assert_eq!(answer != LendOutcome::Unused, taken.load(Relaxed) == 1);
    });
}

/// A lender with a number, and beside it one who serves, at a hall for two.
fn lender_beside(lend: fn(&Hall, &mut Watched), serve: fn(&Hall)) {
    model(2, move || {
        let (hall, other): (Hall, Hall) = shared(CombiningList::new(2));
        let lender = move || {
            let mut number = Watched::new(7);
            lend(&other, &mut number);
        };
        beside(lender, || serve(&hall));
    });
}

#[test]
fn a_caller_that_panics_leaves_no_memory_behind_that_is_used() {
    let lend = |hall: &Hall, number: &mut Watched| {
        let lent = AssertUnwindSafe(|| hall.lend(0, number, |_| std::panic::resume_unwind(Box::new(()))));
        // Where the other was faster, no thread waits and none panics.
        _ = catch_unwind(lent);
        number.set(|_| 9);
    };
    lender_beside(lend, |hall| serve(hall));
}

#[test]
fn those_whom_a_panic_leaves_without_answer_come_back_broken() {
    let lend = |hall: &Hall, number: &mut Watched| {
        let answer = hall.lend(0, number, |look| {
            if !look.is_taken {
                drop(hall.take());
            }
            thread::yield_now();
        });
        number.set(|_| 9);
        assert!(matches!(answer, LendOutcome::Unused | LendOutcome::Broken), "{answer:?}");
    };
    lender_beside(lend, |hall| {
        let mut batch = hall.take();
        let work = AssertUnwindSafe(|| {
            batch.run(2, |loans| {
                loans.into_iter().for_each(|loan| _ = loan.add_one());
                std::panic::resume_unwind(Box::new(()))
            })
        });
        assert!(catch_unwind(work).is_err());
    });
}

#[test]
fn a_permit_has_one_holder_who_sees_what_the_last_one_did() {
    model(3, || {
        let permits = Arc::new(ObjectPool::new([Watched::new(0)]));
        let other = permits.clone();
        let used = Arc::new(AtomicUsize::new(0));
        let count = used.clone();
        let hold = |permits: &ObjectPool<Watched>, used: &AtomicUsize| {
            if let Some(mut permit) = permits.try_take() {
                permit.add_one();
                used.fetch_add(1, Relaxed);
            }
        };
        beside(
            move || hold(&other, &count),
            || {
                hold(&permits, &used);
                hold(&permits, &used);
            },
        );
        let used = u32::try_from(used.load(Relaxed)).unwrap();
        assert!(used >= 1);
        assert_eq!(permits.try_take().expect("all are back").value(), used);
    });
}

#[test]
fn a_generation_has_one_value_for_all_threads() {
    model(3, || {
        let per_fork = Arc::new(PerFork::<AtomicU32>::default());
        let other = per_fork.clone();
        let name = |per_fork: &PerFork<AtomicU32>, generation| {
            per_fork.of(generation, || AtomicU32::new(generation + 10)).load(Relaxed)
        };
        beside(
            move || assert_eq!([1, 0].map(|generation| name(&other, generation)), [11, 10]),
            || {
                let first: *const AtomicU32 = per_fork.of(1, || AtomicU32::new(11));
                assert_eq!(name(&per_fork, 1), 11);
                assert_eq!(first, std::ptr::from_ref(per_fork.of(1, || AtomicU32::new(99))));
            },
        );
    });
}
