//! What the threads of a run share: the backlog, the state of the workers, and what waits on modules' paths.

mod backlog;
mod driver_queue;
mod request;
mod run_state;

pub(super) use backlog::JobId;
pub(super) use driver_queue::DriverQueue;
pub(super) use request::{Call, KeyState, ModulePort, PathTime, Request, RequestSlot, part};
pub(super) use run_state::{Answer, RunState, Took, pause};
