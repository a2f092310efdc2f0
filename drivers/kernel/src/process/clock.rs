//! The clock of the calling thread.

use evener_core::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// Core time of the calling thread.
pub(crate) fn thread_time() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let whole = |part: i64| u64::try_from(part).unwrap_or(0);
    Nanos(whole(time.tv_sec) * 1_000_000_000 + whole(time.tv_nsec))
}
