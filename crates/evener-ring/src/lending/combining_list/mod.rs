//! Flat combining: callers put what they lend on one list, and one of them, the combiner, takes the whole list.
//!
//! [`CombiningList::lend`] claims a slot, fills it, pushes it on the list and calls `wait` until it is back;
//! some other caller, from within its own `wait`, [takes](CombiningList::take) the list and [runs](Batch::run) it in parts. What
//! is not run is given back unused.
//!
//! A slot is filled before it is pushed, so that a caller that loses its core delays no other. The head is one
//! word, `generation | count | index of the newest + 1`: how many wait is known without a walk, and a generation that has
//! moved on shows a caller that its loan was taken (`head.rs`). What was taken is a [`Batch`] (`batch.rs`).

mod batch;
mod head;

use std::mem;

use crate::CachePadded;
use crate::lending::caller_slot::{CallerSlot, LendOutcome, LentWork};
use crate::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};
use crate::sync::{Word64, yield_now};

pub use batch::Batch;
use head::{count_of, emptied, generation_of, index_of, pushed};

/// Most slots: an index and a count have 16 bits of the head each.
const SLOTS_MAX: usize = 1 << 15;

/// A list of loans that wait to be taken, and the slots that they stand in.
pub struct CombiningList<E: LentWork> {
    /// Callers push, takers empty; see the constants below.
    head: CachePadded<Word64>,
    slots: Box<[CallerSlot<E>]>,
}

/// What a caller that waits can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Loans on the list.
    pub waiting: usize,
    /// Whether its own is not among them any more: a combiner works on it, and only that thread can end the wait.
    pub is_taken: bool,
}

impl<E: LentWork> CombiningList<E> {
    /// Makes an empty list with `slots` slots, at least 1: as many loans at most are out at once.
    ///
    /// # Panics
    ///
    /// Where `slots` exceeds 2^15.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        assert!(slots <= SLOTS_MAX, "an index has 15 bits");
        let slots = (0..slots.max(1)).map(|_| CallerSlot::new()).collect();
        Self { head: CachePadded::new(Word64::new(0)), slots }
    }

    /// Lends `loan` until it is back, and calls `wait` over and over meanwhile.
    ///
    /// The call ends when the thread that took the list has given the loan back; one must, so `wait` should
    /// [take](Self::take) it where no other thread does. Where every slot is in use it ends at once, with the loan unused.
    /// Callers with different `hint` look for a free slot at different places.
    ///
    /// Where `wait` panics, the loan is waited for before the panic goes on.
    pub fn lend(&self, hint: usize, loan: E::Loan<'_>, mut wait: impl FnMut(Look)) -> LendOutcome<E::Reply> {
        let Some(index) = self.claim(hint) else { return LendOutcome::Unused };
        let slot = &self.slots[index];
        // SAFETY: claimed just now; `lent` below keeps this frame from being left before the loan is back.
        unsafe { slot.put(loan) };
        let lent = ListedLoan { list: self, index, generation: self.push(index) };
        while !slot.is_back() {
            wait(lent.look());
        }
        mem::forget(lent);
        // SAFETY: claimed above, seen back, collected here only: `lent`, which also would, is gone.
        unsafe { slot.collect() }
    }

    /// Takes all that waits, oldest first. Empty where nothing does.
    #[must_use = "what is not run is given back unused"]
    pub fn take(&self) -> Batch<'_, E> {
        let mut head = self.head.load(Relaxed);
        while count_of(head) > 0 {
            // Acquire: pairs with the Release in `push`; every push since the last take is in its release sequence, so that
            // all loans and links of the list are seen.
            match self.head.compare_exchange(head, emptied(head), TAKE, Relaxed) {
                Ok(_) => {
                    return Batch { list: self, first: self.reversed(index_of(head)), count: count_of(head) };
                }
                Err(now) => head = now,
            }
        }
        Batch { list: self, first: 0, count: 0 }
    }

    /// How many loans wait, at this moment.
    #[must_use]
    pub fn waiting(&self) -> usize {
        count_of(self.head.load(Relaxed))
    }

    fn claim(&self, hint: usize) -> Option<usize> {
        let slots = self.slots.len();
        let from = |start: usize| (0..slots).map(move |offset| (start + offset) % slots);
        from(hint % slots).find(|&index| self.slots[index].claim())
    }

    /// Puts a filled slot on the list; returns the list's generation.
    fn push(&self, index: usize) -> u32 {
        let name = u32::try_from(index + 1).expect("an index has 15 bits");
        let mut head = self.head.load(Relaxed);
        loop {
            self.slots[index].set_next(index_of(head));
            // Release: pairs with the Acquire in `take`; the thread that takes the list sees the loan and the link.
            match self.head.compare_exchange(head, pushed(head, name), PUSH, Relaxed) {
                Ok(_) => return generation_of(head),
                Err(now) => head = now,
            }
        }
    }

    /// Turns a list that was taken round, so that the oldest comes first; no other thread touches its links.
    fn reversed(&self, newest: u32) -> u32 {
        let (mut turned, mut rest) = (0, newest);
        while let Some(slot) = self.slot(rest) {
            let next = slot.next();
            slot.set_next(turned);
            (turned, rest) = (rest, next);
        }
        turned
    }

    /// The slot of that name; 0 names none.
    fn slot(&self, name: u32) -> Option<&CallerSlot<E>> {
        name.checked_sub(1).and_then(|index| self.slots.get(index as usize))
    }
}

/// A loan that is out: as long as this exists, its caller's frame does.
struct ListedLoan<'g, E: LentWork> {
    list: &'g CombiningList<E>,
    index: usize,
    /// Of the list that it was put on.
    generation: u32,
}

impl<E: LentWork> ListedLoan<'_, E> {
    fn look(&self) -> Look {
        // Relaxed: a hint; its slot says what was done to the loan.
        let head = self.list.head.load(Relaxed);
        Look { waiting: count_of(head), is_taken: generation_of(head) != self.generation }
    }
}

impl<E: LentWork> Drop for ListedLoan<'_, E> {
    /// Reached only when `wait` panics: the memory must not go before it is back.
    fn drop(&mut self) {
        let slot = &self.list.slots[self.index];
        while !slot.is_back() && !cfg!(mutant = "panic_leaves") {
            // All of it, for one loan cannot be taken out of the list. The others do their work themselves.
            drop(self.list.take());
            yield_now();
        }
        // SAFETY: claimed by `lend`, seen back, and `lend` does not collect any more.
        drop(unsafe { slot.collect() });
    }
}

const PUSH: Ordering = if cfg!(mutant = "push_relaxed") { Relaxed } else { Release };
const TAKE: Ordering = if cfg!(mutant = "take_relaxed") { Relaxed } else { Acquire };
