//! The queue of requests between a module's worker and the threads of its driver, as the live system's driver for kernels has it.
//!
//! `push -> (a thread of the driver) pop -> finish -> take_finished`. To push a request wakes no thread; threads that sleep are woken when the worker asks for results,
//! as many as requests wait. A worker that waits for results is woken for several together, and at once where no request waits any more.

use std::collections::VecDeque;

use super::request::Call;
use crate::engine::EventId;

#[derive(Clone)]
pub(crate) struct DriverQueue {
    /// Results for which the worker is woken while requests wait.
    together: usize,
    waiting: VecDeque<Call>,
    /// Places of requests that are done.
    finished: VecDeque<usize>,
    /// Bells of threads that sleep, the one that has slept longest first.
    asleep: VecDeque<EventId>,
    /// Threads that sleep, or were woken and had no core yet.
    idle: usize,
    /// Wakes the worker that waits for results.
    done: EventId,
    is_awaited: bool,
}

impl DriverQueue {
    pub(crate) const fn new(together: usize, done: EventId) -> Self {
        Self {
            together,
            waiting: VecDeque::new(),
            finished: VecDeque::new(),
            asleep: VecDeque::new(),
            idle: 0,
            done,
            is_awaited: false,
        }
    }

    /// Adds a request.
    pub(crate) fn push(&mut self, call: Call) {
        self.waiting.push_back(call);
    }

    /// Bells of the threads to wake for what waits, before the worker polls.
    pub(crate) fn threads_to_wake(&mut self) -> impl Iterator<Item = EventId> {
        let wanted = self.idle.min(self.waiting.len());
        let wanted = if cfg!(mutant = "simulated_threads_woken_one_by_one") { wanted.min(1) } else { wanted };
        self.asleep.drain(..wanted.min(self.asleep.len()))
    }

    /// What is finished, by place; or what to wait for.
    pub(crate) fn take_finished(&mut self) -> Result<VecDeque<usize>, EventId> {
        self.is_awaited = self.finished.is_empty();
        if self.is_awaited { Err(self.done) } else { Ok(std::mem::take(&mut self.finished)) }
    }

    /// The next request for a thread of the driver; without one, the thread is to sleep until `doorbell` is rung.
    pub(crate) fn pop(&mut self, doorbell: EventId) -> Option<Call> {
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.idle += 1;
            self.asleep.push_back(doorbell);
        }
        next
    }

    /// A thread of the driver that slept is awake.
    pub(crate) const fn record_awake(&mut self) {
        self.idle -= 1;
    }

    /// The request at `place` is done. Returns the event to signal, if any.
    pub(crate) fn finish(&mut self, place: usize) -> Option<EventId> {
        self.finished.push_back(place);
        let is_enough = self.waiting.is_empty() || self.finished.len() >= self.together;
        (self.is_awaited && (is_enough || cfg!(mutant = "simulated_worker_woken_for_each")))
            .then_some(self.done)
    }
}
