//! The algorithm on words in the heap, between threads: for Miri, which has no segments, and for deaths that are only said.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test")]

mod words;

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use evener_arbiter::{EXACT_FROM_NS, Gate, Place, Request, Shape, Turn, World as _, revive};

use words::Heap;

const LONG: Request = Request { predicted_ns: EXACT_FROM_NS, longest_wait_ns: u64::MAX, hopes: false };

#[test]
fn threads_on_one_permit_do_everything_once_and_nobody_sleeps_on() {
    let shape = Shape::new(1, 1, 3, 2).unwrap();
    let (heap, inside) = (Heap::new(shape.word_count()), AtomicU32::new(0));
    let rounds = if cfg!(miri) { 5 } else { 500 };
    thread::scope(|scope| {
        for index in 0..3 {
            let (heap, inside, shape) = (&heap, &inside, &shape);
            scope.spawn(move || {
                let gate = Gate::new(heap, shape, 0, 1).unwrap();
                let (place, turn) = (Place { index, generation: 0 }, Turn::new(0));
                for _ in 0..rounds {
                    let grant = gate.acquire(place, &turn, &LONG).unwrap();
                    // Two steps with no order of their own.
                    inside.store(inside.load(Relaxed) + 1, Relaxed);
                    gate.release(place, &turn, &grant, &LONG);
                }
            });
        }
    });
    assert_eq!(inside.into_inner(), 3 * rounds);
}

#[test]
fn a_place_that_is_revived_frees_what_it_held_and_its_old_life_frees_nothing_more() {
    let shape = Shape::new(1, 1, 2, 2).unwrap();
    let heap = Heap::new(shape.word_count());
    let gate = Gate::open(&heap, &shape, 0, 1).unwrap();
    let (turn, old) = (Turn::new(0), Place { index: 0, generation: 0 });
    let held = gate.acquire(old, &turn, &LONG).unwrap();
    let new = revive(&heap, &shape, 0);
    assert_eq!(new, Place { index: 0, generation: 1 });
    let again = gate.acquire(new, &turn, &LONG).unwrap();
    // Late words of the old life.
    gate.release(old, &turn, &held, &LONG);
    let busy = Request { longest_wait_ns: 0, ..LONG };
    assert!(gate.acquire(Place { index: 1, generation: 0 }, &turn, &busy).is_err());
    assert!(gate.acquire(old, &turn, &LONG).is_err());
    gate.release(new, &turn, &again, &LONG);
    assert!(gate.acquire(Place { index: 1, generation: 0 }, &turn, &busy).is_ok());
    assert_eq!(heap.load(shape.word_count()), 0);
}
