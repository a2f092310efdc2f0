//! Requests that follow one that went to a module without being asked about: asking takes longer than a tenth of what a short request
//! takes there. They are only timed, and what they took together is booked with the next one that is looked at.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use evener_core::{Class, Nanos};

use super::choice::Chosen;
use super::tuning::TUNING;

/// Classes between which there is no difference here; of such two only one has a run.
const PLACES: usize = 8;

/// Unsampled runs of a process.
#[derive(Debug, Default)]
pub(super) struct UnsampledRuns {
    places: [UnsampledRun; PLACES],
}

/// Requests of one class, one after the other.
// Relaxed throughout: counts, about. Two threads that take the same request away look once less, and who comes between two words of a
// new run takes the old one's module, which the queue of that module would refuse if it were out of service.
#[derive(Debug, Default)]
pub(super) struct UnsampledRun {
    /// The class's index and 1; 0 where there was none.
    class: AtomicU32,
    left: AtomicU32,
    module: AtomicU32,
    expected_ns: AtomicU64,
    on_core_ns: AtomicU64,
    /// Of those that are over and not booked yet.
    past: AtomicU32,
    past_ns: AtomicU64,
    past_bytes: AtomicU64,
}

/// What requests took together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RunStats {
    pub(super) requests: u32,
    pub(super) wall: Nanos,
    pub(super) bytes: u64,
}

impl UnsampledRuns {
    /// The run of a class, where it has one.
    pub(super) fn of(&self, class: Class) -> Option<&UnsampledRun> {
        let place = &self.places[class.index() % PLACES];
        (place.class.load(Relaxed) == name(class)).then_some(place)
    }

    /// Lets requests follow one that goes to a module, unless the place is another class's that has
    /// still to be booked.
    pub(super) fn begin(&self, class: Class, chosen: Chosen) {
        let Chosen { module, expected, on_core } = chosen;
        let place = &self.places[class.index() % PLACES];
        let is_free = place.class.load(Relaxed) == name(class) || place.past.load(Relaxed) == 0;
        let length = TUNING.run_requests_max.min(TUNING.run_time_max.0 / expected.0.max(1));
        let (Ok(module), Ok(length), true) = (u32::try_from(module), u32::try_from(length), is_free) else {
            return;
        };
        place.class.store(name(class), Relaxed);
        place.module.store(module, Relaxed);
        place.expected_ns.store(expected.0, Relaxed);
        place.on_core_ns.store(on_core.0, Relaxed);
        place.left.store(if cfg!(mutant = "no_streaks") { 0 } else { length }, Relaxed);
    }
}

impl UnsampledRun {
    /// Where the next request goes; `None` where it is to be looked at.
    pub(super) fn next(&self) -> Option<Chosen> {
        let left = self.left.load(Relaxed).checked_sub(1)?;
        self.left.store(left, Relaxed);
        let [expected, on_core] = [&self.expected_ns, &self.on_core_ns].map(|ns| Nanos(ns.load(Relaxed)));
        Some(Chosen { module: self.module.load(Relaxed) as usize, expected, on_core })
    }

    /// The next request is looked at, whatever was said before.
    pub(super) fn end(&self) {
        self.left.store(0, Relaxed);
    }

    /// A request is over.
    pub(super) fn took(&self, wall: Nanos, bytes: usize) {
        if wall.0 > self.expected_ns.load(Relaxed).saturating_mul(TUNING.run_surprise)
            && !cfg!(mutant = "streaks_go_on")
        {
            self.end();
        }
        self.past.fetch_add(1, Relaxed);
        self.past_ns.fetch_add(wall.0, Relaxed);
        self.past_bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// The module, and what those took there that were not booked yet.
    pub(super) fn take_stats(&self) -> (usize, RunStats) {
        let stats = RunStats {
            requests: self.past.swap(0, Relaxed),
            wall: Nanos(self.past_ns.swap(0, Relaxed)),
            bytes: self.past_bytes.swap(0, Relaxed),
        };
        (self.module.load(Relaxed) as usize, stats)
    }
}

fn name(class: Class) -> u32 {
    u32::try_from(class.index()).map_or(u32::MAX, |index| index + 1)
}
