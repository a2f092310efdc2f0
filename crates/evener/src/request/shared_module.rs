//! A module that other processes of this user may have, too: whose turn it is there, when a request would begin, and what all of them have
//! learned of it (docs/design/arbiter.md).
//!
//! A request: `SharedModule::expected_start` counts where it goes -> `SharedModule::acquire` right before it goes there: a permit, or it is
//! done by the core at once -> the permit is dropped when its result is there. Costs: `SharedModule::known` where this process has none of
//! its own, `SharedModule::publish` with each sample. Without an arbiter none of this is anything, and the request goes.

use std::fmt;

use evener_arbiter::{Arbiter, Costs, Mean, Permit, Work};
use evener_core::driver::Clock as _;
use evener_core::estimate::{Learned, OnModule};
use evener_core::{Class, Nanos};

use crate::SystemClock;

pub(super) use evener_arbiter::Refused;

/// A module by the name under which all processes know it.
#[derive(Debug)]
pub struct SharedModule(evener_arbiter::Module);

/// What other processes know of a class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// `c`, core time of a request on the core's own path.
    pub(super) c: Learned,
    /// `d` and `h`.
    pub(super) on_module: OnModule,
}

/// What became of a request that asked for its turn.
pub(super) struct Asked {
    /// The right to go there, or why the core is to do it.
    pub(super) granted: Result<Admission, Refused>,
    /// How long that took, where it was not at once.
    pub(super) waited: Nanos,
}

/// The right to have a request at the module; nothing where there is no arbiter.
#[must_use = "a permit that is dropped is given back"]
pub struct Admission(Option<Permit>);

impl Admission {
    /// Counts what was done with it, for people to look at (`evener top`).
    pub fn count(&self, requests: u64, bytes: u64) {
        if let Some(permit) = &self.0 {
            permit.count(Work { requests, bytes });
        }
    }
}

impl SharedModule {
    /// The module that all processes call `name` and that takes so many requests at a time.
    #[must_use]
    pub fn new(arbiter: &Arbiter, name: &str, capacity: u32) -> Self {
        Self(arbiter.module(name, capacity))
    }

    /// Attaches the arbiter where this process has not done so yet, and makes the module known there.
    pub fn prepare(&self) {
        _ = self.0.expected_start();
    }

    /// Time until a request would begin there, as all processes predict.
    pub(super) fn expected_start(&self) -> Nanos {
        #[cfg(test)]
        QUESTIONS.set(QUESTIONS.get() + 1);
        self.0.expected_start().unwrap_or_default()
    }

    /// Gets the right to have a request there that is predicted to take so long, in the order of asking; waits at most so long.
    pub(super) fn acquire(&self, predicted: Nanos, longest_wait: Nanos) -> Asked {
        match self.0.try_acquire(predicted) {
            Err(Refused::Busy) => {}
            granted => return Asked { granted: admitted(granted), waited: Nanos::ZERO },
        }
        let began = SystemClock.now();
        let granted = admitted(self.0.acquire(predicted, longest_wait));
        Asked { granted, waited: SystemClock.now() - began }
    }

    /// The same for a request of which nothing is known.
    ///
    /// # Errors
    ///
    /// Why it is to be done elsewhere.
    pub fn acquire_unjudged(&self, longest_wait: Nanos) -> Result<Admission, Refused> {
        self.acquire(Nanos::ZERO, longest_wait).granted
    }

    /// What others know of a class at `now`, worth so many samples at most.
    pub(super) fn known(&self, class: Class, samples_max: u32, now: Nanos) -> Option<Known> {
        let Costs { c, d, h, bytes, samples } = self.0.costs(class)?;
        // Sizes that are none of the class were not written by a process that knows it.
        let bytes = usize::try_from(bytes).ok().filter(|bytes| class.bytes().contains(bytes))?;
        let learned = |mean: Mean| {
            let (ns, bytes) = (f64::from(mean.ns), bytes as f64);
            Learned::kept(ns, bytes, samples.min(samples_max)).straying(f64::from(mean.deviation_ns))
        };
        (c.ns > 0).then(|| Known { c: learned(c), on_module: OnModule::kept(learned(d), learned(h), now) })
    }

    /// Tells others what is known of a class.
    pub(super) fn publish(&self, class: Class, c: &Learned, on_module: &OnModule) {
        let mean =
            |learned: &Learned| Mean { ns: whole(learned.ns), deviation_ns: whole(learned.deviation_ns()) };
        let OnModule { d, h, .. } = on_module;
        let (bytes, samples) = (whole(d.bytes), d.samples.min(h.samples).min(c.samples));
        self.0.publish(class, &Costs { c: mean(c), d: mean(d), h: mean(h), bytes, samples });
    }
}

fn admitted(granted: Result<Permit, Refused>) -> Result<Admission, Refused> {
    match granted {
        // This process is not one of those that share it.
        Err(Refused::NoPlace) => Ok(Admission(None)),
        granted => granted.map(|permit| Admission(Some(permit))),
    }
}

/// `as` saturates: what is below zero, or no number, is nothing.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as the text says")]
fn whole(value: f64) -> u32 {
    value.round() as u32
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Admission")
    }
}

#[cfg(test)]
thread_local! {
    /// How often this thread has asked when a request would begin.
    pub(super) static QUESTIONS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}
