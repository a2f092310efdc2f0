//! The helper thread: leads for callers that were put aside (coroutines), which may not sleep and whose stacks are small.

use std::sync::{Arc, PoisonError};

use evener_core::driver::Clock as _;
use evener_ring::start_detached;

use super::super::queue_state::State;
use super::RequestQueue;
use crate::SystemClock;

impl RequestQueue {
    /// Starts the helper thread, which leads for callers that were put aside; whether it runs.
    pub(super) fn ensure_helper(self: &Arc<Self>, state: &mut State) -> bool {
        if state.has_helper {
            return true;
        }
        let queue = Arc::clone(self);
        state.has_helper = start_detached(c"evener-module", 256 << 10, move || queue.run_helper()).is_ok();
        state.has_helper
    }

    /// The helper thread: leads as long as there is a request of a caller that was put aside.
    fn run_helper(&self) {
        let mut state = self.state();
        while state.out.is_none() {
            let has_work = state.expected.values().any(|caller| caller.waker.is_some());
            if has_work && state.driver.is_here() {
                state = self.lead(state);
                state.helper_core = SystemClock.thread_time();
            } else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        state.has_helper = false;
    }
}
