//! Core time of the calling thread: reading it, using it up, and sleeping without wasting it.

use std::hint::spin_loop;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use evener_core::Nanos;
use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};

/// Core time that the calling thread has used so far. Takes some 600 ns where the system has to be asked.
pub(crate) fn thread_time() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let whole = |part: i64| u64::try_from(part).unwrap_or(0);
    Nanos(whole(time.tv_sec) * 1_000_000_000 + whole(time.tv_nsec))
}

/// Keeps the core busy until the calling thread has used `goal`. `false`: it had already used more.
pub(crate) fn burn_until(goal: Nanos) -> bool {
    let mut had_time = false;
    loop {
        let left = goal - thread_time();
        if left == Nanos::ZERO {
            return had_time;
        }
        had_time = true;
        // A thread uses no more core time than passes, so the clock that is read in 30 ns does first.
        let (start, left) = (Instant::now(), Duration::from(left));
        while start.elapsed() < left {
            spin_loop();
        }
    }
}

/// Lets the calling thread wake up when it asked to: Linux adds 50 us for the comfort of its timers, which is
/// more than many a module takes. Without effect where the system forbids it.
pub(crate) fn wake_on_time() {
    // A refusal costs precision and nothing else.
    set_current_timer_slack(NonZeroU64::new(1)).ok();
}
