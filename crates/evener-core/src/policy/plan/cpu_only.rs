//! Paper 002, (1): the CPU thread alone.

use super::{Dispatch, Plan, Snapshot, Take, cpu_take};

/// Every job on the CPU.
pub(super) fn plan(snapshot: &Snapshot) -> Plan {
    Plan { dispatch: Dispatch::SharedQueue, cpu: cpu_take(snapshot), module: Take::NOTHING }
}
