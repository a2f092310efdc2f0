//! The queue in which callers leave requests and find results, by the pattern of leader and followers (Schmidt et al., Pattern-Oriented
//! Software Architecture 2): of the callers that wait one has the driver, hands over what all of them have put, and polls; the others sleep.
//!
//! ```text
//! put ──> waiting ──(lead: submit)──> at the module ──(lead: poll)──> back ──> wait returns
//!                      │ the leader takes the driver out of the state, and puts it back (`put_back`) when its poll returns;
//!                      │ then the next caller that wakes leads.
//! ```
//!
//! | a caller in `wait` finds | and does |
//! |---|---|
//! | its result | takes it |
//! | the driver, and may lead | leads one round |
//! | no driver, or may not lead | sleeps until something changed, or its time is over |
//! | its time over | takes the module out of service |
//!
//! A round of the leader stands in `leader.rs`. Callers that were put aside (coroutines) may not lead: a helper thread does (`helper.rs`). The lock is held for looks and moves only, never
//! while the module is called or waited for. Single requests go past the queue to a driver of their own (`single.rs`).
//!
//! Keys of sessions that have ended are given up at once where no caller is at the module (`evict`), else by the leader when it is back
//! (`put_back`), and for single requests by the last caller that comes back: so no thread waits behind a request that never ends.

mod helper;
mod leader;
mod single;

use std::mem;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use evener_core::driver::{Clock as _, LAST_WAIT, SingleDriver};
use evener_core::{Nanos, SessionId};
use evener_ring::{Inherited, Served};

use super::buffers::Buffer;
use super::queue_state::{Driver, DriverPlace, OutOfService, State, Waiting};
use super::{MakeDriver, Request, Waker};
use crate::SystemClock;

type Guard<'s> = MutexGuard<'s, State>;

/// A request as it is put down.
pub(super) struct Submission<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) waker: Option<Box<dyn Waker>>,
}

/// One process's queue.
pub(super) struct RequestQueue {
    state: Mutex<State>,
    /// What callers ask that go past the queue; `None` inside where the module has none.
    single: OnceLock<Option<Box<dyn SingleDriver>>>,
    /// Callers that ask it.
    single_callers: AtomicU32,
    /// Threads that have it give up keys.
    single_evictors: AtomicU32,
    /// Whether sessions ended while there were some.
    has_ended: AtomicBool,
    /// Something came back, the driver is free, or there is something for the helper thread.
    changed: Condvar,
    /// Requests under way, for who only wants to know. Written under the lock.
    ahead: AtomicU32,
    /// Core time of the driver's and the helper's threads. Written under the lock.
    core_ns: AtomicU64,
    /// Whether it is in service: 1. Written under the lock.
    in_service: AtomicU32,
    /// As of the state: whether what goes well ends a row. Written under the lock.
    has_errors: AtomicBool,
}

impl Inherited for RequestQueue {
    /// No thread was at the driver, which it took out of the state, nor at that of single requests.
    fn is_whole(&mut self) -> bool {
        *self.single_callers.get_mut() == 0
            && *self.single_evictors.get_mut() == 0
            && self.state.try_lock().is_ok_and(|state| state.driver.is_here() || state.out.is_some())
    }
}

impl RequestQueue {
    pub(super) fn new(make_driver: Arc<MakeDriver>) -> Self {
        let state = State::new(make_driver);
        Self {
            state: Mutex::new(state),
            single: OnceLock::new(),
            single_callers: AtomicU32::new(0),
            single_evictors: AtomicU32::new(0),
            has_ended: AtomicBool::new(false),
            changed: Condvar::new(),
            ahead: AtomicU32::new(0),
            core_ns: AtomicU64::new(0),
            in_service: AtomicU32::new(1),
            has_errors: AtomicBool::new(false),
        }
    }

    // Relaxed, here and below: numbers that may be a moment old.
    pub(super) fn is_in_service(&self) -> bool {
        self.in_service.load(Relaxed) == 1
    }

    pub(super) fn ahead(&self) -> u32 {
        self.ahead.load(Relaxed).saturating_add(self.single_callers.load(Relaxed))
    }

    pub(super) fn core_time(&self) -> Nanos {
        let single = self.single().map(|driver| driver.core_time());
        Nanos(self.core_ns.load(Relaxed)) + single.unwrap_or_default()
    }

    pub(super) fn why_out(&self) -> Option<OutOfService> {
        self.state().out
    }

    /// Takes a request in and returns its number.
    pub(super) fn put(this: &Served<Self>, submission: Submission<'_>) -> Option<u64> {
        let Submission { request, waker } = submission;
        let mut state = this.state();
        if state.out.is_some() || waker.is_some() && !Self::ensure_helper(this, &mut state) {
            return None;
        }
        let number = state.next;
        let job = state.buffers.prepare(number, request.session, request.iv, request.input)?;
        state.next += 1;
        // The leader sleeps no longer than until the first caller gives up: none that came later is late before.
        let last = state.expected.values().map(|caller| caller.until).max().unwrap_or_default();
        let until = last.max(SystemClock.now() + request.allowed);
        let is_rung = waker.is_some();
        state.waiting.push(job);
        state.expected.insert(number, Waiting { until, waker, may_lead: !is_rung });
        this.count(&state);
        if is_rung {
            this.changed.notify_all();
        }
        Some(number)
    }

    pub(super) fn is_over(&self, number: u64) -> bool {
        let state = self.state();
        state.back.contains_key(&number) || state.out.is_some() || !state.expected.contains_key(&number)
    }

