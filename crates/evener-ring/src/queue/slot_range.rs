//! A run: positions one after the other, and their slots.

use crate::Slot;
use crate::queue::slot::distance;

/// The slots of the positions from `first` on. A run that crosses the end of the ring's slots has two pieces: loops over
/// a piece need neither mask nor bounds check.
pub(crate) struct SlotRange<'a, T> {
    first: u32,
    /// Up to the end of the ring's slots.
    near: &'a [Slot<T>],
    /// From the beginning of the ring's slots.
    far: &'a [Slot<T>],
}

impl<'a, T> SlotRange<'a, T> {
    /// Makes the run of `count` positions from `first` on, or of all slots where these are fewer.
    #[inline(always)]
    pub(crate) fn starting_at(first: u32, slots: &'a [Slot<T>], count: usize) -> Self {
        let (far, near) = slots.split_at(first as usize & (slots.len() - 1));
        let near = &near[..count.min(near.len())];
        let far = &far[..(count - near.len()).min(far.len())];
        Self { first, near, far }
    }

    /// Ends the run before the first slot whose sequence is not `due`.
    #[inline(always)]
    pub(crate) fn while_due(self, due: u32) -> Self {
        let near = due_part(self.near, self.first.wrapping_add(due));
        if near.len() < self.near.len() {
            return Self { near, far: &[], ..self };
        }
        let far = due_part(self.far, self.first.wrapping_add(distance(near.len()).wrapping_add(due)));
        Self { near, far, ..self }
    }

    #[inline(always)]
    pub(crate) const fn len(&self) -> usize {
        self.near.len() + self.far.len()
    }

    /// Returns the position after the last.
    #[inline(always)]
    pub(crate) const fn end(&self) -> u32 {
        self.first.wrapping_add(distance(self.len()))
    }

    /// Lends the first slot, with its position.
    #[inline(always)]
    pub(crate) fn single(&self) -> (u32, &'a Slot<T>) {
        (self.first, &self.near[0])
    }

    /// Lends the two pieces, each with its first position.
    #[inline(always)]
    pub(crate) const fn pieces(&self) -> [(u32, &'a [Slot<T>]); 2] {
        [(self.first, self.near), (self.first.wrapping_add(distance(self.near.len())), self.far)]
    }
}

/// Returns the slots up to the first whose sequence is not the expected one: `sequence`, then one more from slot to slot.
#[inline(always)]
fn due_part<T>(slots: &[Slot<T>], mut sequence: u32) -> &[Slot<T>] {
    for (index, slot) in slots.iter().enumerate() {
        if slot.sequence() != sequence {
            return &slots[..index];
        }
        if cfg!(mutant = "first_only") {
            break;
        }
        sequence = sequence.wrapping_add(1);
    }
    slots
}
