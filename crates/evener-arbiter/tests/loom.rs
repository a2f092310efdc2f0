//! Two threads at one permit, in every order that the memory model allows: what one did is seen by the next, and no wake-up is lost.
//!
//! `RUSTFLAGS='--cfg loom' cargo test -p evener-arbiter --release --test loom`
#![cfg(loom)]

mod words;

use evener_arbiter::{EXACT_FROM_NS, Gate, Place, Request, Shape, Turn};
use loom::sync::Arc;
use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering::Relaxed;
use loom::thread;

use words::Heap;

struct Shared {
    heap: Heap,
    /// What the permit protects: written with no order of its own, by a load and a store, so that one who does not see the last holder's leaves less than there should be.
    inside: AtomicU32,
}

#[test]
fn who_gets_a_permit_sees_what_its_last_holder_did_and_nobody_sleeps_on() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let shape = Shape::new(1, 1, 2, 1).expect("it fits");
        let shared = Arc::new(Shared { heap: Heap::new(shape.word_count()), inside: AtomicU32::new(0) });
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || once(&other, &shape, 1));
        once(&shared, &shape, 0);
        thread.join().expect("it does not panic");
        assert_eq!(shared.inside.load(Relaxed), 2);
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
