//! The driver's side: offers requests, collects what was used.

use std::collections::VecDeque;

use super::{
    DESCRIPTOR_BYTES, Descriptor, ELEMENTS_MAX, ENTRIES, Element, Events, FLAGS, INDEX, Malformed, Misfit,
    NEXT, QUIET, QueueMemory, TABLE, WRITE, passes, size_of_queue,
};
use crate::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};
use crate::sync::atomic::{Ordering::SeqCst, fence};

/// The driver's side of a queue.
///
/// Which descriptors are free and which follow which stands in private memory; what the device sees is a copy.
#[derive(Debug)]
pub struct Driver<H> {
    queue_memory: H,
    events: Events,
    size: u16,
    /// Taken in front and put back behind: requests with a table that come back in order have the name of their place in the
    /// available ring. DPDK's `rte_vhost_crypto` (22.11 to 26.07) needs that: it takes the one for the other when it gives back.
    free: VecDeque<u16>,
    slots: Vec<Slot>,
    /// Position of the next entry; counts all that were added.
    added: u16,
    /// The available index that was published to the device.
    published: u16,
    /// Up to here used elements were taken.
    taken: u16,
    /// The used index as last seen.
    used_index: u16,
}

/// What the driver knows of a descriptor.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    next: Option<u16>,
    /// Whether a chain that the device holds begins here.
    is_head: bool,
}

/// A request that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// Its name, as [`Driver::add`] gave it. It may be given to the next request from now on.
    pub head: u16,
    /// Bytes that the device says it wrote: its word, nothing more.
    pub written: u32,
}

impl<H: QueueMemory> Driver<H> {
    /// Makes the driver's side of a fresh queue, whose words are zero.
    ///
    /// # Errors
    ///
    /// Where the slices do not belong to one size.
    pub fn new(queue_memory: H, events: Events) -> Result<Self, Misfit> {
        let size = size_of_queue(&queue_memory)?;
        let free = (0..size).collect();
        let slots = vec![Slot::default(); usize::from(size)];
        Ok(Self { queue_memory, events, size, free, slots, added: 0, published: 0, taken: 0, used_index: 0 })
    }

    /// Returns the number of descriptors that are free: one request with a table takes one.
    #[must_use]
    pub fn space(&self) -> usize {
        self.free.len()
    }

    /// Returns the number of requests that were added and not taken back.
    #[must_use]
    pub const fn in_flight(&self) -> u16 {
        self.added.wrapping_sub(self.taken)
    }

    /// Adds a request with a descriptor for each element; the device does not see it before [`publish`](Self::publish).
    ///
    /// Returns its name, which is free again once it was taken back; none where there is no space, no element, or more than
    /// [`ELEMENTS_MAX`].
    pub fn add(&mut self, elements: &[Element]) -> Option<u16> {
        if elements.is_empty() || elements.len() > self.free.len().min(ELEMENTS_MAX) {
            return None;
        }
        let mut next = None;
        for element in elements.iter().rev() {
            let flags = if element.is_writable { WRITE } else { 0 };
            next = Some(self.describe(element.address, element.len, flags, next)?);
        }
        self.enter(next?)
    }

    /// As [`add`](Self::add), for elements that stand in a table ([`write_table`](super::write_table)) of `count` at `address`.
    pub fn add_table(&mut self, address: u64, count: usize) -> Option<u16> {
        if count == 0 || count > ELEMENTS_MAX {
            return None;
        }
        let len = u32::try_from(count * DESCRIPTOR_BYTES).ok()?;
        let head = self.describe(address, len, TABLE, None)?;
        self.enter(head)
    }

    /// Shows the device what was added, once for a whole batch, and returns whether it wants to be kicked for it.
    pub fn publish(&mut self) -> bool {
        let (old, new) = (self.published, self.added);
        if old == new {
            return false;
        }
        // Release: pairs with the Acquire in the device's `look`; a device that sees the index sees entries, descriptors and data.
        self.queue_memory.available()[INDEX].store(new, SHOW);
        self.published = new;
        if !cfg!(mutant = "vq_kick_unfenced") {
            // Pairs with the fence in the device's `listen`: of two fences one is first, so either the device's second look
            // sees the index, or the look below sees that it listens.
            fence(SeqCst);
        }
        match self.events {
            Events::Index => passes(self.queue_memory.avail_event().load(Relaxed), new, old),
            Events::Flags => self.queue_memory.used_head()[FLAGS].load(Relaxed) & QUIET == 0,
        }
    }

