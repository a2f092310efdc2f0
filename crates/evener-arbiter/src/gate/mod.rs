//! Who may use a module now: the algorithm, for one request of one place.
//!
//! A request: [`Gate::acquire`] -> no process waits and a permit is free: taken -> otherwise it joins a wait queue, sleeps until it stands in front of a free permit
//! (`wait.rs`), and takes it -> [`Gate::release`] frees it and rings who stands in front. Who finds no permit looks for the dead (`patrol.rs`).
//! `outlook.rs` says when a request that came now would begin. `docs/design/arbiter.md` has the protocol and what each death leaves.

mod historic;
mod outlook;
mod patrol;
mod turn;
mod wait;
mod watcher;

use crate::arrival_queue::{ArrivalQueue, Waiter};
use crate::layout::{FREE, Identity, Line, ModuleCount, Owner, Phase, Queue, Shape, WaitQueue};
use crate::world::{World, micros};

use patrol::repair;
pub use turn::{BATCH_NS, EXACT_FROM_NS, Turn, WEIGHT_MAX};

/// A module's permits and queue, as one process sees them.
#[derive(Clone, Copy, Debug)]
pub struct Gate<'w, W> {
    world: &'w W,
    shape: &'w Shape,
    module: usize,
    capacity: usize,
}

/// The right to have a request with the arbiter: a line of the segment in one of its lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which line.
    pub index: usize,
    /// Which life.
    pub generation: u32,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// What it will take on the module, in nanoseconds.
    pub predicted_ns: u64,
    /// How long it may wait, in nanoseconds.
    pub longest_wait_ns: u64,
    /// Whether it waits for so long though it is predicted to take longer: for who has nothing else to do meanwhile.
    pub hopes: bool,
}

/// A permit that was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Which one.
    pub permit: usize,
    /// The ticket of a request that waited: the order of arrival, by wait queue.
    pub ticket: Option<(WaitQueue, u32)>,
}

/// Why a request has no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// All permits are taken, or others wait, and it was not to wait.
    Busy,
    /// It would begin later than it may.
    TooLong,
    /// Its time passed while it waited.
    TimedOut,
    /// The queue has no space.
    Full,
    /// This process has no place for one more request, or lost its places because it closed descriptors that it did not open.
    NoPlace,
}

impl<'w, W: World> Gate<'w, W> {
    /// The gate of a module with so many permits; none where there is no such module.
    #[must_use]
    pub fn new(world: &'w W, shape: &'w Shape, module: usize, capacity: usize) -> Option<Self> {
        let capacity = capacity.clamp(1, shape.permits());
        (module < shape.modules()).then_some(Self { world, shape, module, capacity })
    }

    /// The same, after it was written into the segment that the module is used: for worlds of tests, where modules have no names.
    #[must_use]
    pub fn open(world: &'w W, shape: &'w Shape, module: usize, capacity: usize) -> Option<Self> {
        let gate = Self::new(world, shape, module, capacity)?;
        world.store(shape.identity(module, Identity::Capacity), u32::try_from(gate.capacity).unwrap_or(1));
        Some(gate)
    }

    /// The gate of a module that has a name in the segment, with the permits that stand there.
    pub(crate) fn named(world: &'w W, shape: &'w Shape, module: usize) -> Option<Self> {
        let capacity = world.load(shape.identity(module, Identity::Capacity)) as usize;
        Self::new(world, shape, module, capacity).filter(|_| capacity > 0)
    }

    /// Gets a permit for a request of `place`, which has no other with the arbiter.
    ///
    /// # Errors
    ///
    /// [`Refused`], at the latest when the request's time is over. Nothing is held or waits then.
    #[inline]
    pub fn acquire(&self, place: Place, turn: &Turn, request: &Request) -> Result<Grant, Refused> {
        if self.world.load(self.line(place, Line::Generation)) != place.generation {
            return Err(Refused::NoPlace);
        }
        let now = self.world.now();
        self.announce(place, Phase::Asking(self.module), request, now);
        let may_take = self.front().is_none() || cfg!(mutant = "arbiter_barging");
        let taken = if may_take { self.take(place, turn.hint()) } else { None };
        let granted = match taken {
            Some(permit) => {
                turn.begin(now);
                Ok(Grant { permit, ticket: None })
            }
            None => self.acquire_later(place, turn, request, now),
        };
        match granted {
            Ok(grant) => {
                turn.keep_hint(grant.permit);
                self.world.store(self.line(place, Line::Phase), Phase::Holding(self.module).word());
            }
            Err(_) => self.idle(place),
        }
        granted
    }

    /// Gives a permit back, and rings who waits for it.
    #[inline]
    pub fn release(&self, place: Place, turn: &Turn, grant: &Grant, request: &Request) {
        let owner = Owner::new(place.index, place.generation).word();
        let was_mine = self.world.exchange(self.permit(grant.permit), owner, FREE);
        self.idle(place);
        // Where it was not, another process took it for that of a dead process.
        if was_mine {
            self.world.fence();
            if let Some(front) = self.front() {
                if turn.is_to_ring(&front, request.predicted_ns, || self.world.now()) {
                    self.ring(front);
                }
            }
        }
    }

