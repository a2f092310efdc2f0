//! Core time of the calling thread: measuring it, using it up, and sleeping without wasting it.

use std::hint::spin_loop;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use evener_core::Nanos;
use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};

/// Sees to it that work costs the core time that it is meant to cost, on average within some 100 ns.
#[derive(Debug)]
pub struct Meter {
    /// What one look at the clock takes; a span between two looks misses as much.
    look: Nanos,
    /// Used beyond what was meant, to be taken off what comes next.
    ahead: Nanos,
}

impl Meter {
    /// A meter that has found out what a look at the clock takes.
    #[must_use]
    pub fn new() -> Self {
        let looks = (0..LOOKS).map(|_| {
            let began = thread_time();
            thread_time() - began
        });
        Self { look: looks.min().unwrap_or_default(), ahead: Nanos::ZERO }
    }

    /// Starts a span of work, on the thread that ends it.
    #[must_use]
    pub fn begin(&self) -> Nanos {
        thread_time() - self.look
    }

    /// Keeps the core busy until the work that began at `began` has had `cost`. `false`: it had more already,
    /// which what follows does not make up for, because the machine is as slow as that.
    pub fn use_up(&mut self, began: Nanos, cost: Nanos) -> bool {
        if thread_time() - began > cost {
            return false;
        }
        let used = burn_until(began + (cost - self.ahead)) - began;
        self.ahead = (self.ahead + used) - cost;
        true
    }

    /// Lets what follows make up for the work that began at `began`.
    pub fn owe(&mut self, began: Nanos) {
        self.ahead += thread_time() - began;
    }
}

impl Default for Meter {
    fn default() -> Self {
        Self::new()
    }
}

/// Lets the calling thread wake up at its time: Linux adds 50 us for the comfort of its timers, which is
/// more than many a module takes. Without effect where the system forbids it.
pub fn wake_on_time() {
    // A refusal costs precision and nothing else.
    set_current_timer_slack(NonZeroU64::new(1)).ok();
}

/// Core time that the calling thread has used. Takes some 600 ns where it takes a system call.
fn thread_time() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let whole = |part: i64| u64::try_from(part).unwrap_or(0);
    Nanos(whole(time.tv_sec) * 1_000_000_000 + whole(time.tv_nsec))
}

/// Keeps the core busy until the calling thread has used `goal`, and returns what it has used then.
fn burn_until(goal: Nanos) -> Nanos {
    loop {
        let used = thread_time();
        if used >= goal {
            return used;
        }
        // A thread uses no more core time than passes, so the clock that is read in 30 ns does first.
        let (start, left) = (Instant::now(), Duration::from(goal - used));
        while start.elapsed() < left {
            spin_loop();
        }
    }
}

/// Enough that one of them is not interrupted. Assumed, not measured: 8, because they take microseconds together and a timer interrupts every
/// few milliseconds.
const LOOKS: usize = 8;
