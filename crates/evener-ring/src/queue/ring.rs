//! The ring: claim a run of positions (`slot_range.rs`), move the items, pass the sequences (`slot.rs`).

use std::fmt;
use std::marker::PhantomData;
use std::mem;

use crate::queue::slot::{FREE, FULL};
use crate::queue::slot_range::SlotRange;
use crate::sync::atomic::Ordering::Relaxed;
use crate::{Heap, Storage, Word};

/// A bounded queue for many producers and many consumers, first in, first out.
///
/// Every operation returns at once; [`Doorbell`](crate::Doorbell) is for threads that want to sleep. Positions are 32 bits
/// and wrap. Items leave in the order of their positions, so what one producer pushed leaves in that producer's order, and
/// a run that one `push_all` moved stands together.
///
/// A producer that stops in the middle of a push holds up the consumers at its item, not the other producers; a consumer
/// that stops in the middle of a pop holds up the producers, one lap later, not the other consumers. No operation waits
/// for either: it returns with less, or nothing.
///
/// An item goes to another thread, so it must be allowed to:
///
/// ```compile_fail,E0277
/// let ring = evener_ring::Ring::<std::rc::Rc<u8>>::with_capacity(2);
/// std::thread::scope(|scope| scope.spawn(|| ring.pop()).join().is_ok());
/// ```
pub struct Ring<T, H: Storage<T> = Heap<T>> {
    storage: H,
    /// Items pass through; what is owned is the storage's.
    items: PhantomData<fn(T) -> T>,
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

impl<T, H: Storage<T>> Ring<T, H> {
    /// Makes a ring over the words of `storage`, which may hold items already.
    #[must_use]
    pub const fn at(storage: H) -> Self {
        Self { storage, items: PhantomData }
    }

    /// Returns the number of slots.
    #[must_use]
    #[inline]
    pub fn capacity(&self) -> usize {
        self.storage.slots().len()
    }

    /// Returns how many items the ring holds, those being moved in or out included.
    ///
    /// While others push and pop, the two ends are read at different moments: good for a decision, not for an invariant.
    /// Never 0 while an item lies here that was pushed before this call and that no thread takes.
    #[must_use]
    pub fn len(&self) -> usize {
        // Relaxed: an end older than it is gives a length that was true for one end only, which the contract allows.
        let head = self.storage.head().load(Relaxed);
        let held = self.storage.tail().load(Relaxed).wrapping_sub(head);
        // A tail older than the head gives a difference just below zero.
        let held = if held > u32::MAX / 2 { 0 } else { held };
        (held as usize).min(self.capacity())
    }

    /// Returns whether [`len`](Self::len) is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many of the oldest items a [`pop_many`](Self::pop_many) of `max` takes now, where no other thread takes any.
    ///
    /// Unlike [`len`](Self::len), it counts no item that is still being moved in, and looks at each that it counts.
    #[must_use]
    pub fn ready(&self, max: usize) -> usize {
        let first = self.storage.head().load(Relaxed);
        SlotRange::starting_at(first, self.storage.slots(), max).while_due(FULL).len()
    }

    /// Appends `item`.
    ///
    /// # Errors
    ///
    /// Gives `item` back where the ring is full.
    #[inline]
    pub fn push(&self, item: T) -> Result<(), T> {
        let Some(range) = self.claim(self.storage.tail(), FREE, 1) else { return Err(item) };
        let (position, slot) = range.single();
        // SAFETY: the claim at the tail found the slot free, and this is its one use.
        unsafe { slot.fill(position, item) };
        Ok(())
    }

    /// Appends as many of `items` as fit, from the front and in order, and returns how many; the rest stays in order.
    ///
    /// One claim for the whole run, so the items stand together in the ring.
    #[inline]
    pub fn push_all(&self, items: &mut Vec<T>) -> usize {
        self.push_all_arranged(items, |_| ())
    }

    /// The same; `arrange` sees those that fit, alone, and may change their order before they are moved. Until it returns, consumers
    /// find nothing here or behind, so it is short, and it must not panic.
    #[inline]
    pub fn push_all_arranged(&self, items: &mut Vec<T>, arrange: impl FnOnce(&mut [T])) -> usize {
        let Some(range) = self.claim(self.storage.tail(), FREE, items.len()) else { return 0 };
        let count = range.len();
        arrange(&mut items[..count]);
        let mut moved = items.drain(..count);
        for (mut position, slots) in range.pieces() {
            for (slot, item) in slots.iter().zip(&mut moved) {
                // SAFETY: the claim at the tail found the slot free, and a run names each of its slots once.
                unsafe { slot.fill(position, item) };
                position = position.wrapping_add(1);
            }
        }
        count
    }

    /// Takes the oldest item, or nothing where the ring is empty or the oldest item is still being moved in.
    #[inline]
    pub fn pop(&self) -> Option<T> {
        let (position, slot) = self.claim(self.storage.head(), FULL, 1)?.single();
        // SAFETY: the claim at the head found the slot full, and this is its one use.
        Some(unsafe { slot.empty(position, self.capacity()) })
    }

    /// Appends up to `max` of the oldest items to `out`, in order, and returns how many.
    ///
    /// One claim for the whole run. It ends before an item that is still being moved in.
    #[inline]
    pub fn pop_many(&self, out: &mut Vec<T>, max: usize) -> usize {
        let capacity = self.capacity();
        let wanted = max.min(capacity);
        if out.capacity() - out.len() < wanted {
            // Before the claim: an allocation that fails must not strand claimed items.
            out.reserve(wanted.min(self.len()));
        }
        let space = wanted.min(out.capacity() - out.len());
        let Some(range) = self.claim(self.storage.head(), FULL, space) else { return 0 };
        for (mut position, slots) in range.pieces() {
            out.extend(slots.iter().map(|slot| {
                // SAFETY: the claim at the head found the slot full, and a run names each of its slots once.
                let item = unsafe { slot.empty(position, capacity) };
                position = position.wrapping_add(1);
                item
            }));
        }
        range.len()
    }

    /// Moves `end` past the longest run of slots whose sequence is `due`, at most `wanted`; nothing where there is none.
    ///
    /// No other thread touches the slots of the run until their sequences are set.
    #[inline(always)]
    fn claim(&self, end: &Word, due: u32, wanted: usize) -> Option<SlotRange<'_, T>> {
        let mut first = end.load(Relaxed);
        loop {
            let range = SlotRange::starting_at(first, self.storage.slots(), wanted).while_due(due);
            let found = if range.len() == 0 {
                // A sequence that is not due means full (or empty) only while `end` still stands here. Relaxed is enough:
                // the Acquire of the sequence brought the move of `end` that preceded the change of that sequence.
                let now = end.load(Relaxed);
                if now == first || cfg!(mutant = "one_look") {
                    return None;
                }
                now
            } else {
                // Relaxed: `end` orders nothing; items travel by the sequences. A success means that `end` never left
                // `first`, so no thread claimed, and none changed, a slot of the run since it was looked at.
                match end.compare_exchange(first, range.end(), Relaxed, Relaxed) {
                    Ok(_) => return Some(range),
                    Err(now) => now,
                }
            };
            first = found;
        }
    }
}

impl<T, H: Storage<T>> Drop for Ring<T, H> {
    /// Drops what the ring holds. Plain data is left where it lies: in shared memory another process may want it.
    fn drop(&mut self) {
        if mem::needs_drop::<T>() {
            while self.pop().is_some() {}
        }
    }
}

impl<T, H: Storage<T>> fmt::Debug for Ring<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring")
            .field("capacity", &self.capacity())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
