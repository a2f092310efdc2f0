//! Paper 002, (3): half of the jobs each, settled before the start. The result is the mean of the workers,
//! because the faster one ends first and watches.

use super::{CLAIM_JOBS_MAX, Dispatch, Plan, Take};

/// In turn, unweighted; a worker runs what it was dealt, a CPU worker as a burst.
pub(super) const fn plan() -> Plan {
    let dealt = Take { jobs_max: CLAIM_JOBS_MAX, jobs_min: 1, share: 1 };
    Plan { dispatch: Dispatch::RoundRobin, cpu: dealt, module: Take::ONE }
}
