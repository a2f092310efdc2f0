//! The monitor of policy `polling` (paper 002, method 4): it watches all workers all the time, busily, and
//! hands the next job to the worker that is free. It is here to be compared with, not to be used.

use crate::state::Shared;

/// Hands out jobs until the backlog is closed and empty.
pub(crate) fn run(shared: &Shared<'_>) {
    while !shared.backlog.is_drained() {
        shared.backlog.serve();
        std::hint::spin_loop();
    }
    shared.backlog.end();
}
