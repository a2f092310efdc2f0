//! Two threads at one permit, in every order that the memory model allows, and three with one preemption: what one did is seen by the next, and no wake-up is lost; and two that raise a word at once.
//!
//! `RUSTFLAGS='--cfg loom' cargo test -p evener-arbiter --release --test loom`
#![cfg(loom)]

mod words;

use evener_arbiter::{EXACT_FROM_NS, Gate, Grant, Place, Refused, Request, Shape, Turn, World as _};
use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering::Relaxed;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use words::Heap;

struct Shared {
    heap: Heap,
    /// What the permit protects: written with no order of its own, by a load and a store, so that one who does not see the last holder's leaves less than there should be.
    inside: AtomicU32,
}

#[test]
fn who_gets_a_permit_sees_what_its_last_holder_did_and_nobody_sleeps_on() {
    explore(2, 2);
}

/// One that waits in front and one behind it, while the third leaves: who leaves rings the first, and who was rung the second.
#[test]
fn of_three_who_want_a_permit_each_gets_it_and_rings_the_next() {
    explore(3, 1);
}

#[test]
fn of_two_who_raise_a_word_at_once_the_greater_number_stays() {
    loom::model(|| {
        let heap = Arc::new(Heap::new(1));
        let others: Vec<_> = [1, 2]
            .map(|number| {
                let heap = Arc::clone(&heap);
                thread::spawn(move || heap.raise(0, number))
            })
            .into();
        others.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
        assert_eq!(heap.load(0), 2);
    });
}

/// So many threads at one permit, each once, with at most so many preemptions.
fn explore(threads: usize, preemptions: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let shape = Shape::new(1, 1, threads, 2).expect("it fits");
        let shared = Arc::new(Shared { heap: Heap::new(shape.word_count()), inside: AtomicU32::new(0) });
        let others: Vec<_> = (1..threads)
            .map(|index| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || once(&shared, &shape, index))
            })
            .collect();
        once(&shared, &shape, 0);
        others.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
        assert_eq!(shared.inside.load(Relaxed), u32::try_from(threads).expect("few"));
    });
}

fn once(shared: &Shared, shape: &Shape, index: usize) {
    let gate = Gate::new(&shared.heap, shape, 0, 1).expect("there is one");
    let (place, turn) = (Place { index, generation: 0 }, Turn::new(0));
    let request = Request { predicted_ns: EXACT_FROM_NS, longest_wait_ns: u64::MAX, hopes: false };
    let grant = gate.acquire(place, &turn, &request).expect("it waits for as long as it takes");
    let before = shared.inside.load(Relaxed);
    shared.inside.store(before + 1, Relaxed);
    gate.release(place, &turn, &grant, &request);
}
