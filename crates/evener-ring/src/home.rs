//! Where a ring's words live.

use crate::{CachePadded, Place, Word};

/// Most slots a ring may have, 2^30: a position and its neighbour one lap on stay far apart in 32 bits.
pub const CAPACITY_MAX: usize = 1 << 30;

/// The memory of one ring: two positions and, for each slot, a turn word and a place.
///
/// # Safety
///
/// An implementor promises, as long as it lives:
/// - `capacity` is always the same power of two, from 2 to [`CAPACITY_MAX`];
/// - each function lends the same object whenever it is asked for the same thing, `turn` and `place` being asked for the
///   same thing when positions differ by a multiple of `capacity`, and different objects otherwise;
/// - only rings touch these objects. Before the first one does, `head` and `tail` hold the same position `p`, and
///   `turn(q)` holds `q` for each of the `capacity` positions `q` from `p` on (wrapping);
/// - whoever shares these objects may be sent an item (threads: `T: Send`; processes: plain data), so that an
///   implementor is `Send` and `Sync` only where that is so.
pub unsafe trait Home<T> {
    /// Returns the number of slots.
    fn capacity(&self) -> u32;
    /// Lends the next position to be taken; consumers write it.
    fn head(&self) -> &Word;
    /// Lends the next position to be filled; producers write it.
    fn tail(&self) -> &Word;
    /// Lends the turn word of the slot of `position`; whoever claimed the position writes it.
    fn turn(&self, position: u32) -> &Word;
    /// Lends the place in the slot of `position`; whoever claimed the position touches it.
    fn place(&self, position: u32) -> &Place<T>;
}

/// A ring's words in this process's heap.
pub struct Heap<T> {
    head: CachePadded<Word>,
    tail: CachePadded<Word>,
    /// Slots - 1.
    mask: u32,
    slots: Box<[Slot<T>]>,
}

/// Turn and place side by side: the one cache miss that finds the turn brings the item.
struct Slot<T> {
    turn: Word,
    place: Place<T>,
}

impl<T> Heap<T> {
    /// Allocates `capacity` slots, rounded up to a power of two and to at least 2.
    ///
    /// The first position is `first` instead of 0, so that a test may begin just before positions wrap.
    ///
    /// # Panics
    ///
    /// Where `capacity` exceeds [`CAPACITY_MAX`].
    #[must_use]
    pub fn starting_at(first: u32, capacity: usize) -> Self {
        assert!(capacity <= CAPACITY_MAX, "a ring has at most 2^30 slots");
        let slot_count = u32::try_from(capacity.next_power_of_two().max(2)).expect("at most 2^30");
        let mask = slot_count - 1;
        let turn_of = |index: u32| first.wrapping_add(index.wrapping_sub(first) & mask);
        let slot = |index| Slot { turn: Word::new(turn_of(index)), place: Place::empty() };
        Self {
            head: CachePadded::new(Word::new(first)),
            tail: CachePadded::new(Word::new(first)),
            mask,
            slots: (0..slot_count).map(slot).collect(),
        }
    }

    #[inline(always)]
    fn slot(&self, position: u32) -> &Slot<T> {
        // SAFETY: the box holds `mask` + 1 slots from its first moment to its last.
        unsafe { self.slots.get_unchecked((position & self.mask) as usize) }
    }
}

// SAFETY: every function lends a field or the slot at the position's low bits, and `starting_at` set them as demanded.
// Nothing else reads or writes them; the implementations of Send and Sync below demand `T: Send`.
unsafe impl<T> Home<T> for Heap<T> {
    #[inline(always)]
    fn capacity(&self) -> u32 {
        self.mask + 1
    }

    #[inline(always)]
    fn head(&self) -> &Word {
        &self.head
    }

    #[inline(always)]
    fn tail(&self) -> &Word {
        &self.tail
    }

    #[inline(always)]
    fn turn(&self, position: u32) -> &Word {
        &self.slot(position).turn
    }

    #[inline(always)]
    fn place(&self, position: u32) -> &Place<T> {
        &self.slot(position).place
    }
}

// SAFETY: a heap owns its items, which may go to another thread.
unsafe impl<T: Send> Send for Heap<T> {}
// SAFETY: threads that share a heap reach its items only through the ring's protocol, which moves each item out to one
// thread and lends none, so `T: Send` is enough.
unsafe impl<T: Send> Sync for Heap<T> {}
