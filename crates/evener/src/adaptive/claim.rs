//! A claim: which queue a worker may take jobs from, and how many.

use evener_core::Nanos;

/// What a worker may take.
pub(crate) struct Claim {
    pub(crate) queue: usize,
    pub(crate) jobs_max: u32,
    /// Time that one of them takes.
    pub(super) each: Nanos,
}

/// There is nothing to claim now: the worker asks again when something changes, and after this time at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AskAgainWithin(pub(crate) Nanos);

impl Claim {
    /// Time that one of its jobs is expected to take; nothing where that is not known.
    pub(crate) const fn each(&self) -> Nanos {
        self.each
    }
}
