//! Who of those that wait looks for the dead while the others sleep.

use super::{Gate, Place};
use crate::layout::{Queue, WaitQueue};
use crate::world::World;

impl<W: World> Gate<'_, W> {
    /// Makes one of the last the watcher, which stays for longest.
    pub(super) fn name_watcher(&self) {
        let last =
            self.wait_queue(WaitQueue::Main).last().or_else(|| self.wait_queue(WaitQueue::Express).last());
        let Some(last) = last else { return };
        if self.world.exchange(self.queue_word(Queue::Watcher), 0, number(last.place)) {
            // It sleeps for long, and is to look sooner.
            self.ring(last);
        }
    }

    /// Whether this waiter looks for the dead; it begins to where no other does.
    pub(super) fn is_watcher(&self, place: Place) -> bool {
        let watcher = self.queue_word(Queue::Watcher);
        match self.world.load(watcher) {
            0 => self.world.exchange(watcher, 0, number(place.index)),
            other => other == number(place.index),
        }
    }
}

/// Of a place, in the word of the watcher.
#[expect(clippy::cast_possible_truncation, reason = "a place has 12 bits")]
pub(super) const fn number(place: usize) -> u32 {
    place as u32 + 1
}

/// Time between two looks for the dead.
pub(super) const WATCH_NS: u64 = 40_000_000;
