//! The device's side: takes requests, gives them back.

use super::chain::Copied;
use super::{
    Chain, DESCRIPTOR_BYTES, ELEMENTS_MAX, ENTRIES, Events, FLAGS, INDEX, Malformed, Misfit, QUIET,
    QueueMemory, Tables, passes, size_of_queue,
};
use crate::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};
use crate::sync::atomic::{Ordering::SeqCst, fence};

/// The device's side of a queue.
///
/// It writes `avail_event` whatever was agreed on, because QEMU 10 never informs a vhost-user-crypto device that its guest goes by
/// index: such a guest looks at that word, any other does not.
#[derive(Debug)]
pub struct Device<H> {
    queue_memory: H,
    events: Events,
    size: u16,
    /// Position of the next entry to take.
    taken: u16,
    /// The available index as last seen.
    available_index: u16,
    /// Position of the next used element; counts all that were given back.
    given: u16,
    /// The used index that was published to the driver.
    published: u16,
}

impl<H: QueueMemory> Device<H> {
    /// Makes the device's side of a queue whose first `position` requests were taken and given back before (0: a fresh one).
    ///
    /// # Errors
    ///
    /// Where the slices do not belong to one size.
    pub fn starting_at(queue_memory: H, events: Events, position: u16) -> Result<Self, Misfit> {
        let size = size_of_queue(&queue_memory)?;
        Ok(Self {
            queue_memory,
            events,
            size,
            taken: position,
            available_index: position,
            given: position,
            published: position,
        })
    }

    /// Returns the position of the next request to take, for the device that goes on after this one.
    #[must_use]
    pub const fn position(&self) -> u16 {
        self.taken
    }

    /// Returns the number of requests that were taken and not given back.
    #[must_use]
    pub const fn in_flight(&self) -> u16 {
        self.taken.wrapping_sub(self.given)
    }

    /// Copies the oldest request that waits into `chain`; `false` where none waits.
    ///
    /// # Errors
    ///
    /// Where the driver wrote what cannot be.
    pub fn take(&mut self, tables: &impl Tables, chain: &mut Chain) -> Result<bool, Malformed> {
        if self.available_index == self.taken && self.look()? == 0 {
            return Ok(false);
        }
        let entry = ENTRIES + usize::from(self.taken & (self.size - 1));
        // Relaxed, as all of the request: the Acquire of the index orders it.
        let head = self.queue_memory.available()[entry].load(Relaxed);
        if head >= self.size {
            return Err(Malformed::Head(head.into()));
        }
        self.taken = self.taken.wrapping_add(1);
        chain.begin(head);
        self.follow(head, tables, chain)?;
        Ok(true)
    }

    /// Returns how many requests wait.
    ///
    /// # Errors
    ///
    /// Where the driver offers more than the queue holds, those under way included.
    pub fn look(&mut self) -> Result<u16, Malformed> {
        // Acquire: pairs with the Release in the driver's `publish`; a device that sees the index sees entries, descriptors and data.
        let index = self.queue_memory.available()[INDEX].load(LOOK);
        let waiting = index.wrapping_sub(self.taken);
        // Also not backwards: what was seen once stays. Sums of two counts below 2^16 need more bits.
        let is_whole = u32::from(waiting) + u32::from(self.in_flight()) <= u32::from(self.size);
        if !is_whole || waiting < self.available_index.wrapping_sub(self.taken) {
            return Err(Malformed::Index { by: waiting });
        }
        self.available_index = index;
        Ok(waiting)
    }

    /// Gives a request back, with the number of bytes that were written; the driver does not see it before
    /// [`publish`](Self::publish). In any order, each that was taken once.
    ///
    /// # Panics
    ///
    /// Where more are given back than were taken: a bug of the device.
    pub fn give_back(&mut self, head: u16, written: u32) {
        assert!(self.in_flight() > 0, "only what was taken is given back");
        let element = &self.queue_memory.used()[usize::from(self.given & (self.size - 1))];
        element.id.store(head.into(), Relaxed);
        element.len.store(written, Relaxed);
        self.given = self.given.wrapping_add(1);
    }

    /// Whether something was given back that the driver cannot see yet: it is lost where the queue ends before
    /// [`publish`](Self::publish).
    #[must_use]
    pub const fn has_unshown(&self) -> bool {
        self.given != self.published
    }