    /// Sleeps until the request is back, and leads where no other does.
    pub(super) fn wait(&self, number: u64) -> Option<Buffer> {
        let mut state = self.state();
        let mut last = None;
        loop {
            if let Some(back) = state.back.remove(&number) {
                state.expected.remove(&number);
                self.count(&state);
                return back;
            }
            let caller = state.expected.get(&number)?;
            let (left, may_lead) = (caller.until - SystemClock.now(), caller.may_lead);
            let left = match left {
                // Another may lead, and waits once more itself.
                Nanos::ZERO => {
                    let now = SystemClock.now();
                    *last.get_or_insert(now + LAST_WAIT + LAST_WAIT) - now
                }
                left => left,
            };
            if left == Nanos::ZERO {
                drop(self.end(state, OutOfService::Late));
                return None;
            }
            state = match may_lead && state.driver.is_here() {
                true => self.lead(state),
                false => self.sleep(state, left),
            };
        }
    }

    /// The caller of that request has left.
    pub(super) fn leave(&self, number: u64) {
        let mut state = self.state();
        state.expected.remove(&number);
        if let Some(buffer) = state.back.remove(&number).flatten() {
            state.buffers.give_back(buffer);
        }
        if let Some(at) = state.waiting.iter().position(|job| job.mark == number) {
            let job = state.waiting.remove(at);
            state.keep(job);
        }
        self.count(&state);
    }

    /// A session has ended: its keys are given up.
    pub(super) fn evict(&self, session: SessionId) {
        let mut state = self.state();
        match mem::replace(&mut state.driver, DriverPlace::Away) {
            DriverPlace::Here(driver) => {
                state.ended.push(session);
                state = self.put_back(state, driver);
                if let Some(why) = state.out {
                    state = self.end(state, why);
                }
                if !state.expected.is_empty() {
                    // A caller that came meanwhile may lead.
                    self.changed.notify_all();
                }
            }
            DriverPlace::Unmade(make) => state.driver = DriverPlace::Unmade(make),
            // The leader that has it takes it apart, and the keys with it.
            DriverPlace::Away if state.out.is_some() => {}
            DriverPlace::Away => state.ended.push(session),
        }
        if self.single().is_none() {
            return;
        }
        state.ended_for_single.push(session);
        drop(state);
        // Sequentially consistent, as in `is_back`: either this sees that there are no single callers, or the last one to come back sees this.
        self.has_ended.store(true, SeqCst);
        if self.single_callers.load(SeqCst) == 0 || cfg!(mutant = "keys_given_up_beside_callers") {
            self.forget_for_single();
        }
    }

    /// Lays the driver down once it has given up the keys of sessions that ended.
    /// Makes the driver, where no request has had it made.
    pub(super) fn prepare(&self) {
        let mut state = self.state();
        if !matches!(state.driver, DriverPlace::Unmade(_)) {
            return;
        }
        let place = mem::replace(&mut state.driver, DriverPlace::Away);
        drop(state);
        // It may take its time to be made, so not under the lock.
        if let Some(driver) = { place }.take() {
            drop(self.put_back(self.state(), driver));
        }
        self.changed.notify_all();
    }

    fn put_back<'s>(&'s self, mut state: Guard<'s>, mut driver: Driver) -> Guard<'s> {
        while !state.ended.is_empty() {
            let ended = mem::take(&mut state.ended);
            drop(state);
            driver.evict(&|session| ended.contains(&session));
            state = self.state();
        }
        state.driver = DriverPlace::Here(driver);
        state
    }

    pub(super) fn give_back(&self, buffer: Buffer) {
        self.state().buffers.give_back(buffer);
    }

    /// Ends the service: every caller that waits is told, and does its request itself.
    pub(super) fn put_out(&self, why: OutOfService) {
        drop(self.end(self.state(), why));
    }

    fn sleep<'s>(&self, state: Guard<'s>, time: Nanos) -> Guard<'s> {
        self.changed.wait_timeout(state, Duration::from(time)).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Tells every caller that waits, and takes the driver apart; where one leads, it does that when it is back.
    fn end<'s>(&'s self, mut state: Guard<'s>, why: OutOfService) -> Guard<'s> {
        state.out.get_or_insert(why);
        self.in_service.store(0, Relaxed);
        state.ring_all();
        // A caller that finds itself struck off goes; a result that is back is still there for its caller.
        let State { expected, back, .. } = &mut *state;
        expected.retain(|number, _| back.contains_key(number));
        let mut jobs = mem::take(&mut state.waiting);
        let driver = match mem::replace(&mut state.driver, DriverPlace::Away) {
            DriverPlace::Here(driver) => Some(driver),
            DriverPlace::Unmade(_) | DriverPlace::Away => None,
        };
        self.count(&state);
        drop(state);
        self.changed.notify_all();
        if let Some(mut driver) = driver {
            driver.abandon(&mut jobs);
            // May wait a moment for its threads, so not under the lock.
            drop(driver);
        }
        let mut state = self.state();
        jobs.into_iter().for_each(|job| state.keep(job));
        state
    }

    fn count(&self, state: &State) {
        // What is back is expected, too, until it is fetched.
        let ahead = state.expected.len() - state.back.len();
        self.ahead.store(u32::try_from(ahead).unwrap_or(u32::MAX), Relaxed);
        self.has_errors.store(state.errors_in_row > 0, Relaxed);
    }

    /// The state is whole between any two statements, so a panic elsewhere does not spoil it.
    fn state(&self) -> Guard<'_> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
