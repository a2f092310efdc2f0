//! Words of the arbiter's segment as another process of the same user may write them: bytes -> the words of a small segment, and what changes while a request looks -> every call ends, within its time.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use evener_arbiter::{EXACT_FROM_NS, Gate, Request, Shape, Turn, World, revive};

/// A segment whose words another process writes, too.
struct Hostile<'b> {
    words: RefCell<Vec<u32>>,
    /// What is written at each look: a place and a value.
    writes: RefCell<std::slice::Chunks<'b, u8>>,
    now: Cell<u64>,
}

impl Hostile<'_> {
    fn scribble(&self) {
        let write = self.writes.borrow_mut().next();
        if let Some([low, high, value @ ..]) = write {
            let at = usize::from(u16::from_le_bytes([*low, *high]));
            let mut words = self.words.borrow_mut();
            let count = words.len();
            words[at % count] = number(value);
        }
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte))
}

impl World for Hostile<'_> {
    fn load(&self, at: usize) -> u32 {
        self.scribble();
        self.words.borrow().get(at).copied().unwrap_or_default()
    }

    fn store(&self, at: usize, value: u32) {
        if let Some(word) = self.words.borrow_mut().get_mut(at) {
            *word = value;
        }
    }

    fn exchange(&self, at: usize, old: u32, new: u32) -> bool {
        let is_old = self.words.borrow().get(at) == Some(&old);
        if is_old {
            self.store(at, new);
        }
        is_old
    }

    fn count(&self, _: usize) {}

    fn fence(&self) {}

    fn sleep(&self, _: usize, _: u32, timeout: Duration) {
        let span = u64::try_from(timeout.as_nanos()).expect("a sleep ends");
        self.now.set(self.now.get() + span.max(1_000));
    }

    fn wake(&self, _: usize) -> bool {
        false
    }

    fn now(&self) -> u64 {
        self.now.set(self.now.get() + 1_000);
        self.now.get()
    }

    fn seize(&self, place: usize) -> bool {
        place % 2 == 1
    }

    fn let_go(&self, _: usize) {}
}

/// The first two bytes choose how long to wait and how many permits; the next fill the segment, and the rest is written meanwhile.
pub fn arbiter_words(bytes: &[u8]) {
    let Some((&[wait, permits], rest)) = bytes.split_first_chunk() else { return };
    let shape = Shape::new(2, 3, 4, 3).expect("it fits");
    let (first, writes) = rest.split_at(rest.len() / 2);
    let mut words: Vec<u32> = first.chunks(4).map(number).collect();
    words.resize(shape.word_count(), number(first.get(..4).unwrap_or_default()));
    let (words, writes) = (RefCell::new(words), RefCell::new(writes.chunks(6)));
    let world = Hostile { words, writes, now: Cell::new(1 << 40) };
    let gate = Gate::new(&world, &shape, 1, permits.into()).expect("it has two");
    let longest_wait_ns = u64::from(wait) * 1_000_000;
    let request = Request { predicted_ns: EXACT_FROM_NS, longest_wait_ns, hopes: false };
    let (place, turn) = (revive(&world, &shape, 0), Turn::new(wait.into()));
    let begun = world.now();
    for acquired in [gate.acquire(place, &turn, &request), gate.acquire_flag(place, &turn, &request)] {
        // Its time, and what looks take.
        assert!(world.now() - begun < 2 * longest_wait_ns + 1_000_000_000);
        if let Ok(grant) = acquired {
            assert!(grant.permit < 3);
            gate.release(place, &turn, &grant, &request);
            gate.release_flag(place, &grant);
        }
    }
    gate.patrol(world.now());
    _ = gate.expected_wait_ns(world.now());
}
