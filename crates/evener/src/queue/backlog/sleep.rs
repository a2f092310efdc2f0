//! Which workers and submitters sleep at the backlog, and what wakes them.
//!
//! A worker or submitter that found nothing listens at the doorbell of its queue, looks again, and waits ([`wait_for_work`](Backlog::wait_for_work),
//! [`wait_for_space`](Backlog::wait_for_space)); who puts something there rings afterwards. The protocol of a bell is
//! `docs/design/ring.md`'s.

use std::sync::atomic::Ordering;

use evener_core::Nanos;
use evener_core::plan::Dispatch;
use evener_ring::Doorbell;

use super::Backlog;

impl Backlog<'_> {
    /// Sleeps until there may be work for `worker`. Where jobs wait that it does not want now, sleeps for `timeout`
    /// at most, and not at all where by now it might want them: `has_news`, which changes before the doorbell is rung.
    pub(crate) fn wait_for_work(
        &self,
        worker: usize,
        timeout: Option<Nanos>,
        has_news: impl FnOnce() -> bool,
    ) {
        if self.is_left_asleep(worker) {
            return self.stay_asleep(worker);
        }
        if self.dispatch == Dispatch::Monitor {
            self.worker_queues[worker].set_idle();
        }
        let doorbell = self.doorbell_of(worker);
        let ticket = doorbell.listen();
        let nothing_else = !self.over.load(Ordering::Acquire)
            && !self.is_held()
            && !self.is_left_asleep(worker)
            && !self.ended.has_news(&self.worker_queues[worker].cursor)
            && !has_news();
        if !nothing_else {
            return;
        }
        match (self.has_nothing_for(worker), timeout) {
            (true, _) => _ = doorbell.wait(ticket, None),
            (false, Some(timeout)) => _ = doorbell.wait(ticket, Some(timeout.into())),
            (false, None) => {}
        }
    }

    /// Whether the module of `worker` is to sleep, whatever waits: the plan has nothing for it, or workers are held. A
    /// module's thread that stood at the barrier would keep a CPU worker from its core.
    fn is_left_asleep(&self, worker: usize) -> bool {
        let queues = self.class_queues.as_ref().filter(|_| worker >= self.cpu_workers);
        queues.is_some_and(|queues| {
            self.is_held() || !queues.modules_matter() && !self.worker_queues[worker].has_jobs()
        })
    }

    /// Sleeps until the plan has something for modules. The barrier does not wait for a worker that sleeps here.
    fn stay_asleep(&self, worker: usize) {
        let ticket = self.class_queues().modules.listen();
        let is_news = self.ended.has_news(&self.worker_queues[worker].cursor);
        if self.is_left_asleep(worker) && !self.over.load(Ordering::Acquire) && !is_news {
            self.barrier.leave(worker);
            self.class_queues().modules.wait(ticket, None);
            self.barrier.come_back(worker);
        }
    }

    /// Sleeps until there may be space.
    pub(crate) fn wait_for_space(&self) {
        let ticket = self.space.listen();
        if self.is_full() && !self.is_broken() {
            self.space.wait(ticket, None);
        }
    }

    /// Wakes all workers, whatever they wait for.
    pub(super) fn wake_workers(&self) {
        self.work.ring_all();
        if let Some(queues) = &self.class_queues {
            queues.modules.ring_all();
        }
        self.worker_queues.iter().for_each(|queue| queue.work.ring_all());
    }

    /// Whether nothing waits that the worker numbered `worker` could take.
    pub(crate) fn has_nothing_for(&self, worker: usize) -> bool {
        if !self.worker_queues[worker].module_only.is_empty() {
            return false;
        }
        let Some(queues) = &self.class_queues else { return self.queue_of(worker).is_empty() };
        let own = if worker < self.cpu_workers { &self.shared } else { &self.worker_queues[worker].dealt };
        own.is_empty() && queues.is_empty()
    }

    /// The bell that is rung for that queue.
    pub(crate) fn doorbell_of(&self, worker: usize) -> &Doorbell {
        match self.dispatch {
            Dispatch::ByCost if worker >= self.cpu_workers => &self.class_queues().modules,
            Dispatch::SharedQueue | Dispatch::ByCost => &self.work,
            Dispatch::RoundRobin | Dispatch::Monitor => &self.worker_queues[worker].work,
        }
    }

    /// Whether the next job would find no space.
    fn is_full(&self) -> bool {
        let queue = match self.dispatch {
            Dispatch::ByCost if self.class_queues().is_full() => return true,
            Dispatch::SharedQueue | Dispatch::Monitor | Dispatch::ByCost => &self.shared,
            Dispatch::RoundRobin => &self.next_queue(self.deal_next.load(Ordering::Relaxed)).dealt,
        };
        queue.len() == queue.capacity()
    }
}
