//! Moves requests from one driver to one device by the split virtqueue of VIRTIO 1.2 (section 2.7), in memory that both map.
//!
//! The path of one request: [`Driver::add`] (writes descriptors and an entry) -> [`Driver::publish`] (shows a whole batch, says
//! whether to kick the device) -> [`Device::take`] (copies a chain once and checks it) -> [`Device::give_back`] ->
//! [`Device::publish`] (shows what is used, says whether to call the driver) -> [`Driver::take`].
//!
//! Neither side believes the other: every value is loaded once and checked, and what is to be remembered (which descriptor
//! follows which, how many requests are under way) is remembered in private memory. What does not fit is a [`Malformed`], after
//! which the queue is not to be used any more. Nothing here sleeps or makes a system call: kicks and calls are the caller's.
//! `docs/design/virtqueue.md` has the proof that no wake-up is lost, and the mutants.

mod chain;
mod device;
mod driver;
mod heap;
#[cfg(not(any(loom, miri)))]
mod mapped_queue;

use crate::sync::{Word, Word16, Word64};

pub use chain::{Chain, DESCRIPTOR_BYTES, Element, NoTables, Tables, write_table};
pub use device::Device;
pub use driver::{Driver, Used};
pub use heap::Heap;
#[cfg(not(any(loom, miri)))]
pub use mapped_queue::{Mapped, part_bytes};

/// Most entries of a queue, 32,768 (VIRTIO 1.2, 2.7).
pub const SIZE_MAX: u16 = 1 << 15;

/// Most elements of a chain, tables included: QEMU's limit, for the specification's is the queue's size. Linux's driver of virtio-crypto
/// hands each page of a text over with all those behind it, once more each: 5 elements for a block, some 300 for 64 KiB.
pub const ELEMENTS_MAX: usize = 1_024;

/// A descriptor as it lies in shared memory.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Descriptor {
    pub(crate) address: Word64,
    pub(crate) len: Word,
    pub(crate) flags: Word16,
    pub(crate) next: Word16,
}

/// An element of the used ring as it lies in shared memory.
#[repr(C)]
#[derive(Debug, Default)]
pub struct UsedElement {
    pub(crate) id: Word,
    pub(crate) len: Word,
}

/// Where the words of one queue lie.
///
/// All slices have the lengths that belong to one size, a power of two from 1 to [`SIZE_MAX`], and are the same each time. Words
/// are little-endian, as are all targets that Evener is built for.
pub trait QueueMemory {
    /// Lends the descriptors: as many as the queue's size.
    fn descriptors(&self) -> &[Descriptor];
    /// Lends the available ring, which the driver writes: flags, index, `size` entries, the `used_event`.
    fn available(&self) -> &[Word16];
    /// Lends the beginning of the used ring, which the device writes: flags, index.
    fn used_head(&self) -> &[Word16];
    /// Lends the elements of the used ring: as many as the queue's size.
    fn used(&self) -> &[UsedElement];
    /// Lends the word behind the used ring: `avail_event`, which the device writes.
    fn avail_event(&self) -> &Word16;
}

/// How the two sides tell each other that they need not be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Events {
    /// By a flag: wake me always, or never.
    Flags,
    /// By index: wake me when that one is there (`VIRTIO_F_EVENT_IDX`). To be chosen only where both sides agreed on it.
    Index,
}

/// What the peer wrote that cannot be. The queue is over: what else is wrong is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// The available or used index moved by more than there can be.
    Index {
        /// By so many.
        by: u16,
    },
    /// A chain begins at a descriptor that is not there, or that the driver never gave away.
    Head(u32),
    /// A descriptor names a successor that is not there.
    Next(u16),
    /// A chain has more than [`ELEMENTS_MAX`] elements, or a loop.
    Long,
    /// A table of this many bytes: not whole descriptors, none, or more than [`ELEMENTS_MAX`].
    TableBytes(u32),
    /// A table, or part of it, lies where no memory is.
    TableAddress(u64),
    /// A table inside a table, or a table with a successor.
    Nested,
    /// An element to be read follows one to be written.
    Order,
}

/// Memory of a queue whose slices do not belong to one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misfit;

/// A driver may tell that it wants no calls (in the available ring), a device that it wants no kicks (in the used ring).
pub(crate) const QUIET: u16 = 1;

pub(crate) const FLAGS: usize = 0;
pub(crate) const INDEX: usize = 1;
pub(crate) const ENTRIES: usize = 2;

pub(crate) const NEXT: u16 = 1;
pub(crate) const WRITE: u16 = 2;
pub(crate) const TABLE: u16 = 4;

/// Returns the size of the queue at `queue_memory`.
pub(crate) fn size_of_queue(queue_memory: &impl QueueMemory) -> Result<u16, Misfit> {
    let size = u16::try_from(queue_memory.descriptors().len()).map_err(|_| Misfit)?;
    let count = usize::from(size);
    let fits = size.is_power_of_two()
        && size <= SIZE_MAX
        && queue_memory.available().len() == count + ENTRIES + 1
        && queue_memory.used_head().len() == ENTRIES
        && queue_memory.used().len() == count;
    if fits { Ok(size) } else { Err(Misfit) }
}

/// Whether an index that went from `old` to `new` passed `event` (VIRTIO 1.2, 2.7.7.2).
pub(crate) const fn passes(event: u16, new: u16, old: u16) -> bool {
    new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(old)
}

const _: () = assert!(cfg!(target_endian = "little"), "a virtqueue is little-endian");
