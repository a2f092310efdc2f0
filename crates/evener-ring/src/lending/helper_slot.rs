//! Lends a piece of work to helper threads for the time of one call: each helper serves at a slot.
//!
//! [`lend()`](super::loan()) (`loan.rs`) puts the work on every free [`HelperSlot`] and rings; a helper at its slot runs it ([`HelperSlot::serve`]) while the caller runs its own;
//! then the caller takes back what no helper began and waits for what runs. Only then does `lend` return, or unwind.
//!
//! | state | next state |
//! |---|---|
//! | FREE | TAKEN: the lender, which then writes the work; or CLOSED: helpers end |
//! | TAKEN | QUEUED: the lender rings |
//! | QUEUED | RUNNING: the helper, which then reads the work; or FREE: the lender takes it back |
//! | RUNNING | DONE: the helper |
//! | DONE | FREE: the lender |
//! | CLOSED | none: no helper serves there any more |
//!
//! The ways not taken stand in `docs/design/ring.md`.

use std::fmt;

use crate::sync::UnsafeCell;
use crate::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};
use crate::{CachePadded, Doorbell, Word};

/// A place at which one thread takes work that another lends.
pub struct HelperSlot {
    /// FREE to TAKEN to QUEUED, QUEUED to FREE and DONE to FREE: the lender. QUEUED to RUNNING to DONE: the helper.
    state: CachePadded<Word>,
    /// The lender writes it while TAKEN, the helper reads it while RUNNING.
    work: UnsafeCell<Option<Work>>,
    /// The helper waits for it.
    queued: Doorbell,
    /// The lender waits for it.
    done: Doorbell,
}

/// The lender's closure, whose lifetime ends when `lend` does.
pub(super) type Work = *const (dyn Fn() + Sync);

// SAFETY: `work` is touched by one thread at a time, as its comment says, and what it points to is `Sync`.
unsafe impl Sync for HelperSlot {}
// SAFETY: a slot that moves is not borrowed, so its state is FREE and `work` is not read again.
unsafe impl Send for HelperSlot {}

