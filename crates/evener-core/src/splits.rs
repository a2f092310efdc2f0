//! Whether one large buffer is split between threads: learned from what calls took.
//!
//! The way of one call: [`Splits::choose`] -> it runs whole or split -> [`Splits::took_whole`] or [`Splits::took_split`].
//!
//! Three things keep a call whole: a class that the [regret guard](crate::guard) locked or wants as control, and a
//! hand-over that takes so long that little of the call is left when help arrives. On a machine whose cores are all busy
//! hand-overs take the scheduler's slices, milliseconds each, and a helper that loses its core in the middle of a part is
//! waited for; both show in what calls took.

use crate::guard::{Counters, Guard};
use crate::units::Nanos;

/// Smallest call in bytes that may be split under `auto`: 2^16. At 5 GB/s it takes 13 us, about what it costs to wake a
/// thread on another core. A guess; above it measurement decides.
pub const CALL_BYTES_MIN: usize = 1 << CLASS_FIRST;

/// Parts per thread, so that none has much to wait for at the end: with 16, at most 1/16 of the call. A guess.
const PARTS_PER_THREAD: usize = 16;

/// Limits of a part in bytes. At least 16 KiB, so that a context's new IV (0.1 to 0.3 us) costs below a tenth; at most 64
/// KiB, so that input and result of a part stay in 256 KiB of second-level cache and that a helper that loses its core
/// holds up little.
const PART_BYTES: (usize, usize) = (16 << 10, 64 << 10);

/// A call must take so many times the hand-over to be split. With one helper, the gain is then at least a quarter.
const HANDOVERS_MIN: u64 = 2;

/// One of so many calls that are too short for the hand-over is split nevertheless, since only that shows a change.
const PROBE_PERIOD: u64 = 64;

/// Hand-over that is assumed before any was measured: a futex's wake-up across cores of a virtual machine. A guess.
const HANDOVER_FIRST: Nanos = Nanos::from_micros(50);

/// Weight of a new hand-over, 1/8. From TCP's round trips (RFC 6298), not varied.
const HANDOVER_WEIGHT: u64 = 8;

/// Calls of this many bytes, 2^22, take about half a millisecond, a tenth of what the guard allows a class to lose. Longer
/// ones are entered at their share of that: one that lost its core for a slice is no verdict on its class.
const ENTERED_WHOLE: u32 = 22;

/// Classes of size: powers of two in bytes, the last open.
const CLASS_FIRST: u32 = 16;
const CLASS_COUNT: usize = 15;

/// One call: which kind of work, and how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Calls of one kind cost the same per byte. An index below the number given to [`Splits::new`].
    pub kind: usize,
    /// Length of the buffer.
    pub bytes: usize,
}

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
pub struct Splits {
    guard: Guard,
    /// From the offer to the first helper's first step, smoothed.
    handover: Nanos,
    /// Calls that were too short for the hand-over.
    short_calls: u64,
}

impl Splits {
    /// Nothing learned yet, about `kinds` kinds of work.
    #[must_use]
    pub fn new(kinds: usize) -> Self {
        Self { guard: Guard::new(kinds * CLASS_COUNT), handover: HANDOVER_FIRST, short_calls: 0 }
    }

    /// How the call that begins at `now` shall run.
    ///
    /// # Panics
    ///
    /// Where the load's kind is not below the number of kinds, as all functions here.
    pub fn choose(&mut self, load: Load, now: Nanos) -> Way {
        if load.bytes < CALL_BYTES_MIN {
            return Way::Whole;
        }
        let class = class(load);
        if self.guard.is_locked(class, now) {
            self.guard.kept_inline(class, 1);
            return Way::Whole;
        }
        if self.guard.is_control(class) || self.is_too_short(class, load) {
            return Way::Whole;
        }
        Way::Split
    }

    /// Takes what a whole call took.
    pub fn took_whole(&mut self, load: Load, cost: Nanos) {
        if load.bytes >= CALL_BYTES_MIN {
            self.guard.control(class(load), 1, at_class_size(load, cost));
        }
    }

    /// Takes what a split call took that ended at `now`, and the time from the offer to a helper's first step; `None`
    /// where nobody came, which says that a hand-over takes at least as long as the call.
    pub fn took_split(&mut self, load: Load, cost: Nanos, handover: Option<Nanos>, now: Nanos) {
        let sample = handover.unwrap_or_else(|| cost.max(self.handover));
        self.handover = Nanos((self.handover.0 * (HANDOVER_WEIGHT - 1) + sample.0) / HANDOVER_WEIGHT);
        if load.bytes >= CALL_BYTES_MIN {
            self.guard.routed(class(load), 1, at_class_size(load, cost), now);
        }
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

    fn is_too_short(&mut self, class: usize, load: Load) -> bool {
        let Some(entered) = self.guard.inline_mean(class) else { return false };
        let whole = scaled(entered, load.bytes, entered_bytes(load));
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

fn class(load: Load) -> usize {
    let power = load.bytes.ilog2().saturating_sub(CLASS_FIRST) as usize;
    load.kind * CLASS_COUNT + power.min(CLASS_COUNT - 1)
}

/// Bytes at which calls of the load's class are entered: the smallest of its class, or [`ENTERED_WHOLE`]. So calls of one
/// class are compared whatever their mixture.
const fn entered_bytes(load: Load) -> usize {
    let power = load.bytes.ilog2();
    1 << if power < ENTERED_WHOLE { power } else { ENTERED_WHOLE }
}

fn at_class_size(load: Load, cost: Nanos) -> Nanos {
    scaled(cost, entered_bytes(load), load.bytes)
}

/// What takes `cost` for `from` bytes, for `to` bytes.
fn scaled(cost: Nanos, to: usize, from: usize) -> Nanos {
    let scaled = u128::from(cost.0) * to as u128 / from as u128;
    Nanos(u64::try_from(scaled).unwrap_or(u64::MAX))
}
