//! Neighbours: what work does to other programs on the same cores.
//!
//! Steps of one look: [`beside`] starts a hog and a probe -> [`Neighbours::watch`] -> the hog computes as long as it wants and
//! is let, the probe sets alarms and sees how late it wakes -> [`NeighbourReport`].

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::{hint, mem, thread};

use evener::SystemClock;
use evener::core::driver::Clock as _;
use evener::overhead::idle_time;
use evener_core::Nanos;
use rustix::thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::Timespec;

use crate::medians::Quantiles;

/// Time in which the hog wants its part of a core. Assumed, not measured: ten times a scheduler's slice and more.
const PERIOD: Nanos = Nanos::from_millis(20);
/// Steps of the hog between two looks at its clock: 5 us on a current core, twenty times as much on an emulated one.
const UNIT_STEPS: u32 = 5_000;
/// Alarms are so far apart, evenly spread, so that they keep step with no timer.
const ALARM_MIN: Nanos = Nanos::from_millis(1);
const ALARM_MAX: Nanos = Nanos::from_millis(3);

/// Who is to be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NeighbourSpec {
    /// Part of a core that the hog wants, 0 to 100 per cent; there is none at 0.
    pub hog_percent: u8,
    /// Whether there is a probe.
    pub probe: bool,
}

/// Threads that want the cores, too.
#[derive(Debug, Default)]
pub struct Neighbours {
    /// Written by the hog.
    core_ns: AtomicU64,
    /// Written by the hog.
    units: AtomicU64,
    /// How late alarms of the present look were; written by the probe.
    late: Mutex<Vec<Nanos>>,
    is_watched: AtomicBool,
    is_over: AtomicBool,
}

/// What neighbours got while they were watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourReport {
    /// Time that passed.
    pub wall: Nanos,
    /// Time for which all cores of the machine together were not idle, in steps of 10 ms; `None` where the system does not tell.
    pub busy: Option<Nanos>,
    /// Core time of the hog.
    pub core: Nanos,
    /// Units of work that it did: where interrupts are charged to the thread that runs, fewer than its core time says.
    pub units: u64,
    /// How late the probe woke; `None` without one.
    pub late: Option<Quantiles>,
}

/// Does `work` beside the neighbours that are asked for.
pub fn beside<T>(spec: NeighbourSpec, work: impl FnOnce(&Neighbours) -> T) -> T {
    let neighbours = Neighbours::default();
    thread::scope(|scope| {
        let all = &neighbours;
        let _end = End(all);
        if spec.hog_percent > 0 {
            scope.spawn(move || all.hog(spec.hog_percent));
            while all.units.load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
        }
        if spec.probe {
            scope.spawn(move || all.probe());
        }
        work(all)
    })
}

/// Ends neighbours also where the work beside them panics.
struct End<'n>(&'n Neighbours);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

impl Neighbours {
    /// Does `work` and sees what neighbours got meanwhile.
    pub fn watch<T>(&self, work: impl FnOnce() -> T) -> (T, NeighbourReport) {
        self.is_watched.store(true, Ordering::Relaxed);
        let (start, idle) = (self.seen(), idle_time());
        let done = work();
        let (end, now_idle) = (self.seen(), idle_time());
        self.is_watched.store(false, Ordering::Relaxed);
        let late = mem::take(&mut *self.late.lock().unwrap_or_else(PoisonError::into_inner));
        let wall = end.0 - start.0;
        let busy = |((before, _), (now, cores)): ((Nanos, u32), (Nanos, u32))| {
            Nanos(wall.0 * u64::from(cores)) - (now - before)
        };
        let got = NeighbourReport {
            wall,
            busy: idle.zip(now_idle).map(busy),
            core: end.1 - start.1,
            units: end.2 - start.2,
            late: Quantiles::of(late),
        };
        (done, got)
    }

    /// Time, core time of the hog, units of the hog.
    fn seen(&self) -> (Nanos, Nanos, u64) {
        let core = Nanos(self.core_ns.load(Ordering::Relaxed));
        (SystemClock.now(), core, self.units.load(Ordering::Relaxed))
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Computes for its part of each period and sleeps for the rest; what it is not let do it does not make up for.
    fn hog(&self, percent: u8) {
        let quota = Nanos(PERIOD.0 * u64::from(percent) / 100);
        let mut due = SystemClock.now();
        while !self.is_over() {
            let began = SystemClock.thread_time();
            while SystemClock.thread_time() - began < quota && !self.is_over() {
                unit();
                self.units.fetch_add(1, Ordering::Relaxed);
                self.core_ns.store(SystemClock.thread_time().0, Ordering::Relaxed);
            }
            due += PERIOD;
            match SystemClock.now() {
                now if now < due => sleep_until(due),
                now => due = now,
            }
        }
    }

    fn probe(&self) {
        // Where it cannot be set, the kernel may wake us 50 us later than asked.
        set_current_timer_slack(Some(std::num::NonZeroU64::MIN)).unwrap_or_default();
        let mut dice = 0x9E37_79B9_7F4A_7C15_u64;
        while !self.is_over() {
            // Xorshift (Marsaglia, Journal of Statistical Software 8(14), 2003).
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            let due = SystemClock.now() + ALARM_MIN + Nanos(dice % (ALARM_MAX - ALARM_MIN).0);
            sleep_until(due);
            let late = SystemClock.now() - due;
            if self.is_watched.load(Ordering::Relaxed) {
                self.late.lock().unwrap_or_else(PoisonError::into_inner).push(late);
            }
        }
    }
}

/// A little work that no compiler leaves out.
fn unit() {
    let mut value = 1_u64;
    for step in 0..UNIT_STEPS {
        value = hint::black_box(value.wrapping_mul(0x5851_F42D_4C95_7F2D) ^ u64::from(step));
    }
}

/// Sleeps until the monotonic clock shows `due`; earlier where a signal comes.
fn sleep_until(due: Nanos) {
    let part = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    let time = Timespec { tv_sec: part(due.0 / 1_000_000_000), tv_nsec: part(due.0 % 1_000_000_000) };
    clock_nanosleep_absolute(ClockId::Monotonic, &time).unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn look(hog_percent: u8, probe: bool) -> NeighbourReport {
        beside(NeighbourSpec { hog_percent, probe }, |all| {
            all.watch(|| thread::sleep(Duration::from_millis(200))).1
        })
    }

    #[test]
    fn a_hog_takes_no_more_than_it_wants_and_works_for_what_it_takes() {
        let (quarter, whole) = (look(25, false), look(100, false));
        let periods = quarter.wall.0 / PERIOD.0 + 2;
        assert!(quarter.core.0 <= periods * PERIOD.0 / 4 * 11 / 10, "{quarter:?}");
        assert!(whole.core <= whole.wall && whole.core > Nanos::ZERO, "{whole:?}");
        assert!(quarter.units > 0 && whole.units > 0 && whole.late.is_none());
    }

    #[test]
    fn a_probe_without_a_hog_tells_how_late_it_woke() {
        let got = look(0, true);
        assert_eq!((got.core, got.units), (Nanos::ZERO, 0));
        let late = got.late.expect("alarms went off");
        assert!(late.median <= late.p99 && late.p99 <= late.max, "{late:?}");
    }

    #[test]
    fn the_machine_was_busy_for_at_least_what_the_hog_took() {
        let got = look(100, false);
        // The system tells in steps of 10 ms, at both ends.
        let Some(busy) = got.busy else { return };
        assert!(busy + Nanos::from_millis(40) > got.core, "{got:?}");
    }
}
