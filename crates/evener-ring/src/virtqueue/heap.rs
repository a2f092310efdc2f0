//! A queue's words in this process's heap: for tests and models.

use std::sync::Arc;

use super::{Descriptor, ENTRIES, QueueMemory, SIZE_MAX, UsedElement};
use crate::sync::Word16;

/// The words of one queue, all zero at first.
#[derive(Debug)]
pub struct Heap {
    descriptors: Box<[Descriptor]>,
    available: Box<[Word16]>,
    used_head: [Word16; ENTRIES],
    used: Box<[UsedElement]>,
    avail_event: Word16,
}

impl Heap {
    /// Makes a queue of `size` entries.
    ///
    /// # Panics
    ///
    /// Where `size` is no power of two, or above [`SIZE_MAX`].
    #[must_use]
    pub fn new(size: u16) -> Arc<Self> {
        assert!(size.is_power_of_two() && size <= SIZE_MAX, "a queue's size is a power of two");
        let count = usize::from(size);
        Arc::new(Self {
            descriptors: (0..count).map(|_| Descriptor::default()).collect(),
            available: (0..count + ENTRIES + 1).map(|_| Word16::default()).collect(),
            used_head: Default::default(),
            used: (0..count).map(|_| UsedElement::default()).collect(),
            avail_event: Word16::default(),
        })
    }
}

impl QueueMemory for Arc<Heap> {
    fn descriptors(&self) -> &[Descriptor] {
        &self.descriptors
    }

    fn available(&self) -> &[Word16] {
        &self.available
    }

    fn used_head(&self) -> &[Word16] {
        &self.used_head
    }

    fn used(&self) -> &[UsedElement] {
        &self.used
    }

    fn avail_event(&self) -> &Word16 {
        &self.avail_event
    }
}
