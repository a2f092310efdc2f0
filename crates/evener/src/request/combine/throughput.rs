//! The process's own throughput, epoch by epoch, and what the controller makes of it.
//!
//! `enter` (every call: which epoch, how many bytes) -> `look` (every 16th call, and while callers wait: is the epoch
//! over?) -> the caller that finds it over asks the [controller](Controller) -> `group_size`, which every call reads. Of one call in
//! four the end is told too (`leave`), so that it is known how many are under way at once.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use evener_core::Nanos;
use evener_core::combine::{Controller, EPOCH, Epoch, Waiting, YIELDS};
use evener_core::driver::Clock as _;
use evener_ring::{CachePadded, ThreadValue};

use crate::SystemClock;

/// Calls between two looks at the clock, per thread.
const LOOK_EVERY: u32 = 16;

/// Calls of which one is timed, per thread: two looks at the clock, some 50 ns.
const TIME_EVERY: u32 = 4;

/// Who decides whether callers combine.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule {
    /// The controller.
    Guarded,
    /// No one: callers always wait for each other.
    Always(Waiting),
}

/// Counts calls and ends epochs.
pub(super) struct ThroughputMonitor {
    /// Never used twice in a process.
    id: u32,
    /// What every call reads and only the end of an epoch writes.
    setting: CachePadded<Setting>,
    callers: CachePadded<AtomicU32>,
    brought: CachePadded<Brought>,
    /// Locked by the thread that ends an epoch; no other waits for it.
    state: Mutex<EpochState>,
}

/// What threads hand in every 16th call.
#[derive(Default)]
struct Brought {
    bytes: AtomicU64,
    /// Calls that were timed, and nanoseconds that they took.
    timed: AtomicU64,
    in_calls: AtomicU64,
}

struct Setting {
    /// Callers that wait for each other; 0 where each works for itself.
    group_size: AtomicU32,
    /// Yields after which one of them runs what is there.
    yields: AtomicU32,
    epoch: AtomicU32,
    /// Times that the controller ended combining, until a caller takes note of them.
    locks: AtomicU32,
    /// When the epoch is over, in nanoseconds of the system's clock.
    ends: AtomicU64,
}

struct EpochState {
    controller: Controller,
    began: Nanos,
    /// Core time of the process at that moment.
    core: Nanos,
    epochs_on: u64,
    timed: u64,
}

/// What a thread knows of itself. It belongs to the monitor that it entered last: a thread that uses two by turns is counted
/// too often, which only opens the gate.
#[derive(Clone, Copy, Default)]
struct ThreadState {
    monitor: u32,
    epoch: u32,
    /// Its number among those that came to this monitor's process, to spread threads over slots.
    hint: u32,
    calls: u32,
    /// Since it handed in last: bytes, calls that were timed, and nanoseconds that they took.
    bytes: u64,
    timed: u32,
    in_calls: u64,
}

static THREAD: ThreadValue<Cell<ThreadState>> = ThreadValue::new(Cell::default);

/// A caller that was counted.
pub(super) struct Caller {
    /// As [`ThroughputMonitor::group_size`].
    pub(super) group_size: u32,
    /// Differs from thread to thread.
    pub(super) hint: usize,
    /// Where the end of this call is to be told.
    pub(super) timed: Option<TimedCall>,
}

/// A call whose end is to be told ([`super::Combiner::leave`]).
#[derive(Clone, Copy, Debug)]
pub struct TimedCall {
    began: Nanos,
}

/// Names of monitors and numbers of threads; only that they differ matters.
static NAMES: AtomicU32 = AtomicU32::new(1);

impl ThroughputMonitor {
    /// Whether no thread stopped at the end of an epoch.
    pub(super) fn is_whole(&self) -> bool {
        self.state.try_lock().is_ok()
    }

