//! What travels on a module's path: a worker's call of the driver, the request to the kernel in it, and where both go.

use evener_core::Nanos;

use crate::engine::{EventId, ModuleId, ThreadId};

/// Where a module worker submits its requests.
#[derive(Clone, Copy)]
pub(crate) struct ModulePort {
    pub(crate) module: ModuleId,
    pub(crate) kernel: Option<ThreadId>,
    /// Wakes the kernel's thread where there is one.
    pub(crate) doorbell: EventId,
}

/// One of the requests that may be outstanding.
#[derive(Clone, Copy)]
pub(crate) struct RequestSlot {
    pub(crate) index: usize,
    /// Set when its request is back, where no thread of the driver has it; and whether it failed.
    pub(crate) done: EventId,
}

/// What the kernel has to do for one job.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    /// Core time before the module's work.
    pub(crate) front: Nanos,
    /// The module's work.
    pub(crate) work: Nanos,
    /// Core time behind it.
    pub(crate) back: Nanos,
    /// Set when it is done.
    pub(crate) done: EventId,
}

/// What a runner has to do for one job, and what the kernel has.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    /// Core time on the way into the kernel.
    pub(crate) front: Nanos,
    /// Core time on the way back.
    pub(crate) back: Nanos,
    /// The kernel's part.
    pub(crate) request: Request,
    /// Its place among those that may be outstanding.
    pub(crate) place: usize,
}

/// The key that a module's first request opens.
#[derive(Clone, Default)]
pub(crate) enum KeyState {
    #[default]
    Unknown,
    /// One thread opens it; these wait.
    Opening(Vec<EventId>),
    Open,
}
