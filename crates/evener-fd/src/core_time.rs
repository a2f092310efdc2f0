//! Core time: what a thread, or all threads of the process, have computed.
//!
//! Clocks of core time are system calls, and a program may have a filter that refuses them at any time. Then the clock of the wall stands in,
//! which is none: from what was read last it goes on as if the core had been had all the time.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::time::{ClockId, DynamicClockId, Timespec, clock_gettime, clock_gettime_dynamic};

/// Core time of the calling thread, in nanoseconds.
#[must_use]
pub fn of_thread() -> u64 {
    thread_local! {
        static LAST: Cell<Last> = const { Cell::new(Last::NONE) };
    }
    // In a thread that is at its end nothing is kept.
    let last = LAST.try_with(Cell::get).unwrap_or(Last::NONE);
    let (time, last) = last.next(read(ClockId::ThreadCPUTime));
    LAST.try_with(|kept| kept.set(last)).ok();
    time
}

/// Core time of all threads of this process, in nanoseconds.
#[must_use]
pub fn of_process() -> u64 {
    // No lock: a child that was forked at any moment, and a handler of a signal, read on.
    static LAST: AtomicU64 = AtomicU64::new(0);
    static REFUSED: AtomicU64 = AtomicU64::new(0);
    if let Some(time) = read(ClockId::ProcessCPUTime) {
        LAST.fetch_max(time, Relaxed);
        return time;
    }
    let now = wall();
    let since = match REFUSED.compare_exchange(0, now, Relaxed, Relaxed) {
        Ok(_) => now,
        Err(since) => since,
    };
    LAST.load(Relaxed) + now.saturating_sub(since)
}

fn read(clock: ClockId) -> Option<u64> {
    clock_gettime_dynamic(DynamicClockId::Known(clock)).ok().map(nanos)
}

/// The clock of the wall. libc reads it without a system call, where the kernel has a page for it.
fn wall() -> u64 {
    nanos(clock_gettime(ClockId::Monotonic))
}

fn nanos(time: Timespec) -> u64 {
    let whole = |part: i64| u64::try_from(part).unwrap_or(0);
    whole(time.tv_sec) * 1_000_000_000 + whole(time.tv_nsec)
}

/// What was read last, and what the clock of the wall said when reading was refused first.
#[derive(Clone, Copy)]
struct Last {
    time: u64,
    refused: Option<u64>,
}

impl Last {
    const NONE: Self = Self { time: 0, refused: None };

    fn next(self, read: Option<u64>) -> (u64, Self) {
        let Some(time) = read else {
            let now = wall();
            let since = self.refused.unwrap_or(now);
            return (self.time + now.saturating_sub(since), Self { refused: Some(since), ..self });
        };
        (time, Self { time, refused: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn where_a_clock_is_refused_time_goes_on_from_what_was_read_last() {
        let (read, last) = Last::NONE.next(Some(5_000));
        assert_eq!(read, 5_000);
        let (first, last) = last.next(None);
        assert_eq!(first, 5_000, "no time is made up for what came before");
        thread::sleep(Duration::from_millis(2));
        let (then, last) = last.next(None);
        assert!((2_000_000..2_000_000_000_000).contains(&(then - first)), "{then}");
        assert_eq!(last.next(Some(6_000)).0, 6_000);
    }

    #[test]
    fn what_a_thread_computes_is_core_time_of_it_and_of_its_process() {
        let (thread, process) = (of_thread(), of_process());
        while of_thread() - thread < 3_000_000 {}
        assert!(of_process() - process >= 3_000_000);
    }
}
