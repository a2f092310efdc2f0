//! What was done at modules, and how often places were served: counts of two words that one thread at a time writes, so that no exchange is needed.
//!
//! A permit's are written by who has it ([`add_work`]) and read by anyone ([`work_of`]). Where two write because one was taken for dead, something is lost of them and of
//! nothing else.

use evener_ring::value;

use crate::layout::{PermitWord, Shape};
use crate::world::World;

/// Requests and bytes that were done at a module by all processes together, since the segment was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Requests, or jobs of runs and hosts.
    pub requests: u64,
    /// Their input.
    pub bytes: u64,
}

/// Adds what was done with a permit, to be called by who has it.
#[inline]
pub(crate) fn add_work<W: World>(world: &W, shape: &Shape, [module, permit]: [usize; 2], work: Work) {
    let at = |word: PermitWord| shape.permit_word(module, permit, word);
    add_alone(world, at(PermitWord::Requests), work.requests);
    add_alone(world, at(PermitWord::Bytes), work.bytes);
}

/// Returns what was done at a module by all processes together.
pub(crate) fn work_of<W: World>(world: &W, shape: &Shape, module: usize) -> Work {
    let of = |permit: usize, word: PermitWord| read(world, shape.permit_word(module, permit, word));
    let sum =
        |word: PermitWord| (0..shape.permits()).map(|permit| of(permit, word)).fold(0, u64::wrapping_add);
    Work { requests: sum(PermitWord::Requests), bytes: sum(PermitWord::Bytes) }
}

/// Adds to a count that no other process writes meanwhile; as `evener_ring::Counter`, which needs an exchange because others count too.
#[inline]
pub(crate) fn add_alone<W: World>(world: &W, at: usize, number: u64) {
    let (mut left, mut carries) = (number, 0);
    let mut low = world.load(at + 1);
    while left > 0 {
        let step = left.min(STEP_MAX);
        let after = low.wrapping_add(step as u32);
        carries += u32::from((low ^ after) >> 31 != 0);
        (low, left) = (after, left - step);
    }
    world.store(at + 1, low);
    if carries > 0 && !cfg!(mutant = "arbiter_no_carry") {
        world.store(at, world.load(at).wrapping_add(carries));
    }
}

/// A count of which the words belong together.
fn read<W: World>(world: &W, at: usize) -> u64 {
    let mut high = world.load(at);
    for _ in 0..LOOKS_MAX {
        let low = world.load(at + 1);
        let again = world.load(at);
        if again == high {
            return value(high, low);
        }
        high = again;
    }
    value(high, world.load(at + 1))
}

/// So that the top bit of the lower word changes at most once.
const STEP_MAX: u64 = (1 << 31) - 1;

/// Looks at a count that changes between any two; each change of the upper word is 2 GiB later than the one before, so this many are never needed but where a process spoils the words.
const LOOKS_MAX: u32 = 4;

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use std::cell::RefCell;
    use std::time::Duration;

    use super::*;

    /// Words, and nothing else.
    struct Words(RefCell<Vec<u32>>);

    impl World for Words {
        fn load(&self, at: usize) -> u32 {
            self.0.borrow().get(at).copied().unwrap_or_default()
        }

        fn store(&self, at: usize, value: u32) {
            self.0.borrow_mut()[at] = value;
        }

        fn exchange(&self, _: usize, _: u32, _: u32) -> bool {
            unreachable!("nothing is exchanged")
        }

        fn count(&self, _: usize) {
            unreachable!("counts of others are not touched")
        }

        fn fence(&self) {}

        fn sleep(&self, _: usize, _: u32, _: Duration) {}

        fn wake(&self, _: usize) -> bool {
            false
        }

        fn now(&self) -> u64 {
            0
        }

        fn seize(&self, _: usize) -> bool {
            false
        }

        fn let_go(&self, _: usize) {}
    }

    #[test]
    fn counts_of_permits_add_up_to_their_modules_however_large_the_steps() {
        let shape = Shape::new(2, 3, 4, 2).expect("small");
        let world = Words(RefCell::new(vec![0; shape.word_count()]));
        let steps = [1, 1 << 30, (1 << 31) - 1, 1 << 31, (1 << 32) + 5, 1 << 40, 0, 3];
        let mut sum = Work::default();
        for (step, bytes) in steps.into_iter().enumerate() {
            let work = Work { requests: step as u64, bytes };
            add_work(&world, &shape, [1, step % 3], work);
            sum = Work { requests: sum.requests + work.requests, bytes: sum.bytes + work.bytes };
            assert_eq!(work_of(&world, &shape, 1), sum, "after {bytes}");
        }
        assert_eq!(work_of(&world, &shape, 0), Work::default(), "the other module");
        assert!(
            (0..3).all(|permit| world.load(shape.permit(1, permit)) == 0),
            "who has them is another word"
        );
    }
}
