//! Queues items between threads: a bounded ring of slots, of which producers and consumers claim several at once.

mod ring;
mod slot;
mod slot_range;
mod storage;

pub use ring::Ring;
pub use slot::Slot;
pub use storage::{CAPACITY_MAX, Heap, Storage};
