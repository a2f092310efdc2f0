//! One request from its beginning to its end: where it goes, what it takes, and what of that is its own.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

use evener_core::driver::Clock as _;
use evener_core::guard::RequestSize;
use evener_core::{Class, Nanos};

use super::super::shared_module::{Admission, Asked, Refused, SharedModule};
use super::booking::Request;
use super::choice::Chosen;
use super::unsampled_run::UnsampledRun;
use super::{Concurrency, Policy, Query};
use crate::SystemClock;

/// A request that was begun.
pub struct Measurement {
    pub(super) policy: &'static Policy,
    pub(super) size: RequestSize,
    pub(super) class: Class,
    pub(super) concurrency: Concurrency,
    /// `None` where it is not measured.
    pub(super) begun: Option<Nanos>,
    /// What it follows, where that was not measured.
    pub(super) unsampled_run: Option<&'static UnsampledRun>,
    /// Whether those that followed the last one have locked its class.
    pub(super) has_locked: bool,
    /// Whether the policy keeps it, and some after it, from modules.
    pub(super) is_kept: bool,
    pub(super) module: Option<usize>,
    pub(super) expected: Nanos,
    /// What a core takes for it: no longer is worth waiting for its turn at the module.
    pub(super) longest_wait: Nanos,
    /// The module, where other processes have it, too.
    pub(super) shared: Option<&'static SharedModule>,
    /// Time that it waited for its turn there.
    pub(super) waited: Cell<Nanos>,
    /// Why it had no turn there, and was done by the core.
    pub(super) refused: Cell<Option<Refused>>,
    /// Core time up to the last pause.
    pub(super) core: Cell<Nanos>,
    /// The thread's clock at the beginning or after the last pause, where core time is taken.
    pub(super) core_mark: Cell<Option<Nanos>>,
    /// Time that went to other things than the request.
    pub(super) besides: Cell<Nanos>,
}

impl Measurement {
    pub(super) fn unsampled(policy: &'static Policy, query: &Query<'_>) -> Self {
        Self {
            policy,
            size: query.size,
            class: query.class,
            concurrency: query.concurrency,
            begun: None,
            unsampled_run: None,
            has_locked: false,
            is_kept: false,
            module: None,
            expected: Nanos::ZERO,
            longest_wait: Nanos::ZERO,
            shared: None,
            waited: Cell::new(Nanos::ZERO),
            refused: Cell::new(None),
            core: Cell::new(Nanos::ZERO),
            core_mark: Cell::new(None),
            besides: Cell::new(Nanos::ZERO),
        }
    }

    /// One that goes to a module.
    pub(super) fn going(policy: &'static Policy, query: &Query<'_>, chosen: Chosen) -> Self {
        let Chosen { module, expected, on_core: longest_wait } = chosen;
        let (module, shared) = (Some(module), query.shared(module));
        Self { module, expected, longest_wait, shared, ..Self::unsampled(policy, query) }
    }

    /// Whether it is to stay on the direct path.
    #[must_use]
    pub const fn stays(&self) -> bool {
        self.module.is_none()
    }

    /// The request begins now: what it took to ask about it is no part of it. Of one that follows another, for which no question was asked, nothing
    /// is left out.
    pub fn begins(&mut self) {
        if self.begun.is_none() || self.unsampled_run.is_some() || cfg!(mutant = "asking_counts") {
            return;
        }
        if self.is_timed() {
            self.core_mark.set(Some(SystemClock.thread_time()));
        }
        self.begun = Some(SystemClock.now());
    }

    /// Whether its core time is taken.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.core_mark.get().is_some()
    }

    /// The module that is to do it.
    #[must_use]
    pub const fn module(&self) -> Option<usize> {
        self.module
    }

    /// Time that the module takes for it as far as that is known, requests before it not counted; else nothing.
    #[must_use]
    pub const fn expected(&self) -> Nanos {
        self.expected
    }

    /// Gets the right to go to its module now, in the order in which all processes ask; without an arbiter at once.
    ///
    /// # Errors
    ///
    /// Why the core is to do it: others are before it for longer than the core takes.
    pub fn acquire(&self, shared: &SharedModule) -> Result<Admission, Refused> {
        // A thread with other requests does not sleep for one of them.
        let longest_wait =
            if self.concurrency == Concurrency::SameThread { Nanos::ZERO } else { self.longest_wait };
        let Asked { granted, waited } = shared.acquire(self.expected, longest_wait);
        self.waited.set(self.waited.get() + waited);
        self.refused.set(granted.as_ref().err().copied());
        granted
    }

    /// Runs `rest`, in which the thread does other things and after which the request may be another thread's.
    pub fn while_suspended<T>(&self, rest: impl FnOnce() -> T) -> T {
        let Some(mark) = self.core_mark.get() else { return rest() };
        self.core.set(self.core.get() + (SystemClock.thread_time() - mark));
        let made = rest();
        self.core_mark.set(Some(SystemClock.thread_time()));
        made
    }

    /// Runs `work`, which is no part of the request: neither its time nor its core time counts.
    pub fn excluding<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.begun.is_none() {
            return work();
        }
        let began = SystemClock.now();
        let made = self.while_suspended(work);
        self.besides.set(self.besides.get() + (SystemClock.now() - began));
        made
    }

    /// Learns what it took, `elsewhere` being core time of the module's path on other threads than the caller's, and returns
    /// whether its class was locked for that. One that was not done as it should is dropped instead.
    pub fn end(self, elsewhere: impl FnOnce() -> Nanos) -> bool {
        // Before what takes longer: the clocks of threads are asked by system calls.
        let now = SystemClock.now();
        let core = self.core_mark.get().map(|mark| self.core.get() + (SystemClock.thread_time() - mark));
        let elsewhere = if core.is_some() { elsewhere() } else { Nanos::ZERO };
        self.end_at(core, elsewhere, now)
    }

    pub(super) fn booked(&self) -> Request {
        Request {
            size: self.size,
            class: self.class,
            concurrency: self.concurrency,
            shared: self.shared,
            waited: self.waited.get(),
            is_refused: self.refused.get().is_some(),
        }
    }

    pub(super) fn end_at(self, core: Option<Nanos>, elsewhere: Nanos, now: Nanos) -> bool {
        let Some(begun) = self.begun else { return false };
        let wall = now - begun - self.besides.get();
        let refused = self.refused.get();
        if let Some(unsampled_run) = self.unsampled_run {
            match refused {
                // The next one is asked about.
                Some(_) => unsampled_run.end(),
                None => unsampled_run.took(wall, self.size.bytes),
            }
            return false;
        }
        let Ok(mut learned) = self.policy.learned.try_lock() else { return self.has_locked };
        let request = self.booked();
        match (self.module, core) {
            (None, Some(core)) => {
                learned.stayed(&request, wall, core);
                if self.is_kept {
                    let unsampled = learned.next_unsampled(&request, core);
                    self.policy.unsampled[self.class.index()].store(unsampled, Relaxed);
                }
            }
            (None, None) => {}
            // The core did it at once: neither way is known better for it.
            (Some(_), _) if refused.is_some_and(|why| why != Refused::TimedOut) => {}
            (Some(module), core) => {
                let core = core.map(|core| core + elsewhere);
                let has_locked = learned.went(&request, module, wall, core, now);
                if let Some(unsampled_run) = self
                    .policy
                    .unsampled_runs
                    .of(self.class)
                    .filter(|_| has_locked && !cfg!(mutant = "streaks_outlive_locks"))
                {
                    // None of those that were to follow it.
                    unsampled_run.end();
                }
                return has_locked || self.has_locked;
            }
        }
        self.has_locked
    }
}