impl HelperSlot {
    /// Makes a free slot that no helper serves yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: CachePadded::new(Word::new(FREE)),
            work: UnsafeCell::new(None),
            queued: Doorbell::new(),
            done: Doorbell::new(),
        }
    }

    /// Returns whether work may be lent here now; another may be faster.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.state.load(Relaxed) == FREE
    }

    /// Sleeps until work is lent, and runs it once. Returns `false` where the slot was closed.
    ///
    /// # Panics
    ///
    /// Where the work does, when the lender has seen that it has ended.
    pub fn serve(&self) -> bool {
        self.serve_awake(|| false, || ())
    }

    /// The same, but it looks for work as long as `looks_on` says so, which is called between two looks, before it sleeps.
    /// A lender that finds it awake makes no system call. Calls `begins` between taking the work and doing it.
    ///
    /// # Panics
    ///
    /// As [`serve`](Self::serve).
    pub fn serve_awake(&self, mut looks_on: impl FnMut() -> bool, begins: impl FnOnce()) -> bool {
        loop {
            // Acquire: pairs with the Release in `offer`; the helper that sees QUEUED sees the work and what it borrows.
            match self.state.compare_exchange(QUEUED, RUNNING, BEGIN, Relaxed) {
                Ok(_) => break,
                Err(CLOSED) => return false,
                // A load where nothing is to be had: an exchange would take the word's cache line from the lender.
                Err(_) => {
                    while !self.is_wanted() {
                        if !looks_on() {
                            self.sleep();
                        }
                    }
                }
            }
        }
        let _end = End(self);
        // SAFETY: the state is RUNNING, so no thread writes the place.
        let work = self.work.with(|place| unsafe { *place });
        let work = work.expect("the lender writes the work before it queues the slot");
        // SAFETY: the lender of a RUNNING slot stays in `lend`, and with it what the pointer borrows.
        let work = unsafe { &*work };
        begins();
        work();
        true
    }

    /// Ends the serving at this slot, now or when the work that was lent is settled.
    pub fn close(&self) {
        while self.state.compare_exchange(FREE, CLOSED, Relaxed, Relaxed).is_err() {
            let ticket = self.done.listen();
            match self.state.load(Relaxed) {
                FREE => {}
                CLOSED => return,
                _ => _ = self.done.wait(ticket, None),
            }
        }
        self.queued.ring_all();
    }

    /// [Closes](Self::close) each of them.
    pub fn close_all(slots: &[Self]) {
        slots.iter().for_each(Self::close);
    }

    fn sleep(&self) {
        let ticket = self.queued.listen();
        if !self.is_wanted() {
            self.queued.wait(ticket, None);
        }
    }

    /// Whether there is anything for the helper.
    fn is_wanted(&self) -> bool {
        matches!(self.state.load(Relaxed), QUEUED | CLOSED)
    }

    /// Puts `work` here, where the slot is free.
    pub(super) fn offer(&self, work: Work) -> bool {
        // Acquire: pairs with the Release that freed the slot; its former lender is done with the place.
        if self.state.compare_exchange(FREE, TAKEN, Acquire, Relaxed).is_err() {
            return false;
        }
        // SAFETY: the state is TAKEN, so this thread alone touches the place.
        self.work.with_mut(|place| unsafe { *place = Some(work) });
        // Release: pairs with the Acquire in `serve`.
        self.state.store(QUEUED, OFFER);
        self.queued.ring_one();
        true
    }

    /// Takes the work back, unless someone has begun.
    pub(super) fn take_back(&self) -> bool {
        if cfg!(mutant = "back_stored") {
            self.free();
            return true;
        }
        // Release: pairs with the Acquire in `offer`. Acquire is not needed: no helper has touched anything.
        let back = self.state.compare_exchange(QUEUED, FREE, Release, Relaxed).is_ok();
        if back {
            self.done.ring_all();
        }
        back
    }

    /// Waits for the work that runs here, and frees the slot.
    pub(super) fn wait_done(&self) {
        for _ in 0..LOOKS {
            if self.is_done() {
                return self.free();
            }
            std::hint::spin_loop();
        }
        loop {
            let ticket = self.done.listen();
            if self.is_done() {
                return self.free();
            }
            self.done.wait(ticket, None);
        }
    }

    fn is_done(&self) -> bool {
        // Acquire: pairs with the Release in `End`; the lender sees all that was done for it.
        self.state.load(Acquire) == DONE || cfg!(mutant = "no_wait")
    }

    fn free(&self) {
        // Release: pairs with the Acquire in `offer`.
        self.state.store(FREE, Release);
        // For `close`, which waits for this.
        self.done.ring_all();
    }
}

/// Tells the lender that the work has ended, also where it panicked.
struct End<'s>(&'s HelperSlot);

impl Drop for End<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `is_done`. From here on what was lent may be gone; the slot is not.
        self.0.state.store(DONE, FINISH);
        if cfg!(loom) {
            // A point at which loom lets the lender run: the fence of the ring is none, and would hide a store that
            // carries nothing.
            self.0.state.load(Relaxed);
        }
        self.0.done.ring_all();
    }
}

impl Default for HelperSlot {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for HelperSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HelperSlot").field("state", &self.state.load(Relaxed)).finish_non_exhaustive()
    }
}

/// The slot is unused.
const FREE: u32 = 0;
/// A lender puts its work here.
const TAKEN: u32 = 1;
const QUEUED: u32 = 2;
const RUNNING: u32 = 3;
const DONE: u32 = 4;
/// No helper serves the slot any more.
const CLOSED: u32 = 5;

/// Looks before a lender sleeps, about 20 us where a pause takes 40 cycles: what it waits for is one part, and a sleep
/// on an idle core of a virtual machine costs twice that. Assumed, not measured: 2000, because 40 cycles each are 80,000, 20 us at 4 GHz. None in a model, where waiting is for others to run.
const LOOKS: u32 = if cfg!(loom) { 0 } else { 2_000 };

const OFFER: Ordering = if cfg!(mutant = "offer_relaxed") { Relaxed } else { Release };
const BEGIN: Ordering = if cfg!(mutant = "begin_relaxed") { Relaxed } else { Acquire };
const FINISH: Ordering = if cfg!(mutant = "finish_relaxed") { Relaxed } else { Release };
