//! A queue's words in regions that two processes map.

use std::sync::Arc;

use super::{DESCRIPTOR_BYTES, Descriptor, ENTRIES, Misfit, QueueMemory, SIZE_MAX, UsedElement};
use crate::process::Shared;
use crate::sync::{Word, Word16, Word64};
use crate::{OutOfRegion, Region};

/// A place in a region.
type Place = (Arc<Region>, usize);

/// The words of one queue in mapped regions, which live as long as this does.
#[derive(Debug)]
pub struct Mapped {
    size: u16,
    descriptors: Place,
    available: Place,
    used: Place,
}

/// Returns the bytes of descriptors, available ring and used ring of a queue of `size` entries, both events included.
#[must_use]
pub fn part_bytes(size: u16) -> [usize; 3] {
    let count = usize::from(size);
    [count * DESCRIPTOR_BYTES, (ENTRIES + count + 1) * 2, ENTRIES * 2 + count * size_of::<UsedElement>() + 2]
}

impl Mapped {
    /// Finds the parts of a queue of `size` entries: descriptors, available ring and used ring, each a region and an offset in
    /// it, aligned to 16, 2 and 4 bytes as VIRTIO demands (2.7).
    ///
    /// # Errors
    ///
    /// Where a part is not aligned or not wholly inside its region, or where no queue has that size.
    pub fn new(size: u16, [descriptors, available, used]: [Place; 3]) -> Result<Self, Misfit> {
        let queue = Self { size, descriptors, available, used };
        let is_size = size.is_power_of_two() && size <= SIZE_MAX;
        let is_aligned = queue.descriptors.1 % DESCRIPTOR_BYTES == 0 && queue.used.1 % 4 == 0;
        if is_size && is_aligned && queue.check().is_ok() { Ok(queue) } else { Err(Misfit) }
    }

    fn check(&self) -> Result<(), OutOfRegion> {
        let count = usize::from(self.size);
        self.descriptors.0.slice::<Descriptor>(self.descriptors.1, count)?;
        self.available.0.slice::<Word16>(self.available.1, ENTRIES + count + 1)?;
        self.used.0.slice::<Word16>(self.used.1, ENTRIES)?;
        self.used.0.slice::<UsedElement>(self.used.1 + ENTRIES * 2, count)?;
        self.used.0.slice::<Word16>(self.event_at(), 1).map(drop)
    }

    fn event_at(&self) -> usize {
        self.used.1 + ENTRIES * 2 + usize::from(self.size) * size_of::<UsedElement>()
    }
}

/// Nothing that `new` found inside its region leaves it: sizes and offsets stay.
const CHECKED: &str = "checked when the queue was made";

impl QueueMemory for Mapped {
    fn descriptors(&self) -> &[Descriptor] {
        let (region, at) = &self.descriptors;
        region.slice(*at, self.size.into()).expect(CHECKED)
    }

    fn available(&self) -> &[Word16] {
        let (region, at) = &self.available;
        region.slice(*at, ENTRIES + usize::from(self.size) + 1).expect(CHECKED)
    }

    fn used_head(&self) -> &[Word16] {
        let (region, at) = &self.used;
        region.slice(*at, ENTRIES).expect(CHECKED)
    }

    fn used(&self) -> &[UsedElement] {
        let (region, at) = &self.used;
        region.slice(*at + ENTRIES * 2, self.size.into()).expect(CHECKED)
    }

    fn avail_event(&self) -> &Word16 {
        &self.used.0.slice(self.event_at(), 1).expect(CHECKED)[0]
    }
}

// SAFETY: atomics of 8, 4, 2 and 2 bytes in C's order, which leaves no gap.
unsafe impl Shared for Descriptor {}
// SAFETY: two atomics of 4 bytes.
unsafe impl Shared for UsedElement {}

const _: () = assert!(size_of::<Descriptor>() == 16 && align_of::<Descriptor>() == align_of::<Word64>());
const _: () = assert!(size_of::<UsedElement>() == 8 && align_of::<UsedElement>() == align_of::<Word>());
