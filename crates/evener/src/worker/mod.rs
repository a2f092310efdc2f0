//! The threads that run jobs: one for each core, one for each module, and the monitor of policy `polling`.

pub(crate) mod cpu_worker;
pub(crate) mod module_worker;
pub(crate) mod monitor;
mod recent_sessions;
mod verifier;