    /// Where no process may go past those that wait, or a batch allows it.
    #[cold]
    fn acquire_later(
        &self,
        place: Place,
        turn: &Turn,
        request: &Request,
        now: u64,
    ) -> Result<Grant, Refused> {
        if turn.goes_on(request.predicted_ns, now) {
            if let Some(permit) = self.take(place, turn.hint()) {
                return Ok(Grant { permit, ticket: None });
            }
        }
        self.patrol_if_due(now);
        if request.longest_wait_ns == 0 {
            return Err(Refused::Busy);
        }
        // Who waits for as long as it takes needs no outlook.
        let is_judged = !request.hopes && request.longest_wait_ns < u64::MAX;
        if is_judged && self.expected_wait_ns(now) > request.longest_wait_ns {
            self.count(ModuleCount::TooLong);
            return Err(Refused::TooLong);
        }
        let wait_queue = turn.wait_queue();
        let grant = self.wait(place, wait_queue, request, now)?;
        self.count(ModuleCount::Waited);
        let granted = self.world.now();
        turn.begin(granted);
        turn.served(wait_queue, || self.world.load(self.line(place, Line::Weight)));
        self.world.store(self.line(place, Line::Since), micros(granted));
        Ok(grant)
    }

    /// Takes a permit that is free, that of last time first.
    #[inline]
    fn take(&self, place: Place, hint: usize) -> Option<usize> {
        let owner = Owner::new(place.index, place.generation).word();
        let first = if hint < self.capacity { hint } else { 0 };
        let order = (first..self.capacity).chain(0..first);
        order.into_iter().find(|permit| {
            let at = self.permit(*permit);
            self.world.load(at) == FREE && self.world.exchange(at, FREE, owner)
        })
    }

    /// Returns who is to be served next.
    #[inline]
    fn front(&self) -> Option<Waiter> {
        self.wait_queue(WaitQueue::Express).front().or_else(|| self.wait_queue(WaitQueue::Main).front())
    }

    /// Wakes a waiter, or the one that is in front once the dead before it are gone.
    fn ring(&self, waiter: Waiter) {
        let mut waiter = waiter;
        for _ in 0..DEAD_IN_A_ROW_MAX {
            let doorbell = self.shape.place(waiter.place, Line::QueueDoorbell);
            let heard = self.world.load(doorbell);
            // Odd: it was rung, and looks once it answers. Where the exchange fails, another process rings.
            let is_rung = heard & 1 == 1 || !self.world.exchange(doorbell, heard, heard.wrapping_add(1));
            if is_rung || self.world.wake(doorbell) || !self.world.seize(waiter.place) {
                return;
            }
            repair(self.world, self.shape, waiter.place);
            self.count(ModuleCount::Repaired);
            self.world.let_go(waiter.place);
            let Some(next) = self.front() else { return };
            waiter = next;
        }
    }

    /// Rings who stands in front, where a permit is free for it. To be called by a thread that changed one of the two.
    fn ring_front(&self) {
        self.world.fence();
        if let Some(front) = self.front() {
            if self.has_free() {
                self.ring(front);
            }
        }
    }

    /// Whether a process waits for a permit.
    #[inline]
    pub(crate) fn has_waiters(&self) -> bool {
        self.front().is_some()
    }

    /// Whether no process has a permit or waits for one.
    pub(crate) fn is_unused(&self) -> bool {
        !self.has_waiters() && (0..self.capacity).all(|permit| self.world.load(self.permit(permit)) == FREE)
    }

    fn has_free(&self) -> bool {
        (0..self.capacity).any(|permit| self.world.load(self.permit(permit)) == FREE)
    }

    #[inline]
    fn announce(&self, place: Place, phase: Phase, request: &Request, now: u64) {
        let predicted = u32::try_from(request.predicted_ns).unwrap_or(u32::MAX);
        // Before anything is taken: who repairs a place looks where its phase says that there may be something.
        self.world.store(self.line(place, Line::Phase), phase.word());
        self.world.store(self.line(place, Line::Predicted), predicted);
        self.world.store(self.line(place, Line::Since), micros(now));
    }

    #[inline]
    fn idle(&self, place: Place) {
        self.world.store(self.line(place, Line::Phase), Phase::Idle.word());
    }

    fn count(&self, count: ModuleCount) {
        self.world.count(self.shape.count(self.module, count));
    }

    #[inline]
    fn wait_queue(&self, wait_queue: WaitQueue) -> ArrivalQueue<'w, W> {
        ArrivalQueue::new(self.world, self.shape, self.module, wait_queue)
    }

    #[inline]
    fn permit(&self, permit: usize) -> usize {
        self.shape.permit(self.module, permit)
    }

    #[inline]
    fn line(&self, place: Place, word: Line) -> usize {
        self.shape.place(place.index, word)
    }

    fn queue_word(&self, word: Queue) -> usize {
        self.shape.queue_word(self.module, word)
    }
}

/// Begins a new life of a place, whose lock the caller has: what the last one left is put right first.
pub fn revive<W: World>(world: &W, shape: &Shape, place: usize) -> Place {
    repair(world, shape, place)
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests;

/// Dead waiters that one ringer removes; the next patrol removes what is left.
const DEAD_IN_A_ROW_MAX: u32 = 64;
