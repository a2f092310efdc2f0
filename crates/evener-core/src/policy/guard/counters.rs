//! What the guard saw and did, for reports.

use crate::units::{Nanos, sum_fields};

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

sum_fields!(Counters: locks, kept_inline_jobs, control_jobs, routed_jobs, lost, gained);
