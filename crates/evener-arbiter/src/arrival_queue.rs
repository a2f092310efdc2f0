//! A ring of waiters in order of arrival.
//!
//! A position: empty -> waiting ([`ArrivalQueue::join`]: one exchange, which names the place) -> gone ([`ArrivalQueue::retire`]) -> empty for the next lap, and the head goes on
//! ([`ArrivalQueue::front`]). Both ends follow the slots: a thread that finds one behind moves it on, so that no process waits for a process that stopped or died between two words.

use crate::layout::{Kind, Shape, Slot, WaitQueue};
use crate::world::World;

/// One wait queue of a module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrivalQueue<'w, W> {
    world: &'w W,
    shape: &'w Shape,
    module: usize,
    wait_queue: WaitQueue,
}

/// A place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiter {
    pub(crate) wait_queue: WaitQueue,
    pub(crate) position: u32,
    pub(crate) place: usize,
}

impl Waiter {
    /// It in one word, never 0.
    pub(crate) const fn mark(&self) -> u32 {
        (self.position << 2 | (self.wait_queue as u32) << 1) | 1
    }
}

impl<'w, W: World> ArrivalQueue<'w, W> {
    pub(crate) const fn new(world: &'w W, shape: &'w Shape, module: usize, wait_queue: WaitQueue) -> Self {
        Self { world, shape, module, wait_queue }
    }

    /// Puts `place` at the end; none where the wait queue is full.
    pub(crate) fn join(&self, place: usize) -> Option<Waiter> {
        for _ in 0..self.steps_max() {
            let position = self.world.load(self.tail());
            let lap = self.lap(position);
            let slot = Slot::of(self.world.load(self.slot(position)));
            match (slot.ahead_of(lap), slot.kind) {
                (0, Kind::Empty) => {
                    let waits = Slot::waiting(lap, place);
                    if self.world.exchange(self.slot(position), slot.word(), waits.word()) {
                        self.follow(self.tail(), position);
                        return Some(Waiter { wait_queue: self.wait_queue, position, place });
                    }
                }
                (0.., _) => self.follow(self.tail(), position),
                // Of the lap before: full, but for what has gone at the front.
                _ => {
                    self.front();
                    if Slot::of(self.world.load(self.slot(position))) == slot {
                        return None;
                    }
                }
            }
        }
        None
    }

    /// Returns who stands in front.
    pub(crate) fn front(&self) -> Option<Waiter> {
        for _ in 0..self.steps_max() {
            let position = self.world.load(self.head());
            let lap = self.lap(position);
            let slot = Slot::of(self.world.load(self.slot(position)));
            match (slot.ahead_of(lap), slot.kind) {
                (0, Kind::Empty) => return None,
                (0, Kind::Waiting(place)) => {
                    return Some(Waiter { wait_queue: self.wait_queue, position, place });
                }
                (0, Kind::Gone) => {
                    self.world.exchange(self.slot(position), slot.word(), Slot::empty(lap + 1).word());
                    self.follow(self.head(), position);
                }
                (1.., _) => self.follow(self.head(), position),
                // No process of ours leaves a slot behind its head.
                _ => return None,
            }
        }
        None
    }

    /// Ends the wait of `waiter`, who leaves or was passed; says whether it still waited.
    pub(crate) fn retire(&self, waiter: &Waiter) -> bool {
        let lap = self.lap(waiter.position);
        let (waits, gone) = (Slot::waiting(lap, waiter.place).word(), Slot::gone(lap).word());
        self.world.exchange(self.slot(waiter.position), waits, gone)
    }

    pub(crate) fn still_waits(&self, waiter: &Waiter) -> bool {
        let waits = Slot::waiting(self.lap(waiter.position), waiter.place);
        self.world.load(self.slot(waiter.position)) == waits.word()
    }

    /// Positions from the head on, those of waiters that have gone included.
    pub(crate) fn len(&self) -> u32 {
        let head = self.world.load(self.head());
        let len = self.world.load(self.tail()).wrapping_sub(head);
        // An end may be behind by one that was not followed yet.
        if len > self.size() { 0 } else { len }
    }

    /// Those who wait, from the front on.
    pub(crate) fn all(&self) -> impl Iterator<Item = Waiter> + '_ {
        let head = self.world.load(self.head());
        (0..=self.len()).filter_map(move |step| self.at(head.wrapping_add(step)))
    }

    /// One of the last in the queue.
    pub(crate) fn last(&self) -> Option<Waiter> {
        let tail = self.world.load(self.tail());
        (0..=self.len().min(LAST_MAX)).find_map(|step| self.at(tail.wrapping_sub(step)))
    }

    fn at(&self, position: u32) -> Option<Waiter> {
        let slot = Slot::of(self.world.load(self.slot(position)));
        match slot.kind {
            Kind::Waiting(place) if slot.ahead_of(self.lap(position)) == 0 && place < self.shape.places() => {
                Some(Waiter { wait_queue: self.wait_queue, position, place })
            }
            _ => None,
        }
    }

    /// Moves an end past a position, unless another process did.
    fn follow(&self, end: usize, position: u32) {
        self.world.exchange(end, position, position.wrapping_add(1));
    }

    fn head(&self) -> usize {
        self.shape.head(self.module, self.wait_queue)
    }

    fn tail(&self) -> usize {
        self.shape.tail(self.module, self.wait_queue)
    }

    fn slot(&self, position: u32) -> usize {
        self.shape.slot(self.module, self.wait_queue, position)
    }

    fn lap(&self, position: u32) -> u32 {
        position >> self.size().trailing_zeros() & LAPS
    }

    fn size(&self) -> u32 {
        u32::try_from(self.shape.queue()).unwrap_or(u32::MAX)
    }

    /// More than two processes of ours ever make another take; a thread that writes into the words against the rules ends a wait, and no more.
    fn steps_max(&self) -> u32 {
        4 * self.size() + 64
    }
}

/// A watcher is looked for among so many: any of the last is in time.
const LAST_MAX: u32 = 8;

const LAPS: u32 = (1 << 18) - 1;