    /// Takes the oldest request that came back, if any did.
    ///
    /// # Errors
    ///
    /// Where the device gave back what it does not hold.
    pub fn take(&mut self) -> Result<Option<Used>, Malformed> {
        if self.used_index == self.taken && self.look()? == 0 {
            return Ok(None);
        }
        let element = &self.queue_memory.used()[usize::from(self.taken & (self.size - 1))];
        // Relaxed: the Acquire of the index orders them.
        let (id, written) = (element.id.load(Relaxed), element.len.load(Relaxed));
        let head = u16::try_from(id).map_err(|_| Malformed::Head(id))?;
        let slot = self.slots.get_mut(usize::from(head)).filter(|slot| slot.is_head);
        slot.ok_or(Malformed::Head(id))?.is_head = false;
        self.release(head);
        self.taken = self.taken.wrapping_add(1);
        Ok(Some(Used { head, written }))
    }

    /// Returns how many requests came back and were not taken yet.
    ///
    /// # Errors
    ///
    /// Where the device gave back more than it holds.
    pub fn look(&mut self) -> Result<u16, Malformed> {
        // Acquire: pairs with the Release in the device's `publish`; a driver that sees the index sees the elements and the data.
        let index = self.queue_memory.used_head()[INDEX].load(COLLECT);
        let ready = index.wrapping_sub(self.taken);
        // Also not backwards: what was seen once stays.
        if ready > self.published.wrapping_sub(self.taken) || ready < self.used_index.wrapping_sub(self.taken)
        {
            return Err(Malformed::Index { by: ready });
        }
        self.used_index = index;
        Ok(ready)
    }

    /// Asks for a call once `count` more requests (at least one) came back, and returns whether so many are there already: only
    /// where they are not may the caller sleep. By flags, a call comes for any of them.
    ///
    /// # Errors
    ///
    /// As [`look`](Self::look).
    pub fn wake_after(&mut self, count: u16) -> Result<bool, Malformed> {
        let count = count.max(1);
        match self.events {
            Events::Index => {
                let last = self.taken.wrapping_add(count - 1);
                self.queue_memory.available()[ENTRIES + usize::from(self.size)].store(last, Relaxed);
            }
            Events::Flags => self.queue_memory.available()[FLAGS].store(0, Relaxed),
        }
        if !cfg!(mutant = "vq_wake_unfenced") {
            // Pairs with the fence in the device's `publish`: either its look at our wish sees it, or our second look sees what
            // it gave back.
            fence(SeqCst);
        }
        Ok(self.look()? >= count && !cfg!(mutant = "vq_sleep_always"))
    }

    /// Asks for no calls, as long as this thread looks by itself. By index there is nothing to do: an event that was passed stays
    /// passed.
    pub fn quiet(&mut self) {
        if self.events == Events::Flags {
            self.queue_memory.available()[FLAGS].store(QUIET, Relaxed);
        }
    }

    /// Writes one descriptor; none where none is free.
    fn describe(&mut self, address: u64, len: u32, flags: u16, next: Option<u16>) -> Option<u16> {
        let at = self.free.pop_front()?;
        self.slots[usize::from(at)] = Slot { next, is_head: false };
        let Descriptor { address: to_address, len: to_len, flags: to_flags, next: to_next } =
            &self.queue_memory.descriptors()[usize::from(at)];
        // Relaxed: the index publishes them.
        to_address.store(address, Relaxed);
        to_len.store(len, Relaxed);
        to_flags.store(flags | if next.is_some() { NEXT } else { 0 }, Relaxed);
        to_next.store(next.unwrap_or(0), Relaxed);
        Some(at)
    }

    fn enter(&mut self, head: u16) -> Option<u16> {
        self.slots[usize::from(head)].is_head = true;
        let entry = ENTRIES + usize::from(self.added & (self.size - 1));
        self.queue_memory.available()[entry].store(head, Relaxed);
        self.added = self.added.wrapping_add(1);
        Some(head)
    }

    fn release(&mut self, head: u16) {
        let mut at = Some(head);
        while let Some(slot) = at {
            self.free.push_back(slot);
            at = self.slots[usize::from(slot)].next;
        }
    }
}

const SHOW: Ordering = if cfg!(mutant = "vq_show_relaxed") { Relaxed } else { Release };
const COLLECT: Ordering = if cfg!(mutant = "vq_collect_relaxed") { Relaxed } else { Acquire };
