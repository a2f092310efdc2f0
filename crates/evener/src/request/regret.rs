//! The regret guard of a process over requests that may leave the direct path: judged by what they took here, and by nothing
//! else.
//!
//! One request: [`Regret::begin`] (does it stay on the direct path?) -> it is done -> [`Measurement::end`]: what it took is
//! learned. The rules are [`evener_core::guard`]'s; splitting has the same ([`crate::split`]), with what it knows of helpers, and
//! threads that combine are judged together ([`crate::request::combine`]).
//! Only requests that another way wants come here: small ones see no clock.

use std::sync::Mutex;

use evener_core::combine::TOGETHER_MAX;
use evener_core::counts::Kind;
use evener_core::driver::Clock as _;
use evener_core::guard::{BySize, RequestSize};
use evener_core::{Direction, Nanos};
use evener_ring::{Inherited, ProcessValue};

use crate::SystemClock;

/// Where a request may go instead of the direct path; each way is judged apart, for each cipher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To a module, in this direction.
    Module(Direction),
    /// Inside an asynchronous job: encrypted side by side with those of other jobs.
    Job,
    /// The pieces of a pipeline: encrypted side by side.
    Pipeline,
}

const WAYS: usize = 4;

impl Way {
    const fn index(self) -> usize {
        match self {
            Self::Module(direction) => direction as usize,
            Self::Job => 2,
            Self::Pipeline => 3,
        }
    }

    /// How many requests one may pay for, whose way is a core's; `None` where it waits for a module.
    const fn pays_for(self) -> Option<u64> {
        match self {
            Self::Module(_) => None,
            Self::Job => Some(TOGETHER_MAX as u64),
            Self::Pipeline => Some(1),
        }
    }
}

/// What this process has learned about what left the direct path.
pub struct Regret {
    guard: Mutex<BySize>,
}

/// The guard of this process; a forked child has one of its own. `None` where the kernel cannot tell a forked child from its
/// parent, and for the moment in which another thread makes it.
pub fn regret() -> Option<&'static Regret> {
    REGRET.get_or_make(|| Some(Regret { guard: Mutex::new(BySize::new(Kind::CIPHERS * WAYS)) }))
}

/// Makes the guard's place. To be called before threads fork: a child whose parent's other thread was about it would wait for
/// that thread, which it has not.
pub fn prepare() {
    REGRET.prepare();
}

static REGRET: ProcessValue<Regret> = ProcessValue::new();

impl Inherited for Regret {
    fn is_whole(&mut self) -> bool {
        self.guard.try_lock().is_ok()
    }
}

impl Regret {
    /// Begins a request of so many bytes that may go this way.
    ///
    /// # Panics
    ///
    /// Where `cipher` is none of the first [`Kind::CIPHERS`].
    pub fn begin(&'static self, way: Way, cipher: Kind, bytes: usize) -> Measurement {
        assert!(cipher.index() < Kind::CIPHERS, "a cipher with a name");
        let size = RequestSize { kind: way.index() * Kind::CIPHERS + cipher.index(), bytes };
        let begun = SystemClock.now();
        // No thread waits for what another is looking at: the direct path is always right.
        let stays = self.guard.try_lock().map_or(true, |mut guard| guard.stays(size, begun));
        Measurement { regret: self, way, size, begun, stays }
    }
}

/// A request that was begun.
pub struct Measurement {
    regret: &'static Regret,
    way: Way,
    size: RequestSize,
    begun: Nanos,
    stays: bool,
}

impl Measurement {
    /// Whether it is to stay on the direct path.
    #[must_use]
    pub fn stays(&self) -> bool {
        self.stays
    }

    /// Learns what it took, and returns whether its class was locked for that. One that was not done as it should is dropped
    /// instead.
    pub fn end(self) -> bool {
        self.end_without(Nanos::ZERO)
    }

    /// As [`end`](Self::end), where its caller did something else for so long in between.
    pub fn end_without(self, away: Nanos) -> bool {
        let now = SystemClock.now();
        let took = now - self.begun - away;
        let Ok(mut guard) = self.regret.guard.try_lock() else { return false };
        if self.stays {
            guard.stayed(self.size, took);
            return false;
        }
        match self.way.pays_for() {
            Some(requests) => guard.went_on_core(self.size, requests, took, now),
            None => guard.went(self.size, took, now),
        }
    }
}
