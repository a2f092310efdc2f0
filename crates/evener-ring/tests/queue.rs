//! The ring against the queue of the standard library, one thread.
#![cfg(not(loom))]

use std::collections::VecDeque;
use std::rc::Rc;

use evener_ring::{Heap, Ring};
use proptest::prelude::*;

/// What one step does to the ring and to the oracle.
#[derive(Debug, Clone)]
enum Step {
    Push,
    PushAll(usize),
    Pop,
    PopMany(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::Push),
        (0..40_usize).prop_map(Step::PushAll),
        Just(Step::Pop),
        prop_oneof![0..40_usize, Just(usize::MAX)].prop_map(Step::PopMany),
    ]
}

/// A ring beside its oracle; items are boxed, so that a lost or doubled one is a memory error too.
struct Pair {
    ring: Ring<Box<u32>>,
    oracle: VecDeque<u32>,
    next: u32,
}

impl Pair {
    fn space(&self) -> usize {
        self.ring.capacity() - self.oracle.len()
    }

    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    fn push(&mut self) {
        let number = self.number();
        if self.space() == 0 {
            assert_eq!(self.ring.push(Box::new(number)), Err(Box::new(number)));
        } else {
            assert_eq!(self.ring.push(Box::new(number)), Ok(()));
            self.oracle.push_back(number);
        }
    }

    fn push_all(&mut self, count: usize) {
        let numbers: Vec<u32> = (0..count).map(|_| self.number()).collect();
        let (fits, stays) = numbers.split_at(count.min(self.space()));
        let mut items: Vec<Box<u32>> = numbers.iter().copied().map(Box::new).collect();
        assert_eq!(self.ring.push_all(&mut items), fits.len());
        assert_eq!(unbox(items), stays);
        self.oracle.extend(fits);
    }

    fn pop(&mut self) {
        assert_eq!(self.ring.pop().map(|item| *item), self.oracle.pop_front());
    }

    fn pop_many(&mut self, max: usize) {
        let expected: Vec<u32> = self.oracle.drain(..max.min(self.oracle.len())).collect();
        let mut out = vec![Box::new(0)];
        assert_eq!(self.ring.pop_many(&mut out, max), expected.len());
        assert_eq!(unbox(out), [&[0], &expected[..]].concat());
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Push => self.push(),
            Step::PushAll(count) => self.push_all(count),
            Step::Pop => self.pop(),
            Step::PopMany(max) => self.pop_many(max),
        }
        assert_eq!(self.ring.len(), self.oracle.len());
        assert_eq!(self.ring.is_empty(), self.oracle.is_empty());
    }
}

fn unbox(items: impl IntoIterator<Item = Box<u32>>) -> Vec<u32> {
    items.into_iter().map(|item| *item).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 512 }) })]

    #[test]
    fn a_ring_is_a_queue_wherever_its_positions_start(
        before_wrap in 0..100_u32,
        capacity in 0..40_usize,
        steps in prop::collection::vec(step(), 0..80),
    ) {
        let ring = Ring::at(Heap::starting_at(0_u32.wrapping_sub(before_wrap), capacity));
        let mut pair = Pair { ring, oracle: VecDeque::new(), next: 0 };
        for step in &steps {
            pair.take(step);
        }
    }
}

#[test]
fn capacity_is_the_next_power_of_two_and_at_least_two() {
    for (wanted, capacity_got) in [(0, 2), (1, 2), (2, 2), (3, 4), (64, 64), (65, 128)] {
        assert_eq!(Ring::<u8>::with_capacity(wanted).capacity(), capacity_got, "asked for {wanted}");
    }
}

#[test]
fn a_dropped_ring_drops_what_it_holds_once() {
    let witness = Rc::new(());
    let ring = Ring::at(Heap::starting_at(u32::MAX, 4));
    ring.push_all(&mut vec![witness.clone(), witness.clone(), witness.clone()]);
    drop(ring.pop());
    assert_eq!(Rc::strong_count(&witness), 3);
    drop(ring);
    assert_eq!(Rc::strong_count(&witness), 1);
}

#[test]
fn items_without_size_are_counted() {
    let ring = Ring::with_capacity(4);
    assert_eq!(ring.push_all(&mut vec![(); 7]), 4);
    let mut out = Vec::new();
    assert_eq!(ring.pop_many(&mut out, usize::MAX), 4);
    assert_eq!(out.len(), 4);
}
