//! The ring: claim positions, move items, pass the turn.
//!
//! The way of one position `p`: turn is `p` (free) -> a producer moves the tail past `p`, writes the place, sets the turn
//! to `p + 1` (full) -> a consumer moves the head past `p`, takes the item, sets the turn to `p + capacity` (free for the
//! next lap). Whoever moved an end past `p` is the only one who may touch the slot until it sets the turn.

use std::fmt;
use std::marker::PhantomData;
use std::mem;

use crate::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};
use crate::{Heap, Home, Word};

/// A bounded queue for many producers and many consumers, first in, first out.
///
/// Every operation returns at once; [`Doorbell`](crate::Doorbell) is for those who want to sleep. Positions are 32 bits
/// and wrap. Items leave in the order of their positions, so what one producer pushed leaves in that producer's order, and
/// a run that one `push_all` moved stands together.
///
/// A producer that stops between claiming and publishing holds up the consumers, not the other producers, until it goes
/// on (and the other way round for a consumer); neither kind of stop is waited for inside an operation.
pub struct Ring<T, H: Home<T> = Heap<T>> {
    home: H,
    /// Items pass through; what is owned is the home's.
    items: PhantomData<fn(T) -> T>,
}

/// Positions that this thread has claimed and nobody else touches.
struct Run {
    first: u32,
    count: u32,
}

impl<T> Ring<T> {
    /// Makes an empty ring in the heap with `capacity` slots, rounded up to a power of two and to at least 2.
    ///
    /// # Panics
    ///
    /// Where `capacity` exceeds [`CAPACITY_MAX`](crate::CAPACITY_MAX).
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::at(Heap::starting_at(0, capacity))
    }
}

impl<T, H: Home<T>> Ring<T, H> {
    /// Makes a ring over the words of `home`, which may hold items already.
    #[must_use]
    pub const fn at(home: H) -> Self {
        Self { home, items: PhantomData }
    }

    /// Returns the number of slots.
    #[must_use]
    #[inline]
    pub fn capacity(&self) -> usize {
        self.home.capacity() as usize
    }

    /// Returns how many items the ring held at some moment during the call, those being moved in or out included.
    ///
    /// Under contention the two ends are read at different moments: good for a decision, not for an invariant.
    #[must_use]
    pub fn len(&self) -> usize {
        let head = self.home.head().load(Acquire);
        let held = self.home.tail().load(Acquire).wrapping_sub(head);
        // A head read after the tail that it overtook gives a difference just below zero.
        let ahead = if held > u32::MAX / 2 { 0 } else { held };
        ahead.min(self.home.capacity()) as usize
    }

    /// Returns whether [`len`](Self::len) is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends `item`.
    ///
    /// # Errors
    ///
    /// Gives `item` back where the ring is full.
    #[inline]
    pub fn push(&self, item: T) -> Result<(), T> {
        let Some(run) = self.claim(self.home.tail(), FREE, 1) else { return Err(item) };
        // SAFETY: `run` holds one position, claimed at the tail and filled here only.
        unsafe { self.fill(run.first, item) };
        Ok(())
    }

    /// Appends as many of `items` as fit, from the front and in order, and returns how many; the rest stays in order.
    ///
    /// One claim for the whole run, so the items stand together in the ring.
    #[inline]
    pub fn push_all(&self, items: &mut Vec<T>) -> usize {
        let wanted = u32::try_from(items.len()).unwrap_or(u32::MAX);
        let Some(run) = self.claim(self.home.tail(), FREE, wanted) else { return 0 };
        let count = run.count as usize;
        for (offset, item) in (0..run.count).zip(items.drain(..count)) {
            // SAFETY: the position is in `run`, claimed at the tail, and each is filled once.
            unsafe { self.fill(run.first.wrapping_add(offset), item) };
        }
        count
    }

    /// Takes the oldest item, or nothing where the ring is empty or the oldest item is still being moved in.
    #[inline]
    pub fn pop(&self) -> Option<T> {
        let run = self.claim(self.home.head(), FULL, 1)?;
        // SAFETY: `run` holds one position, claimed at the head and emptied here only.
        Some(unsafe { self.empty(run.first) })
    }

