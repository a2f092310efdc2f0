//! The helper thread: leads for callers that were put aside (coroutines), which may not sleep and whose stacks are small.

use std::ffi::CStr;
use std::sync::PoisonError;

use evener_core::driver::Clock as _;
use evener_ring::{Served, Service};

use super::super::queue_state::State;
use super::RequestQueue;
use crate::SystemClock;

impl RequestQueue {
    /// Starts the helper thread, which leads for callers that were put aside; whether it runs.
    pub(super) fn ensure_helper(this: &Served<Self>, state: &mut State) -> bool {
        state.has_helper = state.has_helper || this.start(STACK_BYTES).is_ok();
        state.has_helper
    }
}

const STACK_BYTES: usize = 256 << 10;

impl Service for RequestQueue {
    const NAME: &'static CStr = c"evener-module";

    /// Leads as long as there is a request of a caller that was put aside.
    fn serve(&self) {
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
