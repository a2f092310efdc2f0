//! What travels on a module's path: a worker's call of the driver, the request to the kernel in it, and where both go.

use evener_core::Nanos;

use crate::engine::{EventId, ModuleId, ThreadId};

/// Where a module worker hands its requests in.
#[derive(Clone, Copy)]
pub(super) struct Desk {
    pub(super) module: ModuleId,
    pub(super) kernel: Option<ThreadId>,
    /// Wakes the kernel's thread where there is one.
    pub(super) bell: EventId,
}

/// One of the requests that may be outstanding.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) index: usize,
    /// Set when its request is back, where no thread of the driver has it; and whether it failed.
    pub(super) done: EventId,
}

/// What the kernel has to do for one job.
#[derive(Clone, Copy)]
pub(super) struct Request {
    /// Core time before the module's work.
    pub(super) front: Nanos,
    /// The module's work.
    pub(super) work: Nanos,
    /// Core time behind it.
    pub(super) back: Nanos,
    /// Whom to tell.
    pub(super) done: EventId,
}

/// What a runner has to do for one job, and what the kernel has.
#[derive(Clone, Copy)]
pub(super) struct Call {
    /// Core time on the way into the kernel.
    pub(super) front: Nanos,
    /// Core time on the way back.
    pub(super) back: Nanos,
    /// The kernel's part.
    pub(super) request: Request,
    /// Its place among those that may be outstanding.
    pub(super) place: usize,
}

/// The key that a module's first request opens.
#[derive(Clone, Default)]
pub(super) enum Key {
    #[default]
    Unknown,
    /// One thread opens it; these wait.
    Opening(Vec<EventId>),
    Open,
}
