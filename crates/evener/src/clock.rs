//! The machine's clocks.

use evener_core::Nanos;
use evener_core::driver::Clock;
use evener_fd::core_time;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// `CLOCK_MONOTONIC`, `CLOCK_THREAD_CPUTIME_ID` and `CLOCK_PROCESS_CPUTIME_ID`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl SystemClock {
    /// Core time of all threads of this process.
    #[must_use]
    pub fn process_time(self) -> Nanos {
        Nanos(core_time::of_process())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Nanos {
        nanos(clock_gettime(ClockId::Monotonic))
    }

    fn thread_time(&self) -> Nanos {
        Nanos(core_time::of_thread())
    }
}

fn nanos(time: Timespec) -> Nanos {
    let whole = |part: i64| u64::try_from(part).unwrap_or(0);
    Nanos(whole(time.tv_sec) * 1_000_000_000 + whole(time.tv_nsec))
}
