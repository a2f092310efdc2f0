//! A module as one process knows it, and the permit of one request there.
//!
//! [`Module::acquire`]: a place of this process that is idle (`attachment.rs`) -> the gate -> [`Permit`], which gives both back when it is dropped.

use std::sync::atomic::Ordering::Relaxed;

use evener_core::{Class, Nanos};
use evener_ring::Word64;

use super::Arbiter;
use super::attachment::Attachment;
use crate::costs::{self, Costs};
use crate::gate::{Gate, Grant, Refused, Request};
use crate::segment::{Shared, name_hash};
use crate::work::{Work, add_work};
use crate::world::World as _;

/// A module that the processes of this user share.
#[derive(Debug)]
pub struct Module {
    arbiter: Arbiter,
    name: Box<str>,
    hash: [u32; 2],
    capacity: u32,
    /// Which attachment it was looked up in, its place in the segment and one more, and its permits: a child's may be another.
    known: Word64,
}

impl Module {
    pub(super) fn new(arbiter: Arbiter, name: &str, capacity: u32) -> Self {
        Self { arbiter, name: name.into(), hash: name_hash(name), capacity, known: Word64::new(0) }
    }

    /// Gets a permit for one request that is predicted to take so long on the module, in the order of asking; waits at most so long.
    ///
    /// # Errors
    ///
    /// [`Refused`]: the request is to be done elsewhere.
    #[inline]
    pub fn acquire(&self, predicted: Nanos, longest_wait: Nanos) -> Result<Permit, Refused> {
        let request = Request { predicted_ns: predicted.0, longest_wait_ns: longest_wait.0, hopes: false };
        self.acquire_by(request, Discipline::Order)
    }

    /// Gets a permit as [`acquire`](Self::acquire), and waits for so long though it is predicted to take longer: for a thread that has nothing else to do.
    ///
    /// # Errors
    ///
    /// [`Refused`]: its time is over.
    pub fn wait_for(&self, predicted: Nanos, longest_wait: Nanos) -> Result<Permit, Refused> {
        let request = Request { predicted_ns: predicted.0, longest_wait_ns: longest_wait.0, hopes: true };
        self.acquire_by(request, Discipline::Order)
    }

    /// Gets a permit where one is free and no process waits for it.
    ///
    /// # Errors
    ///
    /// [`Refused`]: the request is to be done elsewhere.
    #[inline]
    pub fn try_acquire(&self, predicted: Nanos) -> Result<Permit, Refused> {
        self.acquire(predicted, Nanos::ZERO)
    }

    /// As paper 004's flags: a thread that comes first when one goes down has it. To compare with; not beside [`acquire`](Self::acquire).
    ///
    /// # Errors
    ///
    /// [`Refused`]: the request is to be done elsewhere.
    pub fn acquire_flag(&self, predicted: Nanos, longest_wait: Nanos) -> Result<Permit, Refused> {
        let request = Request { predicted_ns: predicted.0, longest_wait_ns: longest_wait.0, hopes: false };
        self.acquire_by(request, Discipline::Flags)
    }

    #[inline]
    fn acquire_by(&self, request: Request, discipline: Discipline) -> Result<Permit, Refused> {
        let attachment = self.arbiter.attachment().ok_or(Refused::NoPlace)?;
        let (module, capacity) = self.known_in(attachment).ok_or(Refused::NoPlace)?;
        let line = attachment.take_line().ok_or(Refused::NoPlace)?;
        let gate = gate(attachment.shared(), module, capacity).ok_or(Refused::NoPlace)?;
        let (place, turn) = attachment.line(line);
        let granted = match discipline {
            Discipline::Order => gate.acquire(place, turn, &request),
            Discipline::Flags => gate.acquire_flag(place, turn, &request),
        };
        match granted {
            Ok(grant) => {
                attachment.count_grant(place);
                Ok(Permit { attachment, module, capacity, line, grant, request, discipline })
            }
            Err(why) => {
                attachment.give_line_back(line);
                Err(why)
            }
        }
    }