    /// Shows the driver what was given back, once for a whole batch, and returns whether it wants to be called for it.
    pub fn publish(&mut self) -> bool {
        let (old, new) = (self.published, self.given);
        if old == new {
            return false;
        }
        // Release: pairs with the Acquire in the driver's `look`; a driver that sees the index sees the elements and the data.
        self.queue_memory.used_head()[INDEX].store(new, SHOW);
        self.published = new;
        if !cfg!(mutant = "vq_call_unfenced") {
            // Pairs with the fence in the driver's `wake_after`: of two fences one is first, so either the driver's second look
            // sees the index, or the look below sees its wish.
            fence(SeqCst);
        }
        let available = self.queue_memory.available();
        match self.events {
            Events::Index => passes(available[ENTRIES + usize::from(self.size)].load(Relaxed), new, old),
            Events::Flags => available[FLAGS].load(Relaxed) & QUIET == 0,
        }
    }

    /// Asks for a kick when the next request comes, and returns whether one waits already: only where none does may the caller
    /// sleep.
    ///
    /// # Errors
    ///
    /// As [`look`](Self::look).
    pub fn listen(&mut self) -> Result<bool, Malformed> {
        if !cfg!(mutant = "vq_event_unwritten") {
            self.queue_memory.avail_event().store(self.taken, Relaxed);
        }
        // By index the flag stays 0, as the specification demands.
        self.queue_memory.used_head()[FLAGS].store(0, Relaxed);
        if !cfg!(mutant = "vq_listen_unfenced") {
            // Pairs with the fence in the driver's `publish`.
            fence(SeqCst);
        }
        Ok(self.look()? > 0 && !cfg!(mutant = "vq_listen_once"))
    }

    /// Asks for no kicks, as long as this thread looks by itself. By index there is nothing to do: an event that was passed stays
    /// passed.
    pub fn quiet(&mut self) {
        if self.events == Events::Flags {
            self.queue_memory.used_head()[FLAGS].store(QUIET, Relaxed);
        }
    }

    /// Copies the elements of the chain that begins at `head`.
    fn follow(&self, head: u16, tables: &impl Tables, chain: &mut Chain) -> Result<(), Malformed> {
        let mut at = head;
        // A loop ends in `push`, which takes no more than ELEMENTS_MAX.
        loop {
            let copied = self.descriptor(at);
            if copied.is_table {
                return follow_table(copied, tables, chain);
            }
            chain.push(copied.element)?;
            match copied.next {
                None => return Ok(()),
                Some(next) if next >= self.size => return Err(Malformed::Next(next)),
                Some(next) => at = next,
            }
        }
    }

    fn descriptor(&self, at: u16) -> Copied {
        let descriptor = &self.queue_memory.descriptors()[usize::from(at)];
        let place = (descriptor.address.load(Relaxed), descriptor.len.load(Relaxed));
        Copied::new(place, descriptor.flags.load(Relaxed), descriptor.next.load(Relaxed))
    }
}

/// Entries of a table of up to some 24 KiB of text, as Linux makes them, and of all that our driver makes.
const SHORT_PIECES: usize = 64;

/// Copies the table at once and then follows the copy, so that the driver cannot change it in between.
fn follow_table(table: Copied, tables: &impl Tables, chain: &mut Chain) -> Result<(), Malformed> {
    if table.next.is_some() {
        return Err(Malformed::Nested);
    }
    let table = table.element;
    let byte_count = usize::try_from(table.len).unwrap_or(usize::MAX);
    if byte_count == 0 || byte_count % DESCRIPTOR_BYTES != 0 || byte_count > ELEMENTS_MAX * DESCRIPTOR_BYTES {
        return Err(Malformed::TableBytes(table.len));
    }
    // Only the longest are worth an allocation, and only they are.
    let (mut short, mut long) = ([0; SHORT_PIECES * DESCRIPTOR_BYTES], Vec::new());
    let copy = if byte_count <= short.len() {
        &mut short[..byte_count]
    } else {
        long.resize(byte_count, 0);
        &mut long[..]
    };
    if !tables.copy_out(table.address, copy) {
        return Err(Malformed::TableAddress(table.address));
    }
    let mut at = 0;
    loop {
        let bytes = copy.chunks_exact(DESCRIPTOR_BYTES).nth(usize::from(at)).ok_or(Malformed::Next(at))?;
        let copied = Copied::from_bytes(bytes.try_into().expect("a chunk has the bytes of an element"));
        if copied.is_table {
            return Err(Malformed::Nested);
        }
        chain.push(copied.element)?;
        let Some(next) = copied.next else { return Ok(()) };
        at = next;
    }
}

const LOOK: Ordering = if cfg!(mutant = "vq_look_relaxed") { Relaxed } else { Acquire };
const SHOW: Ordering = if cfg!(mutant = "vq_used_relaxed") { Relaxed } else { Release };
