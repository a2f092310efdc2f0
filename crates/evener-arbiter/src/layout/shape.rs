//! How many of everything a segment has, and so where each of them begins.

use evener_core::Class;

use super::{COST_WORDS, Header, Identity, LINE, Line, PermitWord, Queue};

/// Of a segment: how many modules, permits and places it has space for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    modules: usize,
    permits: usize,
    places: usize,
    queue: usize,
    classes: usize,
}

/// One of a module's two rings of waiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitQueue {
    /// Of all who wait.
    Main = 0,
    /// Of processes with a weight that have requests of their turn left; served first.
    Express = 1,
}

evener_core::named! {
    /// What is counted of a module, in the order of the segment, never on the way of a request that does not wait.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ModuleCount {
        /// Requests that were granted after they had waited.
        Waited = "waited",
        /// Requests that went away because their time was over.
        TimedOut = "timed out",
        /// Requests that did not wait, because it would have taken too long.
        TooLong = "too long a wait",
        /// Requests that found no space in the queue.
        Full = "queue full",
        /// Places of processes that died, with a permit or while they waited.
        Repaired = "places of the dead",
        /// Waiters that did not take a permit that was free for them.
        PassedOver = "passed over",
    }
}

/// Words in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) at: usize,
    pub(crate) count: usize,
}

impl Shape {
    /// The usual one: 16 modules with 64 permits, 2048 places.
    pub const USUAL: Self =
        Self { modules: 16, permits: 64, places: 2048, queue: 4096, classes: Class::COUNT };

    /// Of the benches' historic modes: 64 lists with a permit each.
    pub const LISTS: Self = Self { modules: 64, permits: 1, places: 2048, queue: 4096, classes: 0 };

    /// Of tests: as small as it may be. None where a number is too large for the words.
    #[must_use]
    pub const fn new(modules: usize, permits: usize, places: usize, queue_log: u32) -> Option<Self> {
        let fits = modules <= 64 && permits <= 64 && places <= 4096 && queue_log >= 1 && queue_log <= 14;
        let queue = 1 << (queue_log % 15);
        if fits && modules * permits * places > 0 {
            Some(Self { modules, permits, places, queue, classes: 0 })
        } else {
            None
        }
    }

    /// Modules that it has space for.
    #[must_use]
    pub const fn modules(&self) -> usize {
        self.modules
    }

    /// Permits of a module at most.
    #[must_use]
    pub const fn permits(&self) -> usize {
        self.permits
    }

    /// Requests that may be with the arbiter at once.
    #[must_use]
    pub const fn places(&self) -> usize {
        self.places
    }

    /// Waiters of a wait queue, those that went away and were not passed yet included; a power of two.
    pub(crate) const fn queue(&self) -> usize {
        self.queue
    }

    /// As it stands in the header.
    pub(crate) fn words(&self) -> [u32; 5] {
        [self.modules, self.permits, self.places, self.queue, self.classes]
            .map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// Words of a whole segment.
    #[must_use]
    pub const fn word_count(&self) -> usize {
        self.line(self.places, 0)
    }

    pub(crate) const fn header(&self, word: Header) -> usize {
        word as usize
    }

    pub(crate) const fn identity(&self, module: usize, word: Identity) -> usize {
        self.module(module) + word as usize
    }

    pub(crate) const fn queue_word(&self, module: usize, word: Queue) -> usize {
        self.module(module) + LINE + word as usize
    }

    /// Next position to serve.
    pub(crate) const fn head(&self, module: usize, wait_queue: WaitQueue) -> usize {
        self.queue_word(module, Queue::Ends) + 2 * wait_queue as usize
    }

    /// Next position to fill.
    pub(crate) const fn tail(&self, module: usize, wait_queue: WaitQueue) -> usize {
        self.head(module, wait_queue) + 1
    }

    pub(crate) const fn count(&self, module: usize, count: ModuleCount) -> usize {
        self.module(module) + 2 * LINE + 2 * count as usize
    }

    /// The word that says who has a permit.
    pub(crate) const fn permit(&self, module: usize, permit: usize) -> usize {
        self.permit_word(module, permit, PermitWord::Owner)
    }

    pub(crate) const fn permit_word(&self, module: usize, permit: usize, word: PermitWord) -> usize {
        self.module(module) + MODULE_LINES * LINE + permit * LINE + word as usize
    }

    /// The slot of a position.
    pub(crate) const fn slot(&self, module: usize, wait_queue: WaitQueue, position: u32) -> usize {
        let slot = position as usize & (self.queue - 1);
        self.permit(module, self.permits) + wait_queue as usize * self.queue + slot
    }

    pub(crate) const fn costs(&self, module: usize, class: usize) -> Option<Span> {
        if class >= self.classes {
            return None;
        }
        let first = self.permit(module, self.permits) + 2 * self.queue;
        Some(Span { at: first + class * COST_WORDS, count: COST_WORDS })
    }

    /// A word of a place's line.
    pub(crate) const fn place(&self, place: usize, word: Line) -> usize {
        self.line(place, word as usize)
    }

    const fn line(&self, place: usize, word: usize) -> usize {
        self.module(self.modules) + place * LINE + word
    }

    const fn module(&self, module: usize) -> usize {
        let rest = self.classes * COST_WORDS;
        let words = (MODULE_LINES + self.permits) * LINE + 2 * self.queue + rest.next_multiple_of(LINE);
        LINE + module * words.next_multiple_of(LINE)
    }
}

/// Lines of a module before its permits.
const MODULE_LINES: usize = 3;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_things_share_a_word_and_what_two_processes_write_shares_no_line() {
        let shape = Shape { classes: 3, ..Shape::new(3, 2, 4, 2).unwrap() };
        let mut seen = BTreeSet::new();
        let mut take = |at: usize| assert!(at < shape.word_count() && seen.insert(at), "{at}");
        for module in 0..3 {
            (0..LINE).for_each(|word| take(shape.identity(module, Identity::State) + word));
            (0..LINE).for_each(|word| take(shape.queue_word(module, Queue::Ends) + word));
            ModuleCount::ALL.into_iter().for_each(|count| take(shape.count(module, count)));
            for permit in 0..2 {
                assert_eq!(shape.permit(module, permit) % LINE, 0);
                (0..LINE).for_each(|word| take(shape.permit(module, permit) + word));
            }
            for wait_queue in [WaitQueue::Main, WaitQueue::Express] {
                (0..4).for_each(|position| take(shape.slot(module, wait_queue, position)));
                assert_eq!(shape.slot(module, wait_queue, 5), shape.slot(module, wait_queue, 1));
            }
            let costs = (0..3).map(|class| shape.costs(module, class).unwrap());
            costs.for_each(|span| (span.at..span.at + span.count).for_each(&mut take));
            assert_eq!(shape.costs(module, 3), None);
        }
        for place in 0..4 {
            assert_eq!(shape.place(place, Line::Generation) % LINE, 0);
            (0..LINE).for_each(|word| take(shape.place(place, Line::Generation) + word));
        }
    }

    #[test]
    fn shapes_that_the_words_cannot_tell_are_none() {
        let given =
            [(1, 65, 1, 1), (65, 1, 1, 1), (1, 1, 4097, 1), (1, 1, 1, 0), (1, 1, 1, 15), (0, 1, 1, 1)];
        assert!(
            given.into_iter().all(|(m, permits, places, log)| Shape::new(m, permits, places, log).is_none())
        );
        assert!(Shape::new(64, 64, 4096, 14).is_some());
        assert!(Shape::USUAL.places() <= 4096 && Shape::USUAL.queue() >= 2 * Shape::USUAL.places());
    }
}
