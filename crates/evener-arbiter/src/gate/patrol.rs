//! Looking for the dead, and for those who do not go on.
//!
//! A patrol: all who hold or wait are tried -> what a dead place left is put right ([`repair`]) under the lock of that place -> who stands in front of a free permit and does not
//! take it is passed over -> who is in front then is rung.

use super::watcher::{WATCH_NS, number};
use super::{Gate, Place};
use crate::arrival_queue::{ArrivalQueue, Waiter};
use crate::layout::{FREE, Line, ModuleCount, Owner, Phase, Queue, Shape, WaitQueue};
use crate::world::{World, elapsed_ms, millis};

/// A waiter that does not take a permit which is free for it for this long is passed over. Assumed, not measured: 250 ms, longer than a thread
/// waits for a core among a hundred that want one.
const PATIENCE_MS: u32 = 250;

impl<W: World> Gate<'_, W> {
    /// Patrols where no process did for a while; says whether it did.
    pub(super) fn patrol_if_due(&self, now: u64) -> bool {
        let patrolled = self.queue_word(Queue::Patrolled);
        let before = self.world.load(patrolled);
        if elapsed_ms(before, now) < period_ms() && before != 0 {
            return false;
        }
        // One of several that come at once.
        if !self.world.exchange(patrolled, before, millis(now).max(1)) {
            return false;
        }
        self.patrol(now);
        if is_silent(before, now) {
            // A thread that was to look did not, and may be suspended: another does.
            self.world.store(self.queue_word(Queue::Watcher), 0);
        }
        true
    }

    /// Whether no process looked for so long that the watcher does not seem to do what it is for.
    pub(super) fn is_unwatched(&self, now: u64) -> bool {
        is_silent(self.world.load(self.queue_word(Queue::Patrolled)), now)
    }

    /// Looks at everybody.
    pub fn patrol(&self, now: u64) {
        for permit in 0..self.capacity {
            self.look_at_permit(permit);
        }
        self.look_at_waiters(WaitQueue::Express);
        self.look_at_waiters(WaitQueue::Main);
        self.look_at_watcher();
        self.look_at_front(now);
        self.ring_front();
    }

    /// Looks at the first who wait, and at every second one of the others, by their tickets, at the others of these next time: the kernel goes through all locks of the anchor
    /// for each one that is tried.
    fn look_at_waiters(&self, wait_queue: WaitQueue) {
        let sweep = self.queue_word(Queue::Sweep) + wait_queue as usize;
        let turn = self.world.load(sweep);
        for (index, waiter) in self.wait_queue(wait_queue).all().enumerate() {
            let is_in_turn = (waiter.position ^ turn) & 1 == 0 || cfg!(mutant = "all_waiters_at_each_look");
            if index < FIRST || is_in_turn && !cfg!(mutant = "only_the_first_looked_at") {
                self.look_at(waiter.place);
            }
        }
        self.world.store(sweep, turn.wrapping_add(1));
    }

    fn look_at_permit(&self, permit: usize) {
        let at = self.permit(permit);
        let word = self.world.load(at);
        if word == FREE {
            return;
        }
        match Owner::of(word, self.shape.places()) {
            Some(owner) if owner == self.life(owner.place) => self.look_at(owner.place),
            // Its holder's life is over, or there never was such a place.
            _ => _ = self.world.exchange(at, word, FREE),
        }
    }

    /// Puts right what a place left, if it is dead.
    fn look_at(&self, place: usize) {
        if self.world.seize(place) {
            repair(self.world, self.shape, place);
            self.count(ModuleCount::Repaired);
            self.world.let_go(place);
        }
    }

    fn look_at_watcher(&self) {
        let at = self.queue_word(Queue::Watcher);
        let word = self.world.load(at);
        let place = (word as usize).wrapping_sub(1);
        let is_asking = place < self.shape.places()
            && Phase::of(self.world.load(self.shape.place(place, Line::Phase))) == Phase::Asking(self.module);
        if word != 0 && !is_asking {
            self.world.exchange(at, word, 0);
        }
        if word == 0 || !is_asking {
            self.name_watcher();
        }
    }

    /// Who stands in front and has a permit has only not said so; who leaves a free one for long may be suspended.
    fn look_at_front(&self, now: u64) {
        let Some(front) = self.front() else { return };
        if self.has_permit(front.place) {
            self.wait_queue(front.wait_queue).retire(&front);
            return;
        }
        let [position, since] = [0, 1].map(|word| self.queue_word(Queue::Stalled) + word);
        let is_same = self.has_free() && self.world.load(position) == front.mark();
        if !is_same {
            self.world.store(position, if self.has_free() { front.mark() } else { 0 });
            self.world.store(since, millis(now));
        } else if elapsed_ms(self.world.load(since), now) >= PATIENCE_MS {
            if self.wait_queue(front.wait_queue).retire(&front) {
                self.count(ModuleCount::PassedOver);
            }
            self.world.store(position, 0);
        }
    }

    /// Rings who stands in front of a free permit, and does not ask whether it lives: who repairs rings for all modules, and each dead one that it met would have it
    /// repair the next.
    fn nudge_front(&self) {
        self.world.fence();
        let Some(front) = self.front().filter(|_| self.has_free()) else { return };
        let doorbell = self.shape.place(front.place, Line::QueueDoorbell);
        let heard = self.world.load(doorbell);
        if heard & 1 == 0 && self.world.exchange(doorbell, heard, heard.wrapping_add(1)) {
            self.world.wake(doorbell);
        }
    }

    fn has_permit(&self, place: usize) -> bool {
        let owner = self.life(place).word();
        (0..self.capacity).any(|permit| self.world.load(self.permit(permit)) == owner)
    }

    /// A place in the life that it has now.
    fn life(&self, place: usize) -> Owner {
        Owner::new(place, self.world.load(self.shape.place(place, Line::Generation)))
    }
}

