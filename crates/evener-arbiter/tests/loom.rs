//! Two threads at one permit, in every order that the memory model allows, and three with one preemption: what one did is seen by the next, and no wake-up is lost, nor in a batch.
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

/// A process in its batch has rung the first of two who wait. That one takes the permit that another gives back, and comes to its end only once the second has one, too: the second must be
/// rung by the end of the batch's next request.
#[test]
fn a_batch_rings_who_came_to_the_front_since_it_rang() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let shape = Shape::new(1, 2, 4, 2).expect("it fits");
        let shared = Arc::new((Heap::new(shape.word_count()), Mutex::new(0), Condvar::new()));
        let gate = Gate::new(&shared.0, &shape, 0, 2).expect("there is one");
        let (batch, other) = (One::new(0), One::new(1));
        let held = [&batch, &other].map(|one| one.acquire(&gate, 0).expect("both are free"));
        let waiters: Vec<_> = [2, 3]
            .map(|index| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || together(&shared, &shape, index))
            })
            .into();
        batch.release(&gate, &held[0]);
        let again = batch.acquire(&gate, 0);
        other.release(&gate, &held[1]);
        again.inspect(|grant| batch.release(&gate, grant)).ok();
        waiters.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
    });
}

/// Has a permit until both waiters have one.
fn together(shared: &(Heap, Mutex<u32>, Condvar), shape: &Shape, index: usize) {
    let (heap, inside, changed) = shared;
    let gate = Gate::new(heap, shape, 0, 2).expect("there is one");
    let one = One::new(index);
    let grant = one.acquire(&gate, u64::MAX).expect("it waits for as long as it takes");
    let mut count = inside.lock().expect("nobody panics with it");
    *count += 1;
    changed.notify_all();
    while *count < 2 {
        count = changed.wait(count).expect("nobody panics with it");
    }
    drop(count);
    one.release(&gate, &grant);
}

/// A process of short requests.
struct One(Place, Turn);

impl One {
    fn new(index: usize) -> Self {
        Self(Place { index, generation: 0 }, Turn::new(0))
    }

    const fn request(longest_wait_ns: u64) -> Request {
        Request { predicted_ns: 0, longest_wait_ns, hopes: false }
    }

    fn acquire(&self, gate: &Gate<'_, Heap>, longest_wait_ns: u64) -> Result<Grant, Refused> {
        gate.acquire(self.0, &self.1, &Self::request(longest_wait_ns))
    }

    fn release(&self, gate: &Gate<'_, Heap>, grant: &Grant) {
        gate.release(self.0, &self.1, grant, &Self::request(0));
    }
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
