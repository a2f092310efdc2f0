//! A claim: which queue a worker may take jobs from, and how many.

use evener_core::Nanos;

/// How long a module's worker waits for the first control job of a class. Assumed, not measured:
/// 200 us, below what a core needs for a claim.
pub(super) const WAIT_FOR_CONTROL: Nanos = Nanos::from_micros(200);

/// What a worker may take.
pub(crate) struct Claim {
    pub(crate) queue: usize,
    pub(crate) jobs_max: u32,
    /// Time that one of them takes.
    pub(super) each: Nanos,
}

impl Claim {
    /// Time that one of its jobs is expected to take; nothing where that is not known.
    pub(crate) const fn each(&self) -> Nanos {
        self.each
    }
}
