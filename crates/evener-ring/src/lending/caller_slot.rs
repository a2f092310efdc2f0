//! One caller's slot: what it lends to another thread, the combiner, for the time of one call.
//!
//! | state | which thread may touch the rest | next state |
//! |---|---|---|
//! | FREE | none | LENT: a caller [claims](CallerSlot::claim) it, and puts its loan in ([`CallerSlot::put`]) |
//! | LENT | the caller; once the list was taken on which it stands, the combiner | ANSWERED, UNUSED or BROKEN: the combiner takes the loan out ([`CallerSlot::take`]) and [gives the slot back](CallerSlot::give_back) |
//! | ANSWERED, UNUSED, BROKEN | the caller | FREE: the caller [collects](CallerSlot::collect) the reply |

use std::mem::{ManuallyDrop, MaybeUninit};

use crate::Word;
use crate::sync::UnsafeCell;
use crate::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

/// What callers lend to each other, and what they get for it.
///
/// A loan may borrow the caller's memory: `lend` returns only when no other thread can touch it.
pub trait LentWork: 'static {
    /// What a caller lends; `'c` lasts as long as its call.
    type Loan<'c>: Send;
    /// What it gets back.
    type Reply: Send + 'static;
}

/// What a caller comes back with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LendOutcome<R> {
    /// The work was done.
    Answered(R),
    /// No thread touched what was lent: the caller does the work itself.
    Unused,
    /// The combiner panicked or gave no answer; memory that was lent for writing holds anything.
    Broken,
}

/// One caller's slot.
#[repr(align(128))] // As `CachePadded`: the caller writes it while neighbours are answered.
pub(crate) struct CallerSlot<E: LentWork> {
    /// Which thread may touch the rest. See the constants.
    state: Word,
    /// The next on the list, 0 for none. The caller writes it before the slot is on the list, the taker afterwards.
    next: Word,
    /// The caller writes it before the slot is on the list, the taker moves it out.
    loan: UnsafeCell<MaybeUninit<E::Loan<'static>>>,
    /// The taker writes it before ANSWERED, the caller moves it out.
    reply: UnsafeCell<MaybeUninit<E::Reply>>,
}

/// Free.
const FREE: u32 = 0;
/// The caller's, and while it is on a list that was taken, the taker's.
const LENT: u32 = 1;
/// Back, with a reply.
const ANSWERED: u32 = 2;
/// Back, untouched.
const UNUSED: u32 = 3;
/// Back without a reply.
const BROKEN: u32 = 4;

// SAFETY: threads that share a place move loans and replies through it, one at a time by the state's order, and never
// share one; both may be sent by the bounds of `LentWork`.
unsafe impl<E: LentWork> Sync for CallerSlot<E> {}
// SAFETY: as above; a place owns what it holds.
unsafe impl<E: LentWork> Send for CallerSlot<E> {}

impl<E: LentWork> CallerSlot<E> {
    pub(crate) fn new() -> Self {
        let (loan, reply) = (UnsafeCell::new(MaybeUninit::uninit()), UnsafeCell::new(MaybeUninit::uninit()));
        Self { state: Word::new(FREE), next: Word::new(0), loan, reply }
    }

    /// Makes it the caller's where it is free.
    #[inline]
    pub(crate) fn claim(&self) -> bool {
        // The look spares an exchange, which would take the line from its user.
        // Acquire: pairs with the Release in `collect`; the last caller has moved its reply out.
        self.state.load(Relaxed) == FREE && self.state.compare_exchange(FREE, LENT, CLAIM, Relaxed).is_ok()
    }