    /// Returns how long a request that came now would wait at most, as all processes predict; as long as can be said where no permit comes back, and none where
    /// there is no arbiter.
    #[must_use]
    pub fn expected_start(&self) -> Option<Nanos> {
        let attachment = self.arbiter.attachment()?;
        let (module, capacity) = self.known_in(attachment)?;
        let shared = attachment.shared();
        Some(Nanos(gate(shared, module, capacity)?.expected_wait_ns(shared.now())))
    }

    /// Returns what was learned of a class on this module, by whichever process.
    #[must_use]
    pub fn costs(&self, class: Class) -> Option<Costs> {
        let attachment = self.arbiter.attachment()?;
        let (module, _) = self.known_in(attachment)?;
        costs::read(attachment.shared(), attachment.shared().shape(), module, class)
    }

    /// Tells others what was learned of a class on this module.
    pub fn publish(&self, class: Class, learned: &Costs) {
        let Some(attachment) = self.arbiter.attachment() else { return };
        if let Some((module, _)) = self.known_in(attachment) {
            costs::publish(attachment.shared(), attachment.shared().shape(), module, class, learned);
        }
    }

    /// Returns its permits; none where the segment has no space for it.
    #[must_use]
    pub fn capacity(&self) -> Option<u32> {
        let attachment = self.arbiter.attachment()?;
        self.known_in(attachment).and_then(|(_, capacity)| u32::try_from(capacity).ok())
    }

    /// Where it stands in the segment, and its permits.
    #[inline]
    fn known_in(&self, attachment: &Attachment) -> Option<(usize, usize)> {
        // Relaxed: the words that it names were there before this process asked.
        let known = self.known.load(Relaxed);
        if known >> 32 != u64::from(attachment.number()) || known & 0xFFFF == 0 {
            return self.look_up(attachment);
        }
        let (module, capacity) = ((known & 0xFFFF) as usize - 1, (known >> 16 & 0xFFFF) as usize);
        if capacity == 0 {
            return None;
        }
        match attachment.shared().is_called(module, self.hash) {
            true => Some((module, capacity)),
            false => self.look_up(attachment),
        }
    }

    /// Looks for its name, or gives it a place. Where there is none, this process does without for good: to look takes a lock of all.
    #[cold]
    fn look_up(&self, attachment: &Attachment) -> Option<(usize, usize)> {
        let found = attachment.shared().module(&self.name, self.capacity);
        let found = found.map(|module| (module, attachment.shared().capacity(module)));
        let (module, capacity) = found.unwrap_or_default();
        let known = u64::from(attachment.number()) << 32 | (capacity as u64) << 16 | (module as u64 + 1);
        self.known.store(known, Relaxed);
        found
    }
}

/// Who is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Discipline {
    Order,
    Flags,
}

/// The right to have one request at a module. Given back when it is dropped.
#[derive(Debug)]
#[must_use = "a permit that is dropped is given back"]
pub struct Permit {
    attachment: &'static Attachment,
    module: usize,
    capacity: usize,
    line: usize,
    grant: Grant,
    request: Request,
    discipline: Discipline,
}

impl Permit {
    /// Returns whether a process waits for it: time for a process that has it for many requests to give it back.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        gate(self.attachment.shared(), self.module, self.capacity).is_some_and(|gate| gate.has_waiters())
    }

    /// Counts what was done with it, for people to look at.
    #[inline]
    pub fn count(&self, work: Work) {
        if self.attachment.is_here() {
            let shared = self.attachment.shared();
            add_work(shared, shared.shape(), [self.module, self.grant.permit], work);
        }
    }

    /// Returns what was granted.
    #[must_use]
    pub const fn grant(&self) -> &Grant {
        &self.grant
    }
}

impl Drop for Permit {
    #[inline]
    fn drop(&mut self) {
        // A copy in a forked child has no permit.
        if !self.attachment.is_here() {
            return;
        }
        let (place, turn) = self.attachment.line(self.line);
        if let Some(gate) = gate(self.attachment.shared(), self.module, self.capacity) {
            match self.discipline {
                Discipline::Order => gate.release(place, turn, &self.grant, &self.request),
                Discipline::Flags => gate.release_flag(place, &self.grant),
            }
        }
        self.attachment.give_line_back(self.line);
    }
}

#[inline]
fn gate(shared: &Shared, module: usize, capacity: usize) -> Option<Gate<'_, Shared>> {
    Gate::new(shared, shared.shape(), module, capacity)
}
