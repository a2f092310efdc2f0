//! Paper 002, (2): the module thread alone.

use super::{Dispatch, Plan, Take};

/// Every job on the module.
pub(super) const fn plan() -> Plan {
    Plan { dispatch: Dispatch::SharedQueue, cpu: Take::NOTHING, module: Take::ONE }
}
