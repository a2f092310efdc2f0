//! Where a ring's words live.

use crate::{CachePadded, Slot, Word};

/// Most slots a ring may have, 2^30: a position and its neighbour one lap on stay far apart in 32 bits.
pub const CAPACITY_MAX: usize = 1 << 30;

/// The memory of one ring: the positions of its two ends, and its slots.
///
/// # Safety
///
/// An implementor promises, as long as it lives:
/// - each function lends the same object whenever it is called;
/// - there are as many slots as some power of two, from 2 to [`CAPACITY_MAX`];
/// - only rings touch these objects. Before the first one does, `head` and `tail` hold the same position `p`, and each
///   slot is free for the one of the positions `p` to `p + capacity - 1` (wrapping) that equals its index modulo capacity;
/// - those that share these objects may be sent an item (threads: `T: Send`; processes: plain data), so that an
///   implementor is `Send` and `Sync` only where that is so.
pub unsafe trait Storage<T> {
    /// Lends the next position to be taken; consumers write it.
    fn head(&self) -> &Word;
    /// Lends the next position to be filled; producers write it.
    fn tail(&self) -> &Word;
    /// Lends the slots; position `p` belongs to the slot whose index is `p` modulo their number.
    fn slots(&self) -> &[Slot<T>];
}

/// A ring's words in this process's heap.
pub struct Heap<T> {
    head: CachePadded<Word>,
    tail: CachePadded<Word>,
    slots: Box<[Slot<T>]>,
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
        let lap = slot_count - 1;
        let position_of = |index: u32| first.wrapping_add(index.wrapping_sub(first) & lap);
        Self {
            head: CachePadded::new(Word::new(first)),
            tail: CachePadded::new(Word::new(first)),
            slots: (0..slot_count).map(|index| Slot::free_for(position_of(index))).collect(),
        }
    }
}

// SAFETY: every function lends a field, which nothing else touches and which `starting_at` set as demanded; the
// implementations of Send and Sync below demand `T: Send`.
unsafe impl<T> Storage<T> for Heap<T> {
    #[inline(always)]
    fn head(&self) -> &Word {
        &self.head
    }

    #[inline(always)]
    fn tail(&self) -> &Word {
        &self.tail
    }

    #[inline(always)]
    fn slots(&self) -> &[Slot<T>] {
        &self.slots
    }
}

// SAFETY: a heap owns its items, which may go to another thread.
unsafe impl<T: Send> Send for Heap<T> {}
// SAFETY: threads that share a heap reach its items only through the ring's protocol, which moves each item out to one
// thread and lends none, so `T: Send` is enough.
unsafe impl<T: Send> Sync for Heap<T> {}
