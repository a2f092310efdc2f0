//! Asks the system about this process: the core time of a thread, whether a fork lies behind us; and wipes memory.

pub(crate) mod clock;
pub(crate) mod served;
pub(crate) mod wipe;
