//! The word at the head of the list: `generation | count | index of the newest + 1`, with 32, 16 and 16 bits.

const COUNT_SHIFT: u32 = 16;
const GENERATION_SHIFT: u32 = 32;
/// Of an index, and of a count once it is shifted down.
const FIELD_MASK: u64 = (1 << COUNT_SHIFT) - 1;

pub(super) const fn generation_of(head: u64) -> u32 {
    (head >> GENERATION_SHIFT) as u32
}

pub(super) const fn count_of(head: u64) -> usize {
    (head >> COUNT_SHIFT & FIELD_MASK) as usize
}

/// Name of the newest, 0 for none.
pub(super) const fn index_of(head: u64) -> u32 {
    (head & FIELD_MASK) as u32
}

/// The head after a push of the slot called `name`. The count has space: there are at most 2^15 slots.
pub(super) const fn pushed(head: u64, name: u32) -> u64 {
    (head & !FIELD_MASK | name as u64) + (1 << COUNT_SHIFT)
}

/// The head after its list was taken: the next generation, and no caller waits.
pub(super) const fn emptied(head: u64) -> u64 {
    let generation = generation_of(head).wrapping_add(if cfg!(mutant = "generation_stays") { 0 } else { 1 });
    (generation as u64) << GENERATION_SHIFT
}