    /// Appends up to `max` of the oldest items to `out`, in order, and returns how many.
    ///
    /// One claim for the whole run. It ends before an item that is still being moved in.
    #[inline]
    pub fn pop_many(&self, out: &mut Vec<T>, max: usize) -> usize {
        let wanted = max.min(self.capacity());
        if out.capacity() - out.len() < wanted {
            // Before the claim: an allocation that fails must not strand claimed items.
            out.reserve(wanted.min(self.len()));
        }
        let room = u32::try_from(wanted.min(out.capacity() - out.len())).unwrap_or(u32::MAX);
        let Some(run) = self.claim(self.home.head(), FULL, room) else { return 0 };
        // SAFETY: the positions are those of `run`, claimed at the head, and each is emptied once.
        out.extend((0..run.count).map(|offset| unsafe { self.empty(run.first.wrapping_add(offset)) }));
        run.count as usize
    }

    /// Moves `end` past the longest run of slots whose turn is `due`, at most `wanted`; nothing where there is none.
    #[inline(always)]
    fn claim(&self, end: &Word, due: u32, wanted: u32) -> Option<Run> {
        let mut first = end.load(Relaxed);
        loop {
            let count = self.run_length(first, due, wanted);
            let found = if count == 0 {
                // A turn that is not due means full (or empty) only while `end` still stands here. Relaxed is enough:
                // the Acquire of the turn brought the move of `end` that preceded the change of that turn.
                let now = end.load(Relaxed);
                if now == first || cfg!(mutant = "one_look") {
                    return None;
                }
                now
            } else {
                // Relaxed: `end` orders nothing; items travel by the turns. A success means that `end` never left
                // `first`, so nobody claimed, and nobody changed, a slot of the run since it was looked at.
                match end.compare_exchange(first, first.wrapping_add(count), Relaxed, Relaxed) {
                    Ok(_) => return Some(Run { first, count }),
                    Err(now) => now,
                }
            };
            first = found;
        }
    }

    /// Counts the slots from `first` on whose turn is `due`, up to `wanted`.
    #[inline(always)]
    fn run_length(&self, first: u32, due: u32, wanted: u32) -> u32 {
        let is_due = |&offset: &u32| {
            let position = first.wrapping_add(offset);
            // Acquire: pairs with the Release in `empty` (for producers) and in `fill` (for consumers).
            self.home.turn(position).load(LOOK) == position.wrapping_add(due)
        };
        let looked_at = if cfg!(mutant = "first_only") { wanted.min(1) } else { wanted };
        (0..looked_at).find(|offset| !is_due(offset)).unwrap_or(wanted)
    }

    /// Writes `item` and hands the slot to the consumers.
    ///
    /// # Safety
    ///
    /// The caller claimed `position` at the tail and fills it once.
    #[inline(always)]
    unsafe fn fill(&self, position: u32, item: T) {
        if cfg!(mutant = "publish_first") {
            self.home.turn(position).store(position.wrapping_add(FULL), PUBLISH);
        }
        // SAFETY: the claim makes this thread the only one that touches the place until the store below.
        unsafe { self.home.place(position).write(item) };
        // Release: pairs with the Acquire in `run_length`; the consumer that sees FULL sees the item.
        self.home.turn(position).store(position.wrapping_add(FULL), PUBLISH);
    }

    /// Takes the item and hands the slot to the producers of the next lap.
    ///
    /// # Safety
    ///
    /// The caller claimed `position` at the head and empties it once.
    #[inline(always)]
    unsafe fn empty(&self, position: u32) -> T {
        // SAFETY: the claim found the slot full, and makes this thread the only one that touches it until the store below.
        let item = unsafe { self.home.place(position).take() };
        // Release: pairs with the Acquire in `run_length`; the producer that sees FREE writes after the item was taken.
        self.home.turn(position).store(position.wrapping_add(self.home.capacity()), VACATE);
        item
    }
}

impl<T, H: Home<T>> Drop for Ring<T, H> {
    /// Drops what the ring holds. Plain data is left where it lies: in shared memory another process may want it.
    fn drop(&mut self) {
        if mem::needs_drop::<T>() {
            while self.pop().is_some() {}
        }
    }
}

impl<T, H: Home<T>> fmt::Debug for Ring<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring")
            .field("capacity", &self.capacity())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// Turn minus position of a slot that a producer may claim.
const FREE: u32 = 0;
/// Turn minus position of a slot that a consumer may claim.
const FULL: u32 = 1;

/// How a turn is looked at.
const LOOK: Ordering = if cfg!(mutant = "look_relaxed") { Relaxed } else { Acquire };
/// How a full slot is handed over.
const PUBLISH: Ordering = if cfg!(mutant = "publish_relaxed") { Relaxed } else { Release };
/// How an emptied slot is handed back.
const VACATE: Ordering = if cfg!(mutant = "vacate_relaxed") { Relaxed } else { Release };
