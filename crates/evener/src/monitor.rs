//! The monitor of policy `polling` (paper 002, method 4): it watches all workers all the time, busily, and
//! hands the next job to whoever is free. It is here to be compared with, not to be used.

use std::sync::atomic::Ordering;

use evener_core::plan::Dispatch;

use crate::runtime::Shared;

/// Hands out jobs until the backlog is closed and empty.
pub(crate) fn run(shared: &Shared<'_>) {
    let desks = shared.backlog.desks();
    while !shared.backlog.is_drained() {
        for (number, desk) in desks.iter().enumerate() {
            // Acquire pairs with the Release in `tell_free`: the worker's desk is empty.
            if desk.free.load(Ordering::Acquire) {
                desk.free.store(false, Ordering::Relaxed);
                if !shared.backlog.hand_to(number) {
                    desk.free.store(true, Ordering::Relaxed);
                }
            }
        }
        std::hint::spin_loop();
    }
    shared.backlog.end();
}

/// Tells the monitor, if there is one, that the worker at `desk` waits for a job.
pub(crate) fn tell_free(shared: &Shared<'_>, desk: usize) {
    if shared.plan.dispatch == Dispatch::Monitor {
        shared.backlog.desks()[desk].free.store(true, Ordering::Release);
    }
}