/// Frees what a place held and ends its waits, in all modules, and ends its life. To be called with the lock of that place, and again where that was interrupted. Returns the place in its
/// new life.
pub(super) fn repair<W: World>(world: &W, shape: &Shape, place: usize) -> Place {
    let line = |word: Line| shape.place(place, word);
    if Phase::of(world.load(line(Line::Phase))) != Phase::Idle {
        for module in 0..shape.modules() {
            free_all(world, shape, module, place);
            for wait_queue in [WaitQueue::Express, WaitQueue::Main] {
                end_waits(&ArrivalQueue::new(world, shape, module, wait_queue), place);
            }
        }
    }
    let generation = world.load(line(Line::Generation)).wrapping_add(1);
    world.store(line(Line::Generation), generation);
    // Even: no process rang the next life.
    let doorbell = world.load(line(Line::QueueDoorbell));
    world.exchange(line(Line::QueueDoorbell), doorbell, doorbell.wrapping_add(2) & !1);
    world.store(line(Line::Taken), 0);
    world.store(line(Line::Phase), Phase::Idle.word());
    for module in 0..shape.modules() {
        Gate::named(world, shape, module).inspect(Gate::nudge_front);
    }
    Place { index: place, generation }
}

/// Frees the permits of a place, of whichever life.
fn free_all<W: World>(world: &W, shape: &Shape, module: usize, place: usize) {
    for permit in 0..shape.permits() {
        let at = shape.permit(module, permit);
        let word = world.load(at);
        if Owner::of(word, shape.places()).is_some_and(|owner| owner.place == place)
            && !cfg!(mutant = "arbiter_keeps_permits_of_the_dead")
        {
            world.exchange(at, word, FREE);
        }
    }
}

fn end_waits<W: World>(wait_queue: &ArrivalQueue<'_, W>, place: usize) {
    let is_its = |waiter: &Waiter| waiter.place == place && !cfg!(mutant = "arbiter_keeps_waits_of_the_dead");
    let all: Vec<Waiter> = wait_queue.all().filter(is_its).collect();
    for waiter in &all {
        wait_queue.retire(waiter);
    }
}

/// Whether the last look was long ago.
const fn is_silent(patrolled: u32, now: u64) -> bool {
    elapsed_ms(patrolled, now) > SILENCE_MS
}

/// Waiters that every look tries. Assumed, not measured: 32; each of the others is tried by every second look, which is each 80 ms.
const FIRST: usize = 32;

/// Ten looks of a watcher. Assumed, not measured: 400 ms, longer than a thread waits for a core among a hundred that want one.
const SILENCE_MS: u32 = 400;

/// Of [`WATCH_NS`], less what a timer may come too early.
#[expect(clippy::cast_possible_truncation, reason = "40")]
const fn period_ms() -> u32 {
    (WATCH_NS / 1_000_000) as u32 - 5
}

const _: () = assert!(number(0) == 1, "0 is nobody");
