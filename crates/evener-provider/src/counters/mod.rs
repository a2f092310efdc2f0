//! What this process does, counted for others to read while it runs (`docs/reference/counters.md`).

pub(crate) mod thread_table;

use std::sync::OnceLock;

use evener::counts_file::{Statistics, ThreadDigests};
use evener_core::Direction;
use evener_core::counts::{Count, Kind, Row};

use crate::config::{Settings, StatisticsFile};
use crate::ffi;

/// One for all library contexts of the process. Nothing of a core is in it.
static STATISTICS: OnceLock<Option<Statistics>> = OnceLock::new();

/// The counts of this process, where they are wanted. Called when a provider is loaded, for later the environment may be
/// under change.
pub(crate) fn statistics(settings: &Settings) -> Option<&'static Statistics> {
    if settings.statistics == StatisticsFile::Off {
        return None;
    }
    let start = || {
        thread_table::prepare();
        Statistics::new(ffi::private_directories()).ok()
    };
    STATISTICS.get_or_init(start).as_ref()
}

/// A request of `bytes` went the way `way`.
pub(crate) fn count_request(
    to: Option<&Statistics>,
    kind: Kind,
    direction: Direction,
    bytes: usize,
    way: Count,
) {
    if let Some(statistics) = to {
        statistics.request(kind, direction, bytes, way);
    }
}

/// Something happened to a request of `bytes`, so many times.
pub(crate) fn count_event(
    to: Option<&Statistics>,
    kind: Kind,
    direction: Direction,
    bytes: usize,
    (event, number): (Count, u32),
) {
    if let Some(statistics) = to.filter(|_| number > 0) {
        statistics.add(Row::of(kind, direction, bytes), event, number.into());
    }
}

/// Moves what a thread has hashed into the file.
pub(crate) fn flush_hashes(hashes: &ThreadDigests) {
    if let Some(statistics) = STATISTICS.get().and_then(Option::as_ref) {
        hashes.flush(statistics);
    }
}

/// The same at the thread's end, unfinished messages too.
pub(crate) fn finish_hashes(hashes: &ThreadDigests) {
    if let Some(statistics) = STATISTICS.get().and_then(Option::as_ref) {
        hashes.end(statistics);
    }
}
