//! The desk between a module's worker and the threads of its driver, as the live one (`drivers/kernel/src/desk.rs`, `crates/evener/src/worker/module_worker/mod.rs`).
//!
//! `give -> (a thread of the driver) -> finish -> take`. Who gives requests wakes nobody; threads that sleep are woken when it asks for results,
//! as many as requests wait. Who waits for results is woken for several together, and at once where nothing waits any more.

use std::collections::VecDeque;

use super::request::Call;
use crate::engine::EventId;

#[derive(Clone)]
pub(crate) struct DriverDesk {
    /// Results for which who waits for them is woken while requests wait.
    together: usize,
    waiting: VecDeque<Call>,
    /// Places of requests that are done.
    finished: VecDeque<usize>,
    /// Bells of threads that sleep, who has slept longest first.
    asleep: VecDeque<EventId>,
    /// Threads that sleep, or were woken and had no core yet.
    idle: usize,
    /// Wakes who waits for results.
    done: EventId,
    is_awaited: bool,
}

impl DriverDesk {
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

    /// Takes a request in.
    pub(crate) fn give(&mut self, call: Call) {
        self.waiting.push_back(call);
    }

    /// Whom to wake for what waits, before results are asked for.
    pub(crate) fn wake_for_what_waits(&mut self) -> impl Iterator<Item = EventId> {
        let wanted = self.idle.min(self.waiting.len());
        let wanted = if cfg!(mutant = "simulated_threads_woken_one_by_one") { wanted.min(1) } else { wanted };
        self.asleep.drain(..wanted.min(self.asleep.len()))
    }

    /// What is finished, by place; or what to wait for.
    pub(crate) fn take(&mut self) -> Result<VecDeque<usize>, EventId> {
        self.is_awaited = self.finished.is_empty();
        if self.is_awaited { Err(self.done) } else { Ok(std::mem::take(&mut self.finished)) }
    }

    /// The next request for a thread of the driver; without one, the thread is to sleep until `bell` is rung.
    pub(crate) fn next(&mut self, bell: EventId) -> Option<Call> {
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.idle += 1;
            self.asleep.push_back(bell);
        }
        next
    }

    /// A thread of the driver that slept is awake.
    pub(crate) const fn is_up(&mut self) {
        self.idle -= 1;
    }

    /// The request at `place` is done. Returns whom to wake.
    pub(crate) fn finish(&mut self, place: usize) -> Option<EventId> {
        self.finished.push_back(place);
        let is_enough = self.waiting.is_empty() || self.finished.len() >= self.together;
        (self.is_awaited && (is_enough || cfg!(mutant = "simulated_worker_woken_for_each")))
            .then_some(self.done)
    }
}
