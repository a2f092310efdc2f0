//! Whether one large buffer is split between threads: learned from what calls took.
//!
//! The path of one call: [`SplitPolicy::choose`] -> it runs whole or split -> [`SplitPolicy::took_whole`] or [`SplitPolicy::took_split`].
//!
//! Three things keep a call whole: a class that the [regret guard](crate::guard) locked or wants as control, and a
//! hand-over that takes so long that little of the call is left when help arrives. On a machine whose cores are all busy
//! hand-overs take the scheduler's slices, milliseconds each, and a helper that loses its core in the middle of a part is
//! waited for; both show in what calls took.

use crate::policy::guard::{BySize, Counters};
use crate::units::Nanos;

pub use crate::policy::guard::RequestSize;

/// Smallest call in bytes that may be split under `auto`: 2^16. At 5 GB/s it takes 13 us, about what it costs to wake a
/// thread on another core. Assumed, not measured; above it measurement decides.
pub const CALL_BYTES_MIN: usize = 1 << 16;

/// Parts per thread, so that none has much to wait for at the end. Assumed, not measured: 16, because then it is at most 1/16 of the
/// call.
const PARTS_PER_THREAD: usize = 16;

/// Limits of a part in bytes. At least 16 KiB, so that a context's new IV (0.1 to 0.3 us) costs below a tenth; at most 64
/// KiB, so that input and result of a part stay in 256 KiB of second-level cache and that a helper that loses its core
/// holds up little.
const PART_BYTES: (usize, usize) = (16 << 10, 64 << 10);

/// A call must take so many times the hand-over to be split. With one helper, the gain is then at least a quarter.
const HANDOVERS_MIN: u64 = 2;

/// One of so many calls that are too short for the hand-over is split nevertheless, since only that shows a change.
const PROBE_PERIOD: u64 = 64;

/// The first call of its class from so many bytes on is split untried, for a program may have but one: 4 MiB take half a millisecond at 8 GB/s, ten
/// hand-overs. What it can lose is bounded in the call itself: the caller does what no helper has begun, and waits for one part of each at most. The
/// calls behind it are compared as all others are.
pub const UNTRIED_BYTES_MIN: usize = 1 << 22;

/// Hand-over before any was measured. Assumed, not measured: 50 us, because a futex's wake-up across cores of a virtual machine takes
/// about that.
const HANDOVER_FIRST: Nanos = Nanos::from_micros(50);

/// A hand-over counts for at most so many times what is known, or was assumed at first: one that fell into the moment in
/// which the machine stood still would keep hundreds of calls whole. Five in a row that long are believed. Assumed, not measured: 4, because one outlier then raises the mean by three eighths at most.
const HANDOVER_JUMP_MAX: u64 = 4;

/// Weight of a new hand-over, 1/8. From TCP's round trips (RFC 6298), not varied.
const HANDOVER_WEIGHT: u64 = 8;

/// How a call runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By its caller alone.
    Whole,
    /// By its caller and by helpers.
    Split,
}

/// What splitting brought so far, by kind and size.
#[derive(Clone, Debug)]
pub struct SplitPolicy {
    guard: BySize,
    /// From the offer to the first helper's first step, smoothed.
    handover: Nanos,
    /// Calls that were too short for the hand-over.
    short_calls: u64,
    /// By kind, a bit for each power of two in bytes of which a call was split untried.
    untried: Vec<u64>,
}

impl SplitPolicy {
    /// Nothing learned yet, about `kinds` kinds of work.
    #[must_use]
    pub fn new(kinds: usize) -> Self {
        let guard = BySize::new(kinds);
        Self { guard, handover: HANDOVER_FIRST, short_calls: 0, untried: vec![0; kinds] }
    }

    /// How the call that begins at `now` shall run.
    ///
    /// # Panics
    ///
    /// Where the load's kind is not below the number of kinds, as all functions here.
    pub fn choose(&mut self, load: RequestSize, now: Nanos) -> Way {
        if load.bytes < CALL_BYTES_MIN {
            return Way::Whole;
        }
        if self.is_first(load) {
            return Way::Split;
        }
        if self.guard.stays(load, now) || self.is_too_short(load) {
            return Way::Whole;
        }
        Way::Split
    }

    /// Takes what a whole call took.
    pub fn took_whole(&mut self, load: RequestSize, cost: Nanos) {
        if load.bytes >= CALL_BYTES_MIN {
            self.guard.stayed(load, cost);
        }
    }

    /// Takes what a split call took that ended at `now`, and the time from the offer to a helper's first step; `None`
    /// where no helper came, which says that a hand-over takes at least as long as the call. Returns whether the guard locked
    /// the load's class.
    pub fn took_split(
        &mut self,
        load: RequestSize,
        cost: Nanos,
        handover: Option<Nanos>,
        now: Nanos,
    ) -> bool {
        let most = self.handover.max(HANDOVER_FIRST).0.saturating_mul(HANDOVER_JUMP_MAX);
        let sample = handover.unwrap_or_else(|| cost.max(self.handover)).min(Nanos(most));
        self.handover = Nanos((self.handover.0 * (HANDOVER_WEIGHT - 1) + sample.0) / HANDOVER_WEIGHT);
        let is_judged = load.bytes >= CALL_BYTES_MIN && self.guard.direct_mean(load).is_some();
        is_judged && self.guard.went(load, cost, now)
    }

    /// What hand-overs take, smoothed.
    #[must_use]
    pub fn handover(&self) -> Nanos {
        self.handover
    }

    /// What the guard saw and did in all classes.
    #[must_use]
    pub fn total(&self) -> Counters {
        self.guard.total()
    }

    /// Whether it is a long call of a class of which nothing is known, and no other was split for that.
    fn is_first(&mut self, load: RequestSize) -> bool {
        let class = 1 << load.bytes.ilog2();
        let is_first = load.bytes >= UNTRIED_BYTES_MIN
            && self.untried[load.kind] & class == 0
            && self.guard.direct_mean(load).is_none();
        self.untried[load.kind] |= if is_first { class } else { 0 };
        is_first
    }

    fn is_too_short(&mut self, load: RequestSize) -> bool {
        let Some(whole) = self.guard.direct_mean(load) else { return false };
        if whole.0 >= self.handover.0.saturating_mul(HANDOVERS_MIN) {
            return false;
        }
        self.short_calls += 1;
        self.short_calls % PROBE_PERIOD != 0
    }
}

/// Length in bytes of the parts into which a call of `bytes` is cut for `threads` threads: a multiple of 4 KiB, and
/// such that there are at most `parts_max` parts.
#[must_use]
pub fn part_bytes(bytes: usize, threads: usize, parts_max: usize) -> usize {
    let (least, most) = PART_BYTES;
    let wanted = (bytes / (threads.max(1) * PARTS_PER_THREAD)).clamp(least, most);
    wanted.max(bytes.div_ceil(parts_max.max(1))).next_multiple_of(4 << 10)
}
