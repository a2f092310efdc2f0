//! What a combiner took from the list: it runs loans, oldest first, and gives back unused what it does not run.

use super::CombiningList;
use crate::lending::caller_slot::{CallerSlot, LendOutcome, LentWork};

/// Loans that were taken. What is not run is given back unused.
pub struct Batch<'g, E: LentWork> {
    pub(super) list: &'g CombiningList<E>,
    /// Name of the oldest that was not run, 0 for none.
    pub(super) first: u32,
    pub(super) count: usize,
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
