//! What the guard saw and did, for reports.

use std::ops::AddAssign;

use crate::units::Nanos;

/// What the guard saw and did, for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Times that a class was locked.
    pub locks: u64,
    /// Jobs that a lock kept inline.
    pub kept_inline_jobs: u64,
    /// Jobs measured inline.
    pub control_jobs: u64,
    /// Jobs that were routed and ended.
    pub routed_jobs: u64,
    /// Sum over what cost more than inline, waiting of cores included.
    pub lost: Nanos,
    /// Sum over what cost less than inline.
    pub gained: Nanos,
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        self.locks += other.locks;
        self.kept_inline_jobs += other.kept_inline_jobs;
        self.control_jobs += other.control_jobs;
        self.routed_jobs += other.routed_jobs;
        self.lost += other.lost;
        self.gained += other.gained;
    }
}
