//! Paper 002, (4): a monitor watches both threads all the time and hands the next file to the one that has
//! finished. It burns a core's share for that.

use super::{Dispatch, Plan, Take};

/// One job at a time from the hand of the monitor.
pub(super) const fn plan() -> Plan {
    Plan { dispatch: Dispatch::Monitor, cpu: Take::ONE, module: Take::ONE }
}
