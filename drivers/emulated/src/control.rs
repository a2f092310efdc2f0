//! Switches of a module that runs, held by tests and measurements.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use evener_core::{Line, Nanos};

use crate::preset::COUNT_MAX;

/// What is wrong with the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// It reports an error after the usual time; the job's memory is as submitted.
    Error {
        /// The error's number.
        code: i32,
    },
    /// It says that all went well and gives bytes of which one bit is wrong (of the tag where there are no
    /// bytes), even where the data is not authentic.
    WrongBytes,
    /// The job is handed back so much later, though its unit takes the next one in time.
    Delay {
        /// How much later.
        by: Nanos,
    },
    /// The job and its unit never get ready.
    Hang,
    /// The module is not there any more, for good: nothing is taken and all that it held is lost.
    Gone,
}

/// Which jobs meet a fault, by their number in the order of submission, the first being 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When {
    /// The first one.
    pub from: u64,
    /// Of those that follow, every so many; 0 as 1: all. [`Fault::Gone`] needs only the first.
    pub every: u64,
}

impl When {
    /// Every job from now on.
    pub const ALWAYS: Self = Self { from: 0, every: 1 };

    const fn meets(self, number: u64) -> bool {
        number >= self.from && (self.every <= 1 || (number - self.from) % self.every == 0)
    }
}

/// What the module did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Jobs taken.
    pub submitted: u64,
    /// Jobs handed back in the usual way, with whatever outcome; not those that were lost.
    pub completed: u64,
    /// Jobs taken that met a fault.
    pub faults: u64,
    /// Jobs for which the core needed more than `d`: this machine is too slow for the preset.
    pub late: u64,
}

/// The switches; all copies belong to the same module. A change counts for jobs that are submitted after it.
#[derive(Clone, Debug, Default)]
pub struct Control(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// The orders have changed.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    orders: Orders,
    counters: Counters,
}

/// How the module is to behave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Orders {
    fault: Fault,
    when: When,
    /// Time that the module takes, in per cent of what its preset says.
    percent: u32,
    /// `h` instead of the preset's.
    service: Option<Line>,
    /// Counts instead of the preset's.
    units: Option<usize>,
    depth: Option<usize>,
    /// How often the orders were changed, so that a sleeper misses no change.
    changes: u64,
}

impl Default for Orders {
    fn default() -> Self {
        Self {
            fault: Fault::None,
            when: When::ALWAYS,
            percent: 100,
            service: None,
            units: None,
            depth: None,
            changes: 0,
        }
    }
}

impl Control {
    /// Makes the module faulty, or well again with [`Fault::None`].
    pub fn set_fault(&self, fault: Fault, when: When) {
        self.change(|orders| (orders.fault, orders.when) = (fault, when));
    }

    /// Lets `h` take `percent` of what the preset says: 300 makes the module three times as slow. `d` is core
    /// time and stays.
    pub fn set_pace(&self, percent: u32) {
        self.change(|orders| orders.percent = percent);
    }

    /// Lets `h` be what `service` says, of all algorithms that the module does; `None`: what its preset says.
    pub fn set_service(&self, service: Option<Line>) {
        self.change(|orders| orders.service = service);
    }

    /// Lets the module work on up to `units` jobs at the same time, at least on one; `None`: as its preset says.
    pub fn set_units(&self, units: Option<usize>) {
        self.change(|orders| orders.units = units.map(|units| units.clamp(1, COUNT_MAX)));
    }

    /// Lets the module hold up to `depth` jobs, at least one; `None`: as its preset says. Of jobs that it holds already none
    /// goes back.
    pub fn set_depth(&self, depth: Option<usize>) {
        self.change(|orders| orders.depth = depth.map(|depth| depth.clamp(1, COUNT_MAX)));
    }

    /// What the module did so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.lock().counters
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Counters)) {
        change(&mut self.lock().counters);
    }

    pub(crate) fn orders(&self) -> Orders {
        self.lock().orders
    }

    /// Sleeps until `until`, or until the orders are no longer those that were `known`.
    pub(crate) fn sleep(&self, until: Instant, known: &Orders) {
        let timeout = until.saturating_duration_since(Instant::now());
        let unchanged = |state: &mut State| state.orders.changes == known.changes;
        let woken = self.0.changed.wait_timeout_while(self.lock(), timeout, unchanged);
        drop(woken.unwrap_or_else(PoisonError::into_inner));
    }

    fn change(&self, change: impl FnOnce(&mut Orders)) {
        let mut state = self.lock();
        change(&mut state.orders);
        state.orders.changes += 1;
        self.0.changed.notify_all();
    }

    /// The state is whole between any two statements, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Orders {
    pub(crate) fn fault_of(&self, number: u64) -> Fault {
        if self.when.meets(number) { self.fault } else { Fault::None }
    }

    /// Whether the module is gone once the job of this number was offered.
    pub(crate) fn is_gone(&self, number: u64) -> bool {
        self.fault == Fault::Gone && number >= self.when.from
    }

    /// How long the module works on a job for which its preset says `h`.
    pub(crate) fn service(&self, h: Nanos, bytes: usize) -> Nanos {
        let h = self.service.map_or(h, |line| line.at(u64::try_from(bytes).unwrap_or(u64::MAX)));
        Nanos(h.0.saturating_mul(u64::from(self.percent)) / 100)
    }

    /// Jobs that it works on at the same time.
    pub(crate) fn units(&self, of_preset: usize) -> usize {
        self.units.unwrap_or(of_preset)
    }

    /// Jobs that it holds.
    pub(crate) fn depth(&self, of_preset: usize) -> usize {
        self.depth.unwrap_or(of_preset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_meets_the_jobs_that_it_is_meant_for() {
        let met = |when: When| (1..=10).filter(|&number| when.meets(number)).collect::<Vec<_>>();
        assert_eq!(met(When { from: 4, every: 3 }), [4, 7, 10]);
        assert_eq!(met(When { from: 8, every: 0 }), [8, 9, 10]);
        assert_eq!(met(When::ALWAYS), (1..=10).collect::<Vec<_>>());
    }
}
