//! Core time of a module's path, by the machine's idle time: what of it is missing while the module works.

use std::thread;
use std::time::Duration;

use evener_core::Nanos;
use evener_core::driver::Clock;

use super::{CpuLoss, OTHERS_MAX, REST};

/// By the machine's idle time, which Linux counts in `/proc/stat`: what of it is missing.
#[derive(Clone, Copy, Debug)]
pub struct IdleTime {
    /// Core time that other programs use, per time that passes.
    others: f64,
}

impl IdleTime {
    /// Measures, asleep, what other programs use; `None` where that is much, or the system does not say.
    #[must_use]
    pub fn new(clock: &dyn Clock) -> Option<Self> {
        let rest = || thread::sleep(Duration::from(REST));
        let (core, wall) = Self::missing(clock, rest)?;
        let others = core / wall;
        (others <= OTHERS_MAX).then_some(Self { others })
    }

    /// Core time that was not idle while something was done, and the time that passed, in seconds.
    fn missing(clock: &dyn Clock, work: impl FnOnce()) -> Option<(f64, f64)> {
        let (start, (idle, _)) = (clock.now(), idle_time()?);
        work();
        let ((now_idle, cores), wall) = (idle_time()?, clock.now() - start);
        let core = Nanos(wall.0 * u64::from(cores)) - (now_idle - idle);
        Some((core.as_secs_f64(), wall.as_secs_f64().max(1e-9)))
    }
}

impl CpuLoss for IdleTime {
    fn during(&mut self, clock: &dyn Clock, burst: &mut dyn FnMut()) -> Option<Nanos> {
        let (core, wall) = Self::missing(clock, burst)?;
        Some(Duration::from_secs_f64((core - self.others * wall).max(0.0)).into())
    }
}

/// Time that all cores together were idle since some moment, and how many they are; `None` where the system does not say.
#[must_use]
pub fn idle_time() -> Option<(Nanos, u32)> {
    idle(&std::fs::read_to_string("/proc/stat").ok()?, rustix::param::clock_ticks_per_second())
}

/// Idle time, waiting for disks and what a hypervisor took included, none of which a module's path used.
pub(super) fn idle(stat: &str, ticks_per_second: u64) -> Option<(Nanos, u32)> {
    let mut lines = stat.lines();
    let all: Vec<u64> =
        lines.next()?.strip_prefix("cpu ")?.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let ticks = all.get(3)? + all.get(4)? + all.get(7).unwrap_or(&0);
    let cores = lines.take_while(|line| line.starts_with("cpu")).count();
    let tick_ns = 1_000_000_000 / ticks_per_second.max(1);
    Some((Nanos(ticks * tick_ns), u32::try_from(cores).ok()?))
}