    /// Puts a loan in.
    ///
    /// # Safety
    ///
    /// The calling thread claimed the place and has not published it, and does not return to the lender of `loan` before
    /// [`Self::collect`] gave something.
    #[inline]
    pub(crate) unsafe fn put(&self, loan: E::Loan<'_>) {
        let loan = ManuallyDrop::new(loan);
        let source = (&raw const loan).cast::<E::Loan<'static>>();
        // SAFETY: the same type but for its lifetime, which has no part in layout; moved, since the original is never
        // dropped. The longer lifetime is not believed: takers only see it for every `'c`, until they give it back.
        let loan = unsafe { source.read() };
        // SAFETY: claimed and not published, so that no other thread touches the cell.
        self.loan.with_mut(|cell| unsafe { cell.write(MaybeUninit::new(loan)) });
    }

    /// Moves the loan out.
    ///
    /// # Safety
    ///
    /// The calling thread took the list that this place was on, and has not moved its loan out before.
    #[inline]
    pub(crate) unsafe fn take(&self) -> E::Loan<'static> {
        // SAFETY: until the state changes, the taker alone touches the cell.
        let loan = self.loan.with(|cell| unsafe { cell.read() });
        // SAFETY: what is on a list was put in, and this is the only copy that is used.
        unsafe { loan.assume_init() }
    }

    /// Gives the place back to its caller; `None` says that the work broke.
    ///
    /// # Safety
    ///
    /// The calling thread moved the loan out, nothing that it borrowed is used any more, and it gives back once.
    #[inline]
    pub(crate) unsafe fn give_back(&self, answer: LendOutcome<E::Reply>) {
        let state = match answer {
            LendOutcome::Answered(reply) => {
                // SAFETY: until the state changes, the taker alone touches the cell.
                self.reply.with_mut(|cell| unsafe { cell.write(MaybeUninit::new(reply)) });
                ANSWERED
            }
            LendOutcome::Unused => UNUSED,
            LendOutcome::Broken => BROKEN,
        };
        // Release: pairs with the Acquire in `is_back`; the caller sees the reply and all that was written for it.
        self.state.store(state, GIVE_BACK);
    }

    /// Whether the loan is back. The caller may then [`Self::collect`], and sees what the taker did.
    #[inline]
    pub(crate) fn is_back(&self) -> bool {
        // Acquire: pairs with the Release in `give_back`.
        self.state.load(LOOK) != LENT
    }

    /// Ends the call: moves the reply out and frees the place.
    ///
    /// # Safety
    ///
    /// The calling thread claimed the place, saw it [back](Self::is_back), and collects once.
    pub(crate) unsafe fn collect(&self) -> LendOutcome<E::Reply> {
        // Relaxed: `is_back` has looked, and only the caller changes a place that is back.
        let answer = match self.state.load(Relaxed) {
            ANSWERED => {
                // SAFETY: the place is back, so that its caller alone touches the cell.
                let reply = self.reply.with(|cell| unsafe { cell.read() });
                // SAFETY: ANSWERED is set after the reply was written, and this is the only copy that is used.
                LendOutcome::Answered(unsafe { reply.assume_init() })
            }
            UNUSED => LendOutcome::Unused,
            _ => LendOutcome::Broken,
        };
        // Release: pairs with the Acquire in `claim`; the next caller writes after the reply was moved out.
        self.state.store(FREE, FREE_UP);
        answer
    }

    /// The next place on the list, 0 for none. Relaxed: carried by the exchange of the head, as the loan is.
    #[inline]
    pub(crate) fn next(&self) -> u32 {
        self.next.load(Relaxed)
    }

    /// Sets the next place on the list: its caller before it is published, then its taker.
    #[inline]
    pub(crate) fn set_next(&self, next: u32) {
        self.next.store(next, Relaxed);
    }
}

const CLAIM: Ordering = if cfg!(mutant = "claim_relaxed") { Relaxed } else { Acquire };
const GIVE_BACK: Ordering = if cfg!(mutant = "give_back_relaxed") { Relaxed } else { Release };
const LOOK: Ordering = if cfg!(mutant = "look_back_relaxed") { Relaxed } else { Acquire };
const FREE_UP: Ordering = if cfg!(mutant = "free_up_relaxed") { Relaxed } else { Release };
