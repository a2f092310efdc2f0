//! The clock of the calling thread.

use evener_core::Nanos;
use evener_fd::core_time;

/// Core time of the calling thread.
pub(crate) fn thread_time() -> Nanos {
    Nanos(core_time::of_thread())
}