    pub(super) fn new(rule: Rule, cores: usize) -> Self {
        THREAD.prepare();
        let (group_size, yields, ends) = match rule {
            Rule::Guarded => (0, YIELDS, 0),
            // No epoch ever ends.
            Rule::Always(Waiting { together, yields }) => (together, yields, u64::MAX),
        };
        let setting = Setting {
            group_size: group_size.into(),
            yields: yields.into(),
            epoch: 0.into(),
            locks: 0.into(),
            ends: ends.into(),
        };
        let state = EpochState {
            controller: Controller::new(cores),
            began: Nanos::ZERO,
            core: Nanos::ZERO,
            epochs_on: 0,
            timed: 0,
        };
        Self {
            id: NAMES.fetch_add(1, Ordering::Relaxed),
            setting: CachePadded::new(setting),
            callers: CachePadded::default(),
            brought: CachePadded::default(),
            state: Mutex::new(state),
        }
    }

    /// Counts a call of so many bytes.
    #[inline]
    pub(super) fn enter(&self, bytes: usize) -> Caller {
        THREAD.with(|thread| self.count(thread, bytes)).unwrap_or_else(|| Caller {
            // A thread without memory for its state is not counted.
            group_size: self.group_size(),
            hint: 0,
            timed: None,
        })
    }

    #[inline]
    fn count(&self, thread: &Cell<ThreadState>, bytes: usize) -> Caller {
        // Relaxed, here and below: counts and a setting, nothing that they would have to carry along.
        let epoch = self.setting.epoch.load(Ordering::Relaxed);
        let mut seen = thread.get();
        if (seen.monitor, seen.epoch) != (self.id, epoch) {
            seen = self.enter_epoch(seen, epoch);
        }
        seen.calls += 1;
        seen.bytes += bytes as u64;
        let mut timed = None;
        if seen.calls % TIME_EVERY == 0 {
            let began = SystemClock.now();
            timed = Some(TimedCall { began });
            if seen.calls == LOOK_EVERY {
                seen = self.hand_in(seen);
                self.look(began);
            }
        }
        thread.set(seen);
        Caller { group_size: self.group_size(), hint: seen.hint as usize, timed }
    }

    fn hand_in(&self, seen: ThreadState) -> ThreadState {
        let Brought { bytes, timed, in_calls } = &*self.brought;
        for (sum, part) in [(bytes, seen.bytes), (timed, seen.timed.into()), (in_calls, seen.in_calls)] {
            sum.fetch_add(part, Ordering::Relaxed);
        }
        ThreadState { calls: 0, bytes: 0, timed: 0, in_calls: 0, ..seen }
    }

    /// Counts the time of a call that ends now.
    pub(super) fn leave(&self, call: TimedCall) {
        let taken = SystemClock.now() - call.began;
        THREAD.with(|thread| {
            let seen = thread.get();
            if seen.monitor == self.id {
                let in_calls = seen.in_calls.saturating_add(taken.0);
                thread.set(ThreadState { timed: seen.timed + 1, in_calls, ..seen });
            }
        });
    }

    /// The first call of a thread in an epoch.
    #[cold]
    fn enter_epoch(&self, seen: ThreadState, epoch: u32) -> ThreadState {
        self.callers.fetch_add(1, Ordering::Relaxed);
        if seen.monitor == self.id {
            return ThreadState { epoch, ..seen };
        }
        let hint = NAMES.fetch_add(1, Ordering::Relaxed);
        // Callers that combine go in step: were they all to hand in their bytes at one moment, an epoch would have them or not.
        ThreadState { monitor: self.id, epoch, hint, calls: hint % LOOK_EVERY, ..ThreadState::default() }
    }

