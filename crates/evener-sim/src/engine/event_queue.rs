//! The event queue of a discrete-event simulation: what is going to happen at known times, in order of time and then of entry.
//!
//! Its entries are no [`EventId`]: that names what threads wait for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::thread::{EventId, ThreadId};

/// Something that happens at a known time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Entry {
    /// A sleeping thread wakes.
    Timer { thread: ThreadId },
    /// A thread has waited for an event as long as it wanted, unless that was an earlier wait.
    Limit { thread: ThreadId, event: EventId, wait: u64 },
    /// A module ends a request and interrupts `core` for `interrupt` nanoseconds.
    Completion { done: EventId, failed: bool, interrupt: u64, core: usize },
    /// The interrupt of a request has run.
    InterruptEnd { done: EventId },
}

#[derive(Default)]
pub(super) struct EventQueue {
    entries: BinaryHeap<Reverse<(u64, u64, Entry)>>,
    entered: u64,
}

impl EventQueue {
    pub(super) fn add(&mut self, at: u64, entry: Entry) {
        self.entered += 1;
        self.entries.push(Reverse((at, self.entered, entry)));
    }

    pub(super) fn next(&self) -> Option<u64> {
        self.entries.peek().map(|Reverse((at, ..))| *at)
    }

    /// The oldest entry that is due at `now`.
    pub(super) fn take_due(&mut self, now: u64) -> Option<Entry> {
        if self.next()? > now {
            return None;
        }
        self.entries.pop().map(|Reverse((_, _, entry))| entry)
    }
}
