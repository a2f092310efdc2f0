//! Single requests, which go past the queue to a driver that their callers call themselves.
//!
//! Nothing is locked where all is well: callers are counted, and the last one that comes back gives up the keys of sessions that ended meanwhile.

use std::mem;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use evener_core::driver::{SingleDriver, Unanswered};

use super::super::MakeSingle;
use super::super::queue_state::OutOfService;
use super::RequestQueue;

impl RequestQueue {
    /// Has `ask` wait for a request; whether it was done, and `None` where that does not take it, so that it goes to the queue.
    pub(in super::super) fn run_single(
        &self,
        make: &MakeSingle,
        ask: impl FnOnce(&dyn SingleDriver) -> Option<Result<(), Unanswered>>,
    ) -> Option<bool> {
        let driver = self.single.get_or_init(make).as_ref()?;
        if !self.is_in_service() {
            return Some(false);
        }
        self.single_callers.fetch_add(1, SeqCst);
        let done = ask(&**driver);
        self.is_back(done.unwrap_or(Ok(())));
        done.map(|done| done.is_ok())
    }

    /// Makes the driver.
    pub(in super::super) fn prepare_single(&self, make: &MakeSingle) {
        self.single.get_or_init(make);
    }

    /// A request that went past the queue is back. Nothing is locked where all is well.
    fn is_back(&self, done: Result<(), Unanswered>) {
        self.single_callers.fetch_sub(1, SeqCst);
        if done.is_err() || self.has_errors.load(Relaxed) {
            let mut state = self.state();
            let why = match done {
                Err(Unanswered::Late) => Some(OutOfService::Late),
                Ok(()) => state.judged(None),
                Err(Unanswered::Failed(error)) => state.judged(Some(error)),
            };
            self.count(&state);
            if let Some(why) = why.filter(|_| state.out.is_none()) {
                drop(self.end(state, why));
            }
        }
        if self.has_ended.load(SeqCst) {
            self.forget_for_single();
        }
    }

    /// Has the driver of single requests give up the keys of sessions that ended.
    pub(super) fn forget_for_single(&self) {
        self.has_ended.store(false, SeqCst);
        self.single_evictors.fetch_add(1, SeqCst);
        let ended = mem::take(&mut self.state().ended_for_single);
        if let Some(driver) = self.single().filter(|_| !ended.is_empty()) {
            driver.evict(&|session| ended.contains(&session));
        }
        self.single_evictors.fetch_sub(1, SeqCst);
    }

    pub(super) fn single(&self) -> Option<&dyn SingleDriver> {
        self.single.get()?.as_deref()
    }
}
