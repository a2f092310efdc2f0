//! Paper 002, (5), the proposal: a worker that is free takes the next from one queue.

use super::{Dispatch, Plan, Snapshot, Take, cpu_take};

/// The module takes one job at a time, a CPU worker one fill of its lanes or, without multi-buffer, one job:
/// the paper's own case.
pub(super) fn plan(snapshot: &Snapshot) -> Plan {
    let cpu = if snapshot.cpu_width > 1 { cpu_take(snapshot) } else { Take::ONE };
    Plan { dispatch: Dispatch::SharedQueue, cpu, module: Take::ONE }
}
