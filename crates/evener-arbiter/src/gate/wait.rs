//! Waiting in order, and the watcher among those who wait.
//!
//! A wait: join -> answer the doorbell -> in front? take a permit -> sleep -> again. One of those who wait is the watcher, which looks for the dead while all others sleep.

use std::time::Duration;

use super::turn::BATCH_NS;
use super::watcher::{WATCH_NS, number};
use super::{Gate, Grant, Place, Refused, Request};
use crate::arrival_queue::Waiter;
use crate::layout::{Line, ModuleCount, Queue, WaitQueue};
use crate::world::World;

/// How a waiter stands.
enum Standing {
    Front,
    Behind,
    /// It did not take a permit that was free, and others went on.
    PassedOver,
}

impl<W: World> Gate<'_, W> {
    pub(super) fn wait(
        &self,
        place: Place,
        wait_queue: WaitQueue,
        request: &Request,
        now: u64,
    ) -> Result<Grant, Refused> {
        let deadline = now.saturating_add(request.longest_wait_ns);
        let mut waiter = self.join(place, wait_queue)?;
        let mut looks = 0;
        loop {
            let doorbell = self.answer(place);
            let is_front = match self.standing(&waiter) {
                Standing::Front => {
                    if let Some(permit) = self.take(place, waiter.position as usize) {
                        self.leave(&waiter);
                        return Ok(Grant { permit, ticket: Some((wait_queue, waiter.position)) });
                    }
                    true
                }
                Standing::Behind => false,
                Standing::PassedOver if self.world.now() < deadline => {
                    waiter = self.join(place, wait_queue).inspect_err(|_| self.hand_on(&waiter))?;
                    continue;
                }
                Standing::PassedOver => false,
            };
            let now = self.world.now();
            if now >= deadline {
                self.leave(&waiter);
                self.count(ModuleCount::TimedOut);
                return Err(Refused::TimedOut);
            }
            let is_watcher = self.is_watcher(place);
            if (is_watcher || self.is_unwatched(now)) && self.patrol_if_due(now) {
                continue;
            }
            looks += u32::from(is_front);
            let span = look_after_ns(is_front, is_watcher, looks).min(deadline - now);
            self.world.sleep(self.line(place, Line::QueueDoorbell), doorbell, Duration::from_nanos(span));
        }
    }

    fn join(&self, place: Place, wait_queue: WaitQueue) -> Result<Waiter, Refused> {
        let Some(waiter) = self.wait_queue(wait_queue).join(place.index) else {
            self.count(ModuleCount::Full);
            return Err(Refused::Full);
        };
        Ok(waiter)
    }

    /// Says that the doorbell was heard; what was changed before it rang is seen from here on. Returns what it holds now.
    pub(super) fn answer(&self, place: Place) -> u32 {
        let doorbell = self.line(place, Line::QueueDoorbell);
        let mut heard = self.world.load(doorbell);
        if heard & 1 == 1 {
            // No other process changes an odd one.
            self.world.exchange(doorbell, heard, heard.wrapping_add(1));
            heard = heard.wrapping_add(1);
        }
        // Pairs with the fence of who frees a permit or leaves the front.
        self.world.fence();
        heard
    }

    fn standing(&self, waiter: &Waiter) -> Standing {
        if !self.wait_queue(waiter.wait_queue).still_waits(waiter) {
            return Standing::PassedOver;
        }
        let is_front = self.front().is_some_and(|front| front == *waiter);
        if is_front { Standing::Front } else { Standing::Behind }
    }

    /// Leaves the queue, with a permit or without, and hands on what others wait for.
    fn leave(&self, waiter: &Waiter) {
        self.wait_queue(waiter.wait_queue).retire(waiter);
        self.hand_on(waiter);
    }

    fn hand_on(&self, waiter: &Waiter) {
        let watcher = self.queue_word(Queue::Watcher);
        if self.world.load(watcher) == number(waiter.place)
            && self.world.exchange(watcher, number(waiter.place), 0)
        {
            self.name_watcher();
        }
        self.ring_front();
    }
}

/// When a waiter looks again although it is not rung.
///
/// Who stands in front was rung once in a turn, and finds the end of it by itself. For others there is the watcher.
const fn look_after_ns(is_front: bool, is_watcher: bool, looks: u32) -> u64 {
    let usual = if is_watcher { WATCH_NS } else { UNWATCHED_NS };
    // Twice as long each time: 0.2 ms, 0.4 ms, ...
    let soon = BATCH_NS << if looks > 13 { 13 } else { looks.saturating_sub(1) };
    if is_front && soon < usual { soon } else { usual }
}

/// A sleeper that is not the watcher looks after this time. Assumed, not measured: 1 s; a thousand such looks a second are a thousandth of a core each 1 us.
const UNWATCHED_NS: u64 = 1_000_000_000;
