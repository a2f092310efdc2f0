//! Looks at a long queue, in a world that notes who is looked at and in which time is told.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::time::Duration;

use crate::EXACT_FROM_NS;
use crate::arrival_queue::ArrivalQueue;
use crate::gate::{Gate, Place, Refused, Request, Turn};
use crate::layout::{Line, Phase, Shape, WaitQueue};
use crate::world::World;

/// Words of one thread.
struct Looks {
    words: Vec<Cell<u32>>,
    looked_at: RefCell<Vec<usize>>,
    /// Who does not live.
    dead: Cell<Option<usize>>,
}

impl Looks {
    /// Writes that the place asks for a permit of the module.
    fn set_phase(&self, shape: &Shape, place: usize) {
        self.store(shape.place(place, Line::Phase), Phase::Asking(0).word());
    }
}

impl World for Looks {
    fn load(&self, at: usize) -> u32 {
        self.words[at].get()
    }

    fn store(&self, at: usize, value: u32) {
        self.words[at].set(value);
    }

    fn exchange(&self, at: usize, old: u32, new: u32) -> bool {
        let is_old = self.words[at].get() == old;
        if is_old {
            self.words[at].set(new);
        }
        is_old
    }

    fn count(&self, at: usize) {
        self.words[at + 1].set(self.words[at + 1].get() + 1);
    }

    fn fence(&self) {}

    fn sleep(&self, _: usize, _: u32, _: Duration) {}

    fn wake(&self, _: usize) -> bool {
        true
    }

    fn now(&self) -> u64 {
        0
    }

    fn seize(&self, place: usize) -> bool {
        self.looked_at.borrow_mut().push(place);
        self.dead.get() == Some(place)
    }

    fn let_go(&self, _: usize) {}
}

/// A thousand that wait at one permit, which another process has.
struct LongQueue {
    shape: Shape,
    world: Looks,
}

impl LongQueue {
    fn new() -> Self {
        let shape = Shape::new(1, 1, 1_100, 11).unwrap();
        let words = (0..shape.word_count()).map(|_| Cell::new(0)).collect();
        let queue =
            Self { shape, world: Looks { words, looked_at: RefCell::default(), dead: Cell::new(None) } };
        Gate::open(&queue.world, &shape, 0, 1).unwrap();
        (0..1_000).for_each(|place| queue.join(place));
        queue
    }

    fn join(&self, place: usize) {
        self.world.set_phase(&self.shape, place);
        assert!(self.waiters().join(place).is_some());
    }

    fn waiters(&self) -> ArrivalQueue<'_, Looks> {
        ArrivalQueue::new(&self.world, &self.shape, 0, WaitQueue::Main)
    }

    /// The look of the watcher at so many periods of 40 ms from the start; whom it tried.
    fn look(&self, period: u64) -> Vec<usize> {
        Gate::new(&self.world, &self.shape, 0, 1).unwrap().patrol(period * 40_000_000);
        self.world.looked_at.take()
    }

    fn waits(&self, place: usize) -> bool {
        self.waiters().all().any(|waiter| waiter.place == place)
    }
}

#[test]
fn whoever_dies_among_a_thousand_who_wait_is_found_by_one_of_two_looks_though_the_queue_moves_on() {
    for place in [0, 31, 32, 33, 255, 256, 257, 500, 501, 998, 999] {
        for looks_before in [1, 2] {
            let queue = LongQueue::new();
            (1..=looks_before).for_each(|period| _ = queue.look(period));
            queue.world.dead.set(Some(place));
            queue.look(looks_before + 1);
            // Some are served, the dead one is none of them, and others come.
            let served: Vec<_> =
                queue.waiters().all().take(7).filter(|waiter| waiter.place != place).collect();
            served.iter().for_each(|waiter| _ = queue.waiters().retire(waiter));
            (1_000..1_009).for_each(|place| queue.join(place));
            queue.look(looks_before + 2);
            assert!(!queue.waits(place), "{place} dies after {looks_before} looks, and waits after 80 ms");
        }
    }
}

#[test]
fn a_look_at_a_thousand_who_wait_tries_the_first_and_half_of_the_others() {
    let queue = LongQueue::new();
    let looks = [1, 2].map(|period| queue.look(period));
    for tried in &looks {
        assert!(tried.len() <= 32 + 484, "{}", tried.len());
        assert!((0..32).all(|place| tried.contains(&place)), "the first at every look");
    }
    assert_eq!(looks.into_iter().flatten().collect::<BTreeSet<_>>().len(), 1_000);
}

#[test]
fn who_comes_takes_no_permit_that_is_free_for_those_who_wait() {
    let queue = LongQueue::new();
    let gate = Gate::new(&queue.world, &queue.shape, 0, 1).unwrap();
    let asks = |place: usize, turn: &Turn| {
        queue.world.store(queue.shape.place(place, Line::Generation), 7);
        let request = Request { predicted_ns: EXACT_FROM_NS, longest_wait_ns: 0, hopes: false };
        gate.acquire(Place { index: place, generation: 7 }, turn, &request)
    };
    // The permit is free: who had it has just left, and who is next has not run yet.
    assert_eq!(asks(1_001, &Turn::new(0)), Err(Refused::Busy));
    assert!(gate.has_waiters(), "nor did it drive anybody away");
    let waiting: Vec<_> = queue.waiters().all().collect();
    waiting.iter().for_each(|waiter| _ = queue.waiters().retire(waiter));
    assert_eq!(asks(1_001, &Turn::new(0)).map(|grant| (grant.permit, grant.ticket)), Ok((0, None)));
}
