//! One slot: a place for an item and the sequence that says which thread may touch it.
//!
//! States of position `p`: sequence is `p` (free) -> a producer moves the tail past `p`, writes the place, sets the sequence to
//! `p + 1` (full) -> a consumer moves the head past `p`, takes the item, sets the sequence to `p + capacity` (free for the next
//! lap). The thread that moved an end past `p` is the only one that may touch the slot until it sets the sequence.

use std::mem::MaybeUninit;

use crate::Word;
use crate::sync::UnsafeCell;
use crate::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

/// A slot of a ring: the sequence word, then the place, as in C. Side by side, so that the one cache miss that finds the sequence
/// brings the item.
#[repr(C)]
pub struct Slot<T> {
    /// The claimant of the position writes it, everyone reads it.
    sequence: Word,
    /// The claimant of the position touches it, no other thread.
    place: UnsafeCell<MaybeUninit<T>>,
}

/// Turn minus position of a slot that a producer may claim.
pub(crate) const FREE: u32 = 0;
/// Turn minus position of a slot that a consumer may claim.
pub(crate) const FULL: u32 = 1;

impl<T> Slot<T> {
    /// Makes an empty slot that is free for `position`.
    #[must_use]
    pub fn free_for(position: u32) -> Self {
        Self {
            sequence: Word::new(position.wrapping_add(FREE)),
            place: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Returns the sequence. A thread that then claims the slot also sees what the one who set this sequence did to the place.
    #[inline(always)]
    pub(crate) fn sequence(&self) -> u32 {
        // Acquire: pairs with the Release in `empty` (for producers) and in `fill` (for consumers).
        self.sequence.load(LOOK)
    }

    /// Moves `item` in and hands the slot to the consumers.
    ///
    /// # Safety
    ///
    /// The caller found the slot free for `position`, claimed that position at the tail, and fills it once.
    #[inline(always)]
    pub(crate) unsafe fn fill(&self, position: u32, item: T) {
        if cfg!(mutant = "publish_first") {
            self.sequence.store(position.wrapping_add(FULL), PUBLISH);
        }
        // SAFETY: the claim makes this thread the only one that touches the place until the store below.
        self.place.with_mut(|place| unsafe { place.write(MaybeUninit::new(item)) });
        // Release: pairs with the Acquire in `sequence`; the consumer that sees FULL sees the item.
        self.sequence.store(position.wrapping_add(FULL), PUBLISH);
    }

    /// Moves the item out and hands the slot to the producers of the next lap, `capacity` positions on.
    ///
    /// # Safety
    ///
    /// The caller found the slot full at `position`, claimed that position at the head, and empties it once.
    #[inline(always)]
    pub(crate) unsafe fn empty(&self, position: u32, capacity: usize) -> T {
        // SAFETY: the claim makes this thread the only one that touches the place until the store below.
        let item = self.place.with(|place| unsafe { place.read() });
        // Release: pairs with the Acquire in `sequence`; the producer that sees FREE writes after the item was taken.
        self.sequence.store(position.wrapping_add(distance(capacity)), VACATE);
        // SAFETY: the sequence was FULL, so an item had been written, and the claim makes this the only copy that is used.
        unsafe { item.assume_init() }
    }
}

const LOOK: Ordering = if cfg!(mutant = "look_relaxed") { Relaxed } else { Acquire };
const PUBLISH: Ordering = if cfg!(mutant = "publish_relaxed") { Relaxed } else { Release };
const VACATE: Ordering = if cfg!(mutant = "vacate_relaxed") { Relaxed } else { Release };

/// Returns `count` slots as a distance between positions.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "a ring has at most 2^30 slots")]
pub(crate) const fn distance(count: usize) -> u32 {
    count as u32
}
