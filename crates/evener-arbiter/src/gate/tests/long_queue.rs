//! A look at a long queue, in a world that notes who is looked at.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::time::Duration;

use crate::gate::Gate;
use crate::layout::{Shape, WaitQueue};
use crate::waiters::Waiters;
use crate::world::World;

/// Words of one thread. All places live.
struct Looks {
    words: Vec<Cell<u32>>,
    looked_at: RefCell<Vec<usize>>,
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
        false
    }

    fn let_go(&self, _: usize) {}
}

#[test]
fn each_look_at_a_thousand_waiters_tries_the_first_and_some_others_and_a_few_looks_try_all() {
    let shape = Shape::new(1, 1, 1_000, 11).unwrap();
    let words = (0..shape.word_count()).map(|_| Cell::new(0)).collect();
    let world = Looks { words, looked_at: RefCell::default() };
    let gate = Gate::open(&world, &shape, 0, 1).unwrap();
    let waiters = Waiters::new(&world, &shape, 0, WaitQueue::Main);
    (0..1_000).for_each(|place| assert!(waiters.join(place).is_some()));
    let mut all = BTreeSet::new();
    for look in 0..5 {
        gate.patrol(look * 40_000_000);
        let looked_at = world.looked_at.take();
        assert!(looked_at.len() <= 256, "{}", looked_at.len());
        assert!((0..32).all(|place| looked_at.contains(&place)), "the first at every look");
        all.extend(looked_at);
    }
    assert_eq!(all.len(), 1_000, "all in 0.2 s");
    // A word that another process spoilt costs a look.
    world.words[shape.queue_word(0, crate::layout::Queue::Sweep)].set(u32::MAX);
    gate.patrol(1_000_000_000);
    gate.patrol(2_000_000_000);
    assert!(world.looked_at.take().len() > 256);
}
