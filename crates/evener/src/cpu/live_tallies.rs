//! A copy of a set of drivers' tallies that other threads may read while it works.

use std::sync::{Mutex, PoisonError};

use evener_core::{Method, Tally};

/// Tallies by method.
type Tallies = [Tally; Method::ALL.len()];

/// The copy. Its drivers write it after each burst; a lock that no other thread wants costs less than a look at the clock.
#[derive(Default)]
pub(crate) struct LiveTallies(Mutex<Tallies>);

impl LiveTallies {
    /// The tallies as they were last published.
    pub(crate) fn get(&self) -> Tallies {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, tallies: &Tallies) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = *tallies;
    }
}
