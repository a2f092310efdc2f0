//! Whom a batch rings: one step after the other, where each process does what it is told.

use std::cell::RefCell;

use super::After;
use super::explorer::{Mishaps, State};
use crate::World as _;
use crate::gate::{Gate, Grant, Place, Refused, Request, Turn};
use crate::layout::{Line, Shape, WaitQueue};

/// A process of short requests that takes what it gets at once.
struct One(Place, Turn);

const SHORT: Request = Request { predicted_ns: 0, longest_wait_ns: 0, hopes: false };

impl One {
    fn new(index: usize) -> Self {
        Self(Place { index, generation: 0 }, Turn::new(0))
    }

    fn acquire(&self, gate: &Gate<'_, After<'_>>) -> Result<Grant, Refused> {
        gate.acquire(self.0, &self.1, &SHORT)
    }

    fn release(&self, gate: &Gate<'_, After<'_>>, grant: &Grant) {
        gate.release(self.0, &self.1, grant, &SHORT);
    }
}

/// The first of two who wait was rung in the batch and takes the permit that another process gives back; the second was never rung, sleeps for as long as one behind, and is to
/// have the batch's permit.
#[test]
fn a_batch_rings_who_has_come_to_the_front_since_it_rang_and_nobody_twice() {
    let shape = Shape::new(1, 2, 5, 3).unwrap();
    let none = Mishaps { switches: 0, deaths: 0, stops: 0, hurries: 0 };
    let state = State::new(Vec::new(), 5, none);
    let words = After { state: &state, words: RefCell::new(vec![0; shape.word_count()]) };
    let gate = Gate::open(&words, &shape, 0, 2).unwrap();
    let doorbell = |place: usize| words.load(shape.place(place, Line::QueueDoorbell));
    let answered = |place: usize| gate.answer(Place { index: place, generation: 0 });
    let (batch, other) = (One::new(0), One::new(1));
    let grants = [&batch, &other].map(|one| one.acquire(&gate).unwrap());
    let queue = gate.wait_queue(WaitQueue::Main);
    let first = queue.join(2).unwrap();
    queue.join(3).unwrap();
    batch.release(&gate, &grants[0]);
    assert_eq!([2, 3].map(doorbell), [1, 0]);
    answered(2);
    for _ in 0..3 {
        let again = batch.acquire(&gate).unwrap();
        batch.release(&gate, &again);
        assert_eq!([2, 3].map(doorbell), [2, 0], "the first was rung, and looks by itself");
    }
    let again = batch.acquire(&gate).unwrap();
    other.release(&gate, &grants[1]);
    assert_eq!([2, 3].map(doorbell), [3, 0]);
    answered(2);
    let taken = gate.take(Place { index: 2, generation: 0 }, 0);
    assert!(taken.is_some() && queue.retire(&first));
    batch.release(&gate, &again);
    assert_eq!([2, 3].map(doorbell), [4, 1], "the second is rung in the same batch");
}
