//! Small models of lending, each run through every interleaving with few preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p evener-ring --release --test loom_lend`, with mutants as in `tests/loom.rs`.
//! A mutant may also hang, for a model's panic unwinds through `lend`, which waits for threads that loom has stopped: each
//! runs under `timeout 60`, test by test.
//! Parts are loom's cells: it fails a model in which two threads hold one, or in which the lender looks at one while
//! a helper still works on it.
#![cfg(loom)]
#![allow(unsafe_code, reason = "room: cells that threads lend each other")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use evener_ring::{Claims, HelperSlot, LendCounts, lend};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// Runs `body` in every interleaving with up to `preemptions` preemptions.
fn model(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(body);
}

/// What a caller lends: cells, and which thread may touch which.
struct Buffer {
    claims: Claims,
    cells: [UnsafeCell<u32>; 2],
}

// SAFETY: cells are touched by the threads that claimed them, and by the lender when there is no other; loom watches.
unsafe impl Sync for Buffer {}

impl Buffer {
    fn new() -> Self {
        Self { claims: Claims::new(2), cells: [UnsafeCell::new(0), UnsafeCell::new(0)] }
    }

    /// Adds one to each cell that is claimed by `next`.
    fn work(&self, next: impl Fn(&Claims) -> Option<usize>) {
        while let Some(index) = next(&self.claims) {
            // SAFETY: the claim makes this thread the only one.
            self.cells[index].with_mut(|cell| unsafe { *cell += 1 });
        }
    }

    /// What the lender sees afterwards. Written, as the lender's caller may, so that a late reader is found too.
    fn sums(&self) -> [u32; 2] {
        // SAFETY: `lend` has returned.
        [0, 1].map(|index| self.cells[index].with_mut(|cell| unsafe { std::mem::replace(&mut *cell, 9) }))
    }
}

/// A helper slot, with a thread that serves at it.
struct HelperPool<T = ()> {
    slots: Arc<[HelperSlot; 1]>,
    thread: thread::JoinHandle<T>,
}

impl HelperPool {
    /// One whose thread serves until the slot is closed.
    fn new() -> Self {
        Self::serving(|slot| while slot.serve() {})
    }

    fn leave(self) {
        self.slots[0].close();
        self.ended();
    }
}

impl<T: 'static> HelperPool<T> {
    fn serving(serve: impl FnOnce(&HelperSlot) -> T + 'static) -> Self {
        let slots = Arc::new([HelperSlot::new()]);
        let served = slots.clone();
        Self { slots, thread: thread::spawn(move || serve(&served[0])) }
    }

    fn ended(self) -> T {
        self.thread.join().expect("the thread ends")
    }
}

#[test]
fn each_number_is_claimed_once() {
    model(3, || {
        let claims = Arc::new(Claims::new(3));
        let others = claims.clone();
        let all = |claim: &dyn Fn() -> Option<usize>| std::iter::from_fn(claim).take(4).collect::<Vec<_>>();
        let other = thread::spawn(move || all(&|| others.back()));
        let mut claimed = all(&|| claims.front());
        claimed.extend(other.join().expect("the other ends").iter().rev());
        assert_eq!(claimed, [0, 1, 2]);
    });
}

#[test]
fn each_part_is_worked_on_once_and_seen_by_the_lender() {
    model(3, || {
        lend_both_ways(HelperPool::new());
    });
}

/// Lends a buffer to the pool, and works on it from the other end.
fn lend_both_ways(helper_pool: HelperPool) {
    let buffer = Buffer::new();
    let ((), lent) = lend(&*helper_pool.slots, &|| buffer.work(Claims::back), || buffer.work(Claims::front));
    assert_eq!(buffer.sums(), [1, 1]);
    assert_eq!(lent.served + lent.taken_back, 1);
    helper_pool.leave();
}

#[test]
fn what_a_helper_did_is_seen_by_the_lender() {
    model(4, || {
        let helper_pool = HelperPool::serving(HelperSlot::serve);
        let buffer = Buffer::new();
        let ((), lent) = lend(&*helper_pool.slots, &|| buffer.work(Claims::back), || ());
        let sums = buffer.sums();
        assert_eq!(sums, if lent.served == 1 { [1, 1] } else { [0, 0] });
        if lent.served == 0 {
            helper_pool.slots[0].close();
        }
        assert_eq!(helper_pool.ended(), lent.served == 1);
    });
}

#[test]
fn a_helper_slot_serves_one_call_after_the_other() {
    model(2, || {
        let helper_pool = HelperPool::new();
        for _ in 0..2 {
            let buffer = Buffer::new();
            lend(&*helper_pool.slots, &|| buffer.work(Claims::back), || buffer.work(Claims::front));
            assert_eq!(buffer.sums(), [1, 1]);
        }
        helper_pool.leave();
    });
}

#[test]
fn one_that_looks_on_before_it_sleeps_misses_nothing() {
    model(2, || {
        let helper_pool = HelperPool::serving(|slot| {
            let mut looks = [true, false].into_iter().cycle();
            while slot.serve_awake(|| looks.next() == Some(true), || ()) {}
        });
        lend_both_ways(helper_pool);
    });
}

#[test]
fn two_lenders_share_a_helper_slot_and_keep_their_buffers_apart() {
    model(2, || {
        let helper_pool = HelperPool::new();
        let other = helper_pool.slots.clone();
        let call = |slots: &[HelperSlot; 1]| {
            let buffer = Buffer::new();
            let ((), lent) = lend(slots, &|| buffer.work(Claims::back), || buffer.work(Claims::front));
            assert_eq!(buffer.sums(), [1, 1]);
            assert!(lent.served + lent.taken_back <= 1);
        };
        let second = thread::spawn(move || call(&other));
        call(&helper_pool.slots);
        second.join().expect("the second lender returns");
        helper_pool.leave();
    });
}

#[test]
fn a_lender_that_panics_waits_first() {
    model(2, || {
        let helper_pool = HelperPool::new();
        let buffer = Buffer::new();
        let lent = catch_unwind(AssertUnwindSafe(|| {
            lend(&*helper_pool.slots, &|| buffer.work(Claims::back), || {
                std::panic::resume_unwind(Box::new(()))
            });
        }));
        assert!(lent.is_err());
        assert!(buffer.sums().iter().all(|&sum| sum <= 1));
        helper_pool.leave();
    });
}

#[test]
fn work_that_panics_counts_as_ended() {
    model(2, || {
        let helper_pool =
            HelperPool::serving(
                |slot| {
                    while catch_unwind(AssertUnwindSafe(|| slot.serve())).unwrap_or(true) {}
                },
            );
        let ((), lent) = lend(&*helper_pool.slots, &|| std::panic::resume_unwind(Box::new(())), || ());
        assert!(
            lent == LendCounts { served: 1, taken_back: 0 }
                || lent == LendCounts { served: 0, taken_back: 1 }
        );
        helper_pool.leave();
    });
}

#[test]
fn a_helper_slot_where_nobody_serves_holds_nobody_up() {
    model(2, || {
        let buffer = Buffer::new();
        let ((), lent) =
            lend(&[HelperSlot::new()], &|| buffer.work(Claims::back), || buffer.work(Claims::front));
        assert_eq!((buffer.sums(), lent), ([1, 1], LendCounts { served: 0, taken_back: 1 }));
    });
}
