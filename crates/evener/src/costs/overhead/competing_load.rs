//! Core time of a module's path on the only core, by a competing load: what of its work is missing while the module works.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use evener_core::Nanos;
use evener_core::driver::Clock;

use super::{CpuLoss, OTHERS_MAX, REST};

/// By work that the only core does beside the module's path, at the least priority: what of it is missing.
pub struct CompetingLoad<W> {
    work: W,
    /// Time of a piece of work where nothing is beside it, in seconds.
    each: f64,
}

impl<W: FnMut() + Send> CompetingLoad<W> {
    /// Takes the time of `work`, a piece of some ten microseconds or more; `None` where others use much of the core.
    #[must_use]
    pub fn new(mut work: W, clock: &dyn Clock) -> Option<Self> {
        // Memory is touched for the first time.
        work();
        let (start, core, mut pieces) = (clock.now(), clock.thread_time(), 0);
        while clock.now() - start < REST {
            work();
            pieces += 1;
        }
        let (wall, core) = (clock.now() - start, clock.thread_time() - core);
        let is_alone = core.as_secs_f64() >= (1.0 - OTHERS_MAX) * wall.as_secs_f64();
        is_alone.then(|| Self { work, each: wall.as_secs_f64() / count(pieces) })
    }
}

impl<W: FnMut() + Send> CpuLoss for CompetingLoad<W> {
    fn during(&mut self, clock: &dyn Clock, burst: &mut dyn FnMut()) -> Option<Nanos> {
        let (pieces, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        let work = &mut self.work;
        let start = clock.now();
        let wall = thread::scope(|scope| {
            scope.spawn(|| {
                // One that may not is in the path's way a little more.
                rustix::process::nice(19).ok();
                // Relaxed: a flag and a count, which nothing hangs on.
                while !is_over.load(Ordering::Relaxed) {
                    work();
                    pieces.fetch_add(1, Ordering::Relaxed);
                }
            });
            let _over = Over(&is_over);
            burst();
            clock.now() - start
        });
        let done = self.each * count(pieces.into_inner());
        Some(Duration::from_secs_f64((wall.as_secs_f64() - done).max(0.0)).into())
    }
}

/// Ends the work beside a burst also where the burst panics.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[expect(clippy::cast_precision_loss, reason = "requests of half a second")]
const fn count(requests: u64) -> f64 {
    requests as f64
}
