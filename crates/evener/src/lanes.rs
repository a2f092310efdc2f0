//! Whether multi-buffer is in service in this process: until a result of its lanes was another than the plain method's.
//!
//! A driver of lanes has given the known answers before it is used. What a library, a build or a processor computes wrongly later, or of lengths
//! that no known answer has, is found by samples: of a core's bursts in `cpu/lane_check.rs`, of single requests by the program's provider.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Results that differed. One for all threads and runs of a process: they have one library and one kind of core.
static WRONG: AtomicU32 = AtomicU32::new(0);

/// Bursts, or requests, of each algorithm and direction of which one result is computed again whatever it costs. Assumed, not measured: 4,
/// because lanes that compute wrongly at all are wrong from the start.
const CHECKED_FIRST: u32 = 4;

/// Of later ones, one in so many. Assumed, not measured: 256, as of results of modules: the plain method takes up to nine times as long as
/// lanes, for one job of a burst of 16, which makes 0.2 %.
const CHECKED: u32 = 256;

/// Whether the one of this number is sampled.
#[must_use]
#[inline]
pub const fn is_sampled(number: u32) -> bool {
    number < CHECKED_FIRST || number % CHECKED == 0
}

/// Whether lanes may be used.
#[must_use]
#[inline]
pub fn are_in_service() -> bool {
    // Relaxed: who sees it late has lanes once more.
    wrong_results() == 0
}

/// Results of lanes so far that were not the plain method's.
#[must_use]
#[inline]
pub fn wrong_results() -> u32 {
    WRONG.load(Relaxed)
}

/// A result was not the plain method's: lanes are out of service from here on.
pub fn found_wrong() {
    // Saturating: 0 would put them back.
    _ = WRONG.fetch_update(Relaxed, Relaxed, |count| count.checked_add(1));
}