    /// Times that combining was ended since this was asked last.
    #[inline]
    pub(super) fn take_locks(&self) -> u32 {
        match self.setting.locks.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.setting.locks.swap(0, Ordering::Relaxed),
        }
    }

    /// How many callers wait for each other now; 0 where each works for itself.
    #[inline]
    pub(super) fn group_size(&self) -> u32 {
        self.setting.group_size.load(Ordering::Relaxed)
    }

    /// How many times a caller yields before it runs what is there.
    #[inline]
    pub(super) fn yields(&self) -> u32 {
        self.setting.yields.load(Ordering::Relaxed)
    }

    /// Ends the epoch if it is over at `now`.
    #[inline]
    pub(super) fn look(&self, now: Nanos) {
        if now.0 >= self.setting.ends.load(Ordering::Relaxed) {
            self.end_epoch(now);
        }
    }

    #[cold]
    fn end_epoch(&self, now: Nanos) {
        let Ok(mut state) = self.state.try_lock() else { return };
        if now.0 < self.setting.ends.load(Ordering::Relaxed) {
            return; // Another thread was faster.
        }
        let core = SystemClock.process_time();
        let callers = self.callers.swap(0, Ordering::Relaxed);
        let Brought { bytes, timed, in_calls } = &*self.brought;
        let [bytes, timed, in_calls] = [bytes, timed, in_calls].map(|sum| sum.swap(0, Ordering::Relaxed));
        let every = u64::from(TIME_EVERY);
        // Looked at again, and last: a thread that lost its core since it first looked, with the state locked, would count
        // what came in 100 ms as that of 20.
        let now = SystemClock.now();
        let seen = Epoch {
            span: now - state.began,
            core: core - state.core,
            callers,
            bytes,
            requests: timed * every,
            in_calls: Nanos(in_calls.saturating_mul(every)),
        };
        let failures = state.controller.failures();
        let waiting = state.controller.end_epoch(&seen);
        self.setting.locks.fetch_add(state.controller.failures() - failures, Ordering::Relaxed);
        state.epochs_on += u64::from(self.group_size() > 0);
        state.timed += timed;
        (state.began, state.core) = (now, core);
        if let Some(waiting) = waiting {
            self.setting.yields.store(waiting.yields, Ordering::Relaxed);
        }
        self.setting.group_size.store(waiting.map_or(0, |waiting| waiting.together), Ordering::Relaxed);
        self.setting.epoch.fetch_add(1, Ordering::Relaxed);
        self.setting.ends.store((now + EPOCH).0, Ordering::Relaxed);
    }

    /// Epochs in which callers combined, and all; and the calls in them that were timed.
    pub(super) fn ended(&self) -> ([u64; 2], u64) {
        let (on, timed) = self.state.lock().map_or((0, 0), |state| (state.epochs_on, state.timed));
        ([on, u64::from(self.setting.epoch.load(Ordering::Relaxed))], timed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_sixteen_calls_four_are_timed_and_what_they_took_is_no_more_than_there_was() {
        // No epoch ends and takes what was handed in.
        let waiting = Waiting::for_others(2);
        let monitor = ThroughputMonitor::new(Rule::Always(waiting), 2);
        let began = SystemClock.now();
        // What a thread brings is handed in at its next sixteenth call, the first of which is anywhere.
        let timed: Vec<TimedCall> = (0..3 * LOOK_EVERY)
            .filter_map(|_| {
                let timed = monitor.enter(100).timed?;
                monitor.leave(timed);
                Some(timed)
            })
            .collect();
        let elapsed = SystemClock.now() - began;
        assert_eq!(timed.len(), 12);
        let Brought { bytes, timed, in_calls } = &*monitor.brought;
        let [bytes, timed, in_calls] = [bytes, timed, in_calls].map(|sum| sum.load(Ordering::Relaxed));
        let every = u64::from(LOOK_EVERY / TIME_EVERY);
        // Handed in three times; the call at which that is done is timed for the next.
        assert!((3 * every - 4..3 * every).contains(&timed), "{timed}");
        assert!((200 * u64::from(LOOK_EVERY)..=300 * u64::from(LOOK_EVERY)).contains(&bytes), "{bytes}");
        assert!(0 < in_calls && in_calls <= elapsed.0, "{in_calls} of {elapsed}");
    }
}
