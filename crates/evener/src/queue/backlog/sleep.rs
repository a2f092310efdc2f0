//! Who sleeps at the backlog, and who is woken.
//!
//! Whoever found nothing listens at the bell of its queue, looks again, and waits ([`wait_for_work`](Backlog::wait_for_work),
//! [`wait_for_room`](Backlog::wait_for_room)); the doors ring after they have put something there. The protocol of a bell is
//! `docs/ring.md`'s.

use std::sync::atomic::Ordering;

use evener_core::Nanos;
use evener_core::plan::Dispatch;
use evener_ring::Doorbell;

use super::Backlog;

impl Backlog<'_> {
    /// Sleeps until there may be work for `desk`. Where jobs wait that it does not want now, sleeps for `patience`
    /// at most, and not at all where by now it might want them: `has_news`, which changes before the bell is rung.
    pub(crate) fn wait_for_work(
        &self,
        desk: usize,
        patience: Option<Nanos>,
        has_news: impl FnOnce() -> bool,
    ) {
        if self.is_left_asleep(desk) {
            return self.stay_asleep(desk);
        }
        if self.dispatch == Dispatch::Monitor {
            self.desks[desk].say_free();
        }
        let bell = self.bell_of(desk);
        let ticket = bell.listen();
        let nothing_else = !self.over.load(Ordering::Acquire)
            && !self.is_held()
            && !self.is_left_asleep(desk)
            && !self.ended.is_news(&self.desks[desk].heard)
            && !has_news();
        if !nothing_else {
            return;
        }
        match (self.has_nothing_for(desk), patience) {
            (true, _) => _ = bell.wait(ticket, None),
            (false, Some(patience)) => _ = bell.wait(ticket, Some(patience.into())),
            (false, None) => {}
        }
    }

    /// Whether the module at `desk` is to sleep, whatever waits: the plan has nothing for it, or workers are held. A
    /// module's thread that stood at the barrier would keep a CPU worker from its core.
    fn is_left_asleep(&self, desk: usize) -> bool {
        let lanes = self.lanes.as_ref().filter(|_| desk >= self.cpu_workers);
        lanes.is_some_and(|lanes| self.is_held() || !lanes.modules_matter() && !self.desks[desk].has_jobs())
    }

    /// Sleeps until the plan has something for modules. Nobody at the barrier waits for who sleeps here.
    fn stay_asleep(&self, desk: usize) {
        let ticket = self.lanes().modules.listen();
        let is_news = self.ended.is_news(&self.desks[desk].heard);
        if self.is_left_asleep(desk) && !self.over.load(Ordering::Acquire) && !is_news {
            self.barrier.leave(desk);
            self.lanes().modules.wait(ticket, None);
            self.barrier.come_back(desk);
        }
    }

    /// Sleeps until there may be room.
    pub(crate) fn wait_for_room(&self) {
        let ticket = self.room.listen();
        if self.is_full() && !self.is_broken() {
            self.room.wait(ticket, None);
        }
    }

    /// Wakes all workers, whatever they wait for.
    pub(super) fn wake_workers(&self) {
        self.work.ring_all();
        if let Some(lanes) = &self.lanes {
            lanes.modules.ring_all();
        }
        self.desks.iter().for_each(|desk| desk.work.ring_all());
    }

    /// Whether nothing waits that the worker at `desk` could take.
    pub(crate) fn has_nothing_for(&self, desk: usize) -> bool {
        if !self.desks[desk].bound.is_empty() {
            return false;
        }
        let Some(lanes) = &self.lanes else { return self.queue_of(desk).is_empty() };
        let own = if desk < self.cpu_workers { &self.shared } else { &self.desks[desk].dealt };
        own.is_empty() && lanes.is_empty()
    }

    /// The bell that is rung for that queue.
    pub(crate) fn bell_of(&self, desk: usize) -> &Doorbell {
        match self.dispatch {
            Dispatch::Weigh if desk >= self.cpu_workers => &self.lanes().modules,
            Dispatch::Pull | Dispatch::Weigh => &self.work,
            Dispatch::Deal | Dispatch::Monitor => &self.desks[desk].work,
        }
    }

    /// Whether the next job would find no room.
    fn is_full(&self) -> bool {
        let queue = match self.dispatch {
            Dispatch::Weigh if self.lanes().is_full() => return true,
            Dispatch::Pull | Dispatch::Monitor | Dispatch::Weigh => &self.shared,
            Dispatch::Deal => &self.next_desk(self.deal_next.load(Ordering::Relaxed)).dealt,
        };
        queue.len() == queue.capacity()
    }
}
