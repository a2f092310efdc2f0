//! The regret guard of a process over requests that may go to a module: judged by what they took here, and by nothing else.
//!
//! The way of one request: [`Regret::begin`] (does it stay on the direct path?) -> it is done -> [`Turn::end`]: what it took is
//! learned. The rules are [`evener_core::guard`]'s; splitting has the same ([`crate::split`]), with what it knows of helpers.
//! Only requests that another way wants come here: small ones see no clock.

use std::sync::{Mutex, OnceLock};

use evener_core::Nanos;
use evener_core::driver::Clock as _;
use evener_core::guard::{BySize, Load};
use evener_core::statistics::Kind;
use evener_ring::{Mapping, PerProcess};

use crate::SystemClock;

/// Kinds of work that are told apart: ciphers, by direction.
pub const KINDS: usize = Kind::CIPHERS * 2;

/// What this process has learned about its modules.
pub struct Regret {
    guard: Mutex<BySize>,
}

/// The guard of this process; a forked child has one of its own. `None` where the kernel cannot tell a forked child from its
/// parent, and for the moment in which another thread makes it.
pub fn regret() -> Option<&'static Regret> {
    static REGRET: OnceLock<Option<PerProcess<Regret, Mapping>>> = OnceLock::new();
    let place = REGRET.get_or_init(|| Mapping::wiped_by_fork(1).ok().map(PerProcess::new));
    place.as_ref()?.get_or_make(|| Some(Regret { guard: Mutex::new(BySize::new(KINDS)) }))
}

impl Regret {
    /// Begins a request that a module wants.
    ///
    /// # Panics
    ///
    /// Where the load's kind is not below [`KINDS`].
    pub fn begin(&'static self, load: Load) -> Turn {
        let begun = SystemClock.now();
        // Nobody waits for what another thread is looking at: the direct path is always right.
        let stays = self.guard.try_lock().map_or(true, |mut guard| guard.stays(load, begun));
        Turn { regret: self, load, begun, stays }
    }
}

/// A request that was begun.
pub struct Turn {
    regret: &'static Regret,
    load: Load,
    begun: Nanos,
    stays: bool,
}

impl Turn {
    /// Whether it is to stay on the direct path.
    #[must_use]
    pub fn stays(&self) -> bool {
        self.stays
    }

    /// Learns what it took, and returns whether its class was locked for that. One that was not done as it should is dropped
    /// instead.
    pub fn end(self) -> bool {
        let now = SystemClock.now();
        let Ok(mut guard) = self.regret.guard.try_lock() else { return false };
        if self.stays {
            guard.stayed(self.load, now - self.begun);
            return false;
        }
        guard.went(self.load, now - self.begun, now)
    }
}
