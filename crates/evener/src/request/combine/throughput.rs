//! The process's own throughput, epoch by epoch, and what the controller makes of it.
//!
//! `enter` (every call: which epoch, how many bytes) -> `look` (every 16th call, and while callers wait: is the epoch
//! over?) -> whoever finds it over asks the [controller](Controller) -> `together`, which every call reads.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use evener_core::Nanos;
use evener_core::combine::{Controller, EPOCH, Epoch};
use evener_core::driver::Clock as _;
use evener_ring::CachePadded;

use crate::SystemClock;

/// Calls between two looks at the clock, per thread.
const LOOK_EVERY: u32 = 16;

/// Who decides whether callers combine.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule {
    /// The controller.
    Guarded,
    /// Nobody: so many callers always wait for each other.
    Always { together: u32 },
}

/// Counts calls and ends epochs.
pub(super) struct Pulse {
    /// Never used twice in a process.
    id: u32,
    /// What every call reads and only the end of an epoch writes.
    setting: CachePadded<Setting>,
    callers: CachePadded<AtomicU32>,
    bytes: CachePadded<AtomicU64>,
    /// Held by whoever ends an epoch; nobody waits for it.
    house: Mutex<House>,
}

struct Setting {
    /// Callers that wait for each other; 0 where each works for itself.
    together: AtomicU32,
    epoch: AtomicU32,
    /// Times that the controller ended combining, until somebody takes note of them.
    locks: AtomicU32,
    /// When the epoch is over, in nanoseconds of the system's clock.
    ends: AtomicU64,
}

struct House {
    controller: Controller,
    began: Nanos,
    /// Core time of the process at that moment.
    core: Nanos,
    epochs_on: u64,
}

/// What a thread knows of itself. It belongs to the pulse that it entered last: a thread that uses two by turns is counted
/// too often, which only opens the gate.
#[derive(Clone, Copy)]
struct Seen {
    pulse: u32,
    epoch: u32,
    /// Its number among those that came to this pulse's process, to spread threads over slots.
    hint: u32,
    calls: u32,
    bytes: u64,
}

thread_local! {
    static SEEN: Cell<Seen> = const { Cell::new(Seen { pulse: 0, epoch: 0, hint: 0, calls: 0, bytes: 0 }) };
}

/// A caller that was counted.
pub(super) struct Caller {
    /// As [`Pulse::together`].
    pub(super) together: u32,
    /// Differs from thread to thread.
    pub(super) hint: usize,
}

/// Names of pulses and numbers of threads; only that they differ matters.
static NAMES: AtomicU32 = AtomicU32::new(1);

impl Pulse {
    pub(super) fn new(rule: Rule, cores: usize) -> Self {
        let (together, ends) = match rule {
            Rule::Guarded => (0, 0),
            // No epoch ever ends.
            Rule::Always { together } => (together, u64::MAX),
        };
        let setting =
            Setting { together: together.into(), epoch: 0.into(), locks: 0.into(), ends: ends.into() };
        let house =
            House { controller: Controller::new(cores), began: Nanos::ZERO, core: Nanos::ZERO, epochs_on: 0 };
        Self {
            id: NAMES.fetch_add(1, Ordering::Relaxed),
            setting: CachePadded::new(setting),
            callers: CachePadded::default(),
            bytes: CachePadded::default(),
            house: Mutex::new(house),
        }
    }

    /// Counts a call of so many bytes.
    #[inline]
    pub(super) fn enter(&self, bytes: usize) -> Caller {
        // Relaxed, here and below: counts and a setting, nothing that they would have to carry along.
        let epoch = self.setting.epoch.load(Ordering::Relaxed);
        let mut seen = SEEN.get();
        if (seen.pulse, seen.epoch) != (self.id, epoch) {
            seen = self.come(seen, epoch);
        }
        seen.calls += 1;
        seen.bytes += bytes as u64;
        if seen.calls == LOOK_EVERY {
            self.bytes.fetch_add(seen.bytes, Ordering::Relaxed);
            (seen.calls, seen.bytes) = (0, 0);
            self.look(SystemClock.now());
        }
        SEEN.set(seen);
        Caller { together: self.together(), hint: seen.hint as usize }
    }

    /// The first call of a thread in an epoch.
    #[cold]
    fn come(&self, seen: Seen, epoch: u32) -> Seen {
        self.callers.fetch_add(1, Ordering::Relaxed);
        if seen.pulse == self.id {
            return Seen { epoch, ..seen };
        }
        let hint = NAMES.fetch_add(1, Ordering::Relaxed);
        // Callers that combine go in step: were they all to hand in their bytes at one moment, an epoch would have them or not.
        Seen { pulse: self.id, epoch, hint, calls: hint % LOOK_EVERY, bytes: 0 }
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
    pub(super) fn together(&self) -> u32 {
        self.setting.together.load(Ordering::Relaxed)
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
        let Ok(mut house) = self.house.try_lock() else { return };
        if now.0 < self.setting.ends.load(Ordering::Relaxed) {
            return; // Another thread was faster.
        }
        let core = SystemClock.process_time();
        let (callers, bytes) =
            (self.callers.swap(0, Ordering::Relaxed), self.bytes.swap(0, Ordering::Relaxed));
        // Looked at again, and last: a thread that lost its core since it first looked, with the house in hand, would count
        // what came in 100 ms as that of 20.
        let now = SystemClock.now();
        let seen = Epoch { span: now - house.began, core: core - house.core, callers, bytes };
        let failures = house.controller.failures();
        let together = house.controller.end_epoch(&seen);
        self.setting.locks.fetch_add(house.controller.failures() - failures, Ordering::Relaxed);
        house.epochs_on += u64::from(self.together() > 0);
        (house.began, house.core) = (now, core);
        self.setting.together.store(together, Ordering::Relaxed);
        self.setting.epoch.fetch_add(1, Ordering::Relaxed);
        self.setting.ends.store((now + EPOCH).0, Ordering::Relaxed);
    }

    /// Epochs in which callers combined, and all.
    pub(super) fn epochs(&self) -> [u64; 2] {
        let on = self.house.lock().map_or(0, |house| house.epochs_on);
        [on, u64::from(self.setting.epoch.load(Ordering::Relaxed))]
    }
}
