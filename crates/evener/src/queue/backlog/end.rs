//! The end of a backlog: no more jobs are submitted, none reach a worker any more, nothing is left; or a thread panicked.

use std::sync::atomic::Ordering;

use evener_core::plan::Dispatch;
use evener_core::{HasEnded, SessionId};

use super::Backlog;
use crate::queue::ended_sessions::EndedSessions;

impl Backlog<'_> {
    /// Whether the worker numbered `worker` has nothing left and will get nothing more. Where workers leave jobs to each
    /// other, one that panicked may have been the one that jobs are left to.
    pub(crate) fn is_over(&self, worker: usize) -> bool {
        // Acquire pairs with the Release in `end`: what was put anywhere before is seen by `is_empty`.
        let is_alone = match self.dispatch {
            Dispatch::ByCost => self.is_broken() || self.has_core_left(),
            Dispatch::SharedQueue => self.has_core_left(),
            Dispatch::RoundRobin | Dispatch::Monitor => false,
        };
        self.over.load(Ordering::Acquire) && (self.has_nothing_for(worker) || is_alone)
    }

    /// A core's worker ends in order: all that was submitted before the end is taken. What comes now is given up (`state/end.rs`), and
    /// a module's worker that does not want it waits no longer for a core to take it.
    pub(crate) fn leave_as_core(&self) {
        // Relaxed: a worker that sees it later looks once more.
        self.core_left.store(true, Ordering::Relaxed);
    }

    fn has_core_left(&self) -> bool {
        self.core_left.load(Ordering::Relaxed)
    }

    /// No more jobs will be submitted; workers end when nothing is left.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        if self.dispatch != Dispatch::Monitor {
            self.end();
        }
    }

    /// No more jobs will reach the queues of workers: called by `close`, or by the monitor when it has handed out the last one.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.wake_workers();
    }

    /// Whether the monitor has handed out everything there will ever be, or there is no point in going on.
    pub(crate) fn is_drained(&self) -> bool {
        self.is_closed() && (self.shared.is_empty() || self.is_broken())
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// A thread of the run panicked, with jobs that will never come back.
    pub(crate) fn break_down(&self) {
        self.broken.store(true, Ordering::Release);
        self.space.ring_all();
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// A session has ended: wakes each worker that sleeps, so that it releases the key.
    pub(crate) fn end_session(&self, session: SessionId) {
        self.ended.add(session);
        self.wake_workers();
    }

    /// Tells the worker numbered `worker` of sessions that ended.
    pub(crate) fn poll_ended(&self, worker: usize, evict: impl FnOnce(HasEnded<'_>)) {
        self.ended.poll(&self.worker_queues[worker].cursor, evict);
    }

    /// The same for a thread without a queue of its own.
    pub(crate) const fn ended(&self) -> &EndedSessions {
        &self.ended
    }
}
