//! The leader's round: of the callers that wait the one that has the driver hands over what all of them have put, polls, and lays out what came back.
//!
//! lock: take what waits, and the driver -> no lock: submit, poll -> lock: results to their callers, the driver back to its place, and the judgement whether the module stays in service.

use std::mem;
use std::sync::atomic::Ordering::Relaxed;

use evener_core::driver::{Clock as _, LAST_WAIT};
use evener_core::{Job, Nanos, QueuedDriver, Refusal};

use super::super::queue_state::{DriverPlace, OutOfService};
use super::{Guard, RequestQueue};
use crate::SystemClock;

impl RequestQueue {
    /// Hands over what waits, sleeps until something is back, and lays it out.
    pub(super) fn lead<'s>(&'s self, mut state: Guard<'s>) -> Guard<'s> {
        let mut given = mem::take(&mut state.waiting);
        let first = state.expected.values().map(|caller| caller.until).min().unwrap_or_default();
        let place = mem::replace(&mut state.driver, DriverPlace::Away);
        drop(state);
        // It may take its time to be made, so not under the lock.
        let Some(mut driver) = { place }.take() else { return self.state() };
        let mut back = Vec::new();
        let mut is_lost = !hand_over(&mut *driver, &mut given);
        if driver.in_flight() > 0 {
            poll(&mut *driver, &mut back, first);
        } else {
            // It holds nothing and takes nothing.
            is_lost |= !given.is_empty();
        }
        let mut state = self.state();
        given.append(&mut state.waiting);
        state.waiting = given;
        self.core_ns.store((driver.core_time() + state.helper_core).0, Relaxed);
        back.drain(..).for_each(|job| state.settle(job));
        let now = SystemClock.now();
        let is_late = state.expected.iter().any(|(number, caller)| {
            !state.back.contains_key(number) && caller.until <= now && !cfg!(mutant = "never_late")
        });
        state = self.put_back(state, driver);
        let why = match state.why_out() {
            _ if state.out.is_some() => state.out,
            _ if is_lost => Some(OutOfService::Lost),
            Some(OutOfService::Lost) => Some(OutOfService::Lost),
            _ if is_late => Some(OutOfService::Late),
            why => why,
        };
        match why {
            Some(why) => state = self.end(state, why),
            None => state.ring(),
        }
        self.count(&state);
        self.changed.notify_all();
        state
    }
}

/// Sleeps until something is back, or the first caller's time is over. Then all that is under way has a little more: this process may have been
/// stopped meanwhile.
fn poll(driver: &mut dyn QueuedDriver<'static>, back: &mut Vec<Box<Job<'static>>>, first: Nanos) {
    driver.poll(back, first - SystemClock.now());
    if SystemClock.now() < first {
        return;
    }
    let last = SystemClock.now() + LAST_WAIT;
    while driver.in_flight() > 0 && SystemClock.now() < last {
        driver.poll(back, last - SystemClock.now());
    }
}

/// Hands jobs over, the first first, until the driver is full; those stay. False where it is gone.
fn hand_over(driver: &mut dyn QueuedDriver<'static>, jobs: &mut Vec<Box<Job<'static>>>) -> bool {
    let mut refused = Vec::new();
    let mut is_there = true;
    let mut rest = mem::take(jobs).into_iter();
    for job in rest.by_ref() {
        match driver.submit(job) {
            Ok(()) => {}
            Err((job, why)) => {
                is_there = why == Refusal::Full;
                refused.push(job);
                break;
            }
        }
    }
    refused.extend(rest);
    *jobs = refused;
    is_there
}
