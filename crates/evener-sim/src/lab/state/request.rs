//! What travels on a module's path: a worker's call of the driver, the request to the kernel in it, and where both go.

use evener_core::Nanos;

use crate::engine::{EventId, ModuleId, ThreadId};
use crate::rounding::round;

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

/// Core time before the module's work and behind it.
#[derive(Clone, Copy)]
pub(crate) struct PathTime {
    pub(crate) front: Nanos,
    pub(crate) back: Nanos,
}

impl PathTime {
    /// So much of it in front.
    pub(crate) fn of(whole: Nanos, front: f64) -> Self {
        let front = part(whole, front);
        Self { front, back: whole - front }
    }

    pub(crate) fn whole(self) -> Nanos {
        self.front + self.back
    }
}

/// What the kernel has to do for one job.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) path: PathTime,
    /// The module's work.
    pub(crate) work: Nanos,
    /// Set when it is done.
    pub(crate) done: EventId,
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

/// What a runner has to do for one job, and what the kernel has.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    /// On the way into the kernel, and back.
    pub(crate) path: PathTime,
    /// The kernel's part.
    pub(crate) request: Request,
    /// Its place among those that may be outstanding.
    pub(crate) place: usize,
}

pub(crate) fn part(whole: Nanos, share: f64) -> Nanos {
    Nanos(round(whole.as_secs_f64() * 1e9 * share))
}
