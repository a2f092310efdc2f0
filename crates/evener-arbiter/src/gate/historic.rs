//! Paper 004's flags, to compare with: a list of sleepers of whom the first is woken when a flag goes down, and looks again.
//!
//! A thread that comes in between takes the flag, and the woken one goes to the end of the list. Its 64 lists (paper 001) need nothing of their own: [`Shape::LISTS`](crate::Shape::LISTS)
//! has 64 modules of one permit, and a process takes that of its number for as long as it lives.

use std::time::Duration;

use super::watcher::WATCH_NS;
use super::{Gate, Grant, Place, Refused, Request, Turn};
use crate::layout::{FREE, Line, Owner, Phase, WaitQueue};
use crate::world::World;

impl<W: World> Gate<'_, W> {
    /// Gets a flag, no matter which others wait.
    ///
    /// # Errors
    ///
    /// [`Refused`], at the latest when the request's time is over.
    pub fn acquire_flag(&self, place: Place, turn: &Turn, request: &Request) -> Result<Grant, Refused> {
        let now = self.world.now();
        let deadline = now.saturating_add(request.longest_wait_ns);
        self.announce(place, Phase::Asking(self.module), request, now);
        let granted = self.flag_before(place, turn, deadline);
        match granted {
            Ok(_) => self.world.store(self.line(place, Line::Phase), Phase::Holding(self.module).word()),
            Err(_) => self.idle(place),
        }
        granted
    }

    fn flag_before(&self, place: Place, turn: &Turn, deadline: u64) -> Result<Grant, Refused> {
        let wait_queue = self.wait_queue(WaitQueue::Main);
        let mut ticket = None;
        loop {
            if let Some(permit) = self.take(place, turn.hint()) {
                return Ok(Grant { permit, ticket });
            }
            let waiter = wait_queue.join(place.index).ok_or(Refused::Full)?;
            ticket = Some((WaitQueue::Main, waiter.position));
            loop {
                let doorbell = self.answer(place);
                if let Some(permit) = self.take(place, turn.hint()) {
                    wait_queue.retire(&waiter);
                    return Ok(Grant { permit, ticket });
                }
                if !wait_queue.still_waits(&waiter) {
                    break;
                }
                let now = self.world.now();
                if now >= deadline {
                    wait_queue.retire(&waiter);
                    return Err(Refused::TimedOut);
                }
                self.patrol_if_due(now);
                let span = WATCH_NS.min(deadline - now);
                self.world.sleep(self.line(place, Line::QueueDoorbell), doorbell, Duration::from_nanos(span));
            }
        }
    }

    /// Puts a flag down and wakes the first of the list, which has left it then.
    pub fn release_flag(&self, place: Place, grant: &Grant) {
        let owner = Owner::new(place.index, place.generation).word();
        self.world.exchange(self.permit(grant.permit), owner, FREE);
        self.idle(place);
        self.world.fence();
        if let Some(front) = self.front() {
            self.wait_queue(front.wait_queue).retire(&front);
            self.ring(front);
        }
    }
}
