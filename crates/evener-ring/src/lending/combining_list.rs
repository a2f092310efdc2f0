//! Flat combining: callers put what they lend on one list, and one of them, the combiner, takes the whole list.
//!
//! [`CombiningList::lend`] claims a slot, fills it, pushes it on the list and calls `wait` until it is back;
//! some other caller, from within its own `wait`, [takes](CombiningList::take) the list and [runs](Batch::run) it in parts. What
//! is not run is given back unused.
//!
//! A slot is filled before it is pushed, so that a caller that loses its core delays no other. The head is one
//! word, `generation | count | index of the newest + 1`: how many wait is known without a walk, and a generation that has
//! moved on shows a caller that its loan was taken.

use std::mem;

use crate::CachePadded;
use crate::lending::caller_slot::{CallerSlot, LendOutcome, LentWork};
use crate::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};
use crate::sync::{Word64, yield_now};

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

/// Loans that were taken. What is not run is given back unused.
pub struct Batch<'g, E: LentWork> {
    list: &'g CombiningList<E>,
    /// Name of the oldest that was not run, 0 for none.
    first: u32,
    count: usize,
}

impl<E: LentWork> Batch<'_, E> {
    /// Loans that were not run yet.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether nothing is left to run.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Hands the `max` oldest loans to `work` and answers their callers with what it returns, in the same order.
    ///
    /// `work` must take what it gets for every `'c`, so that it can keep none of it. Callers that get no answer, because
    /// `work` returned fewer or panicked, come back with [`LendOutcome::Broken`].
    ///
    /// ```compile_fail,E0521
    /// struct Bytes;
    /// impl evener_ring::LentWork for Bytes {
    ///     type Loan<'c> = &'c mut [u8];
    ///     type Reply = ();
    /// }
    /// let gather = evener_ring::CombiningList::<Bytes>::new(1);
    /// let mut kept = Vec::new();
    /// gather.take().run(1, |loans| loans.into_iter().map(|loan| kept.push(loan)).collect());
    /// ```
    pub fn run(&mut self, max: usize, work: impl for<'c> FnOnce(Vec<E::Loan<'c>>) -> Vec<E::Reply>) {
        // Whatever happens, dropping `part` answers the callers that have no answer.
        let mut part = self.split(max);
        let loans = part.take_all();
        for reply in work(loans) {
            part.answer(LendOutcome::Answered(reply));
        }
    }

    /// Cuts the `max` oldest off.
    fn split(&mut self, max: usize) -> Part<'_, E> {
        let part = Part { list: self.list, first: self.first, count: max.min(self.count) };
        self.first = part.slots().last().map_or(self.first, CallerSlot::next);
        self.count -= part.count;
        part
    }
}

impl<E: LentWork> Drop for Batch<'_, E> {
    fn drop(&mut self) {
        let mut rest = self.split(self.count);
        // Each loan goes before its caller does.
        drop(rest.take_all());
        while rest.count > 0 {
            rest.answer(LendOutcome::Unused);
        }
    }
}

/// The slots of a part of a batch that have no answer yet. Dropping it breaks them.
struct Part<'g, E: LentWork> {
    list: &'g CombiningList<E>,
    /// Name of the oldest.
    first: u32,
    count: usize,
}

impl<'g, E: LentWork> Part<'g, E> {
    fn slots(&self) -> impl Iterator<Item = &'g CallerSlot<E>> + use<'g, E> {
        let list = self.list;
        let first = list.slot(self.first);
        std::iter::successors(first, |slot| list.slot(slot.next())).take(self.count)
    }

    /// Moves the loans out. Once.
    fn take_all(&self) -> Vec<E::Loan<'static>> {
        // SAFETY: on a list that was taken; the two callers of this function call it once, before they answer.
        self.slots().map(|slot| unsafe { slot.take() }).collect()
    }

    /// Answers the oldest.
    fn answer(&mut self, answer: LendOutcome<E::Reply>) {
        let Some(slot) = self.slots().next() else { return };
        // The link first: a slot that was given back is its caller's.
        (self.first, self.count) = (slot.next(), self.count - 1);
        // SAFETY: the loan was moved out and, since `work` keeps none, is gone; no slot comes twice.
        unsafe { slot.give_back(answer) };
    }
}

impl<E: LentWork> Drop for Part<'_, E> {
    fn drop(&mut self) {
        while self.count > 0 {
            self.answer(LendOutcome::Broken);
        }
    }
}

const PUSH: Ordering = if cfg!(mutant = "push_relaxed") { Relaxed } else { Release };
const TAKE: Ordering = if cfg!(mutant = "take_relaxed") { Relaxed } else { Acquire };

const COUNT_SHIFT: u32 = 16;
const GENERATION_SHIFT: u32 = 32;
/// Of an index, and of a count once it is shifted down.
const FIELD_MASK: u64 = (1 << COUNT_SHIFT) - 1;

const fn generation_of(head: u64) -> u32 {
    (head >> GENERATION_SHIFT) as u32
}

const fn count_of(head: u64) -> usize {
    (head >> COUNT_SHIFT & FIELD_MASK) as usize
}

/// Name of the newest, 0 for none.
const fn index_of(head: u64) -> u32 {
    (head & FIELD_MASK) as u32
}

/// The head after a push of the slot called `name`. The count has room: there are at most 2^15 slots.
const fn pushed(head: u64, name: u32) -> u64 {
    (head & !FIELD_MASK | name as u64) + (1 << COUNT_SHIFT)
}

/// The head after its list was taken: the next generation, and no caller waits.
const fn emptied(head: u64) -> u64 {
    let generation = generation_of(head).wrapping_add(if cfg!(mutant = "generation_stays") { 0 } else { 1 });
    (generation as u64) << GENERATION_SHIFT
}
