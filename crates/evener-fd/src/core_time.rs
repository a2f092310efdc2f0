//! Core time: what a thread, or all threads of the process, have computed.
//!
//! Clocks of core time are system calls, and a program may have a filter that refuses them at any time. Then the clock of the wall stands in,
//! which is none: as if the core had been had all the time since that was refused first.
//!
//! Nothing is kept of a thread: in a library its variables are memory of the heap, which a child that is forked would never give back.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::time::{ClockId, DynamicClockId, Timespec, clock_gettime, clock_gettime_dynamic};

/// Core time of the calling thread, in nanoseconds. Where it is refused it begins anew, at nothing.
#[must_use]
pub fn of_thread() -> u64 {
    static REFUSED: AtomicU64 = AtomicU64::new(0);
    read(ClockId::ThreadCPUTime).unwrap_or_else(|| since(&REFUSED))
}

/// Core time of all threads of this process, in nanoseconds. Where it is refused it goes on from what was read last.
#[must_use]
pub fn of_process() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    static REFUSED: AtomicU64 = AtomicU64::new(0);
    if let Some(time) = read(ClockId::ProcessCPUTime) {
        LAST.fetch_max(time, Relaxed);
        return time;
    }
    LAST.load(Relaxed) + since(&REFUSED)
}

fn read(clock: ClockId) -> Option<u64> {
    clock_gettime_dynamic(DynamicClockId::Known(clock)).ok().map(nanos)
}

/// Time of the wall since `first`, which is now where it was not set. libc reads it without a system call, where the kernel has a page for it.
fn since(first: &AtomicU64) -> u64 {
    let now = nanos(clock_gettime(ClockId::Monotonic)).max(1);
    let first = first.compare_exchange(0, now, Relaxed, Relaxed).unwrap_or_else(|first| first);
    if first == 0 { 0 } else { now.saturating_sub(first) }
}

fn nanos(time: Timespec) -> u64 {
    let whole = |part: i64| u64::try_from(part).unwrap_or(0);
    whole(time.tv_sec) * 1_000_000_000 + whole(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn what_stands_in_for_a_clock_that_is_refused_begins_at_nothing_and_goes_on() {
        let first = AtomicU64::new(0);
        assert_eq!(since(&first), 0, "no time is made up for what came before");
        thread::sleep(Duration::from_millis(2));
        let then = since(&first);
        assert!((2_000_000..2_000_000_000_000).contains(&then), "{then}");
        assert!(since(&first) >= then);
    }

    #[test]
    fn what_a_thread_computes_is_core_time_of_it_and_of_its_process() {
        let (thread, process) = (of_thread(), of_process());
        while of_thread() - thread < 3_000_000 {}
        assert!(of_process() - process >= 3_000_000);
    }
}
