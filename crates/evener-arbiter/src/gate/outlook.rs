//! When a request that came now would begin: work of all processes that is ahead of it, over the permits.

use super::Gate;
use crate::arrival_queue::Waiter;
use crate::layout::{FREE, Line, Owner, WaitQueue};
use crate::world::{World, elapsed_us};

impl<W: World> Gate<'_, W> {
    /// Returns how long a request would wait at most if all that is ahead takes what was predicted; `u64::MAX` where no permit comes back.
    #[must_use]
    pub fn expected_wait_ns(&self, now: u64) -> u64 {
        let waiting = self.waiting_ns();
        let (mut work, mut usable) = (0_u64, 0_u64);
        for permit in 0..self.capacity {
            match self.left_ns(permit, now) {
                Left::Free if waiting == 0 => return 0,
                Left::Free => usable += 1,
                Left::Work(left) => (usable, work) = (usable + 1, work.saturating_add(left)),
                Left::Never => {}
            }
        }
        work.saturating_add(waiting).checked_div(usable).unwrap_or(u64::MAX)
    }

    fn left_ns(&self, permit: usize, now: u64) -> Left {
        let word = self.world.load(self.permit(permit));
        if word == FREE {
            return Left::Free;
        }
        let Some(owner) = Owner::of(word, self.shape.places()) else { return Left::Free };
        let predicted = self.predicted_ns(owner.place);
        let since = self.world.load(self.shape.place(owner.place, Line::Since));
        let held = u64::from(elapsed_us(since, now)) * 1_000;
        match held > predicted.saturating_mul(OVERDUE_TIMES).saturating_add(OVERDUE_NS) {
            true => Left::Never,
            false => Left::Work(predicted.saturating_sub(held)),
        }
    }

    /// Work of all who wait: of the first by what they say, of the others as if they were alike.
    fn waiting_ns(&self) -> u64 {
        let wait_queue = |wait_queue: WaitQueue| {
            let wait_queue = self.wait_queue(wait_queue);
            let (mut seen, mut work) = (0_u64, 0_u64);
            let place = |waiter: Waiter| waiter.place;
            for waiting in wait_queue.all().map(place).take(SEEN_MAX) {
                (seen, work) = (seen + 1, work.saturating_add(self.predicted_ns(waiting)));
            }
            let all = u64::from(wait_queue.len()).max(seen);
            work.saturating_mul(all).checked_div(seen).unwrap_or_default()
        };
        wait_queue(WaitQueue::Main).saturating_add(wait_queue(WaitQueue::Express))
    }

    fn predicted_ns(&self, place: usize) -> u64 {
        self.world.load(self.shape.place(place, Line::Predicted)).into()
    }
}

/// What a permit has still to do.
enum Left {
    Free,
    /// In nanoseconds.
    Work(u64),
    /// Its holder has taken so much longer than predicted that nothing can be said: it may be suspended.
    Never,
}

/// A holder is overdue after so many times what was predicted, and this. Assumed, not measured: 16 times and 50 ms, because a holder that is kept from its core is not stopped.
const OVERDUE_TIMES: u64 = 16;
const OVERDUE_NS: u64 = 50_000_000;

/// Waiters that are asked for their work: with more, their mean is good enough for who would wait behind them all.
const SEEN_MAX: usize = 64;
