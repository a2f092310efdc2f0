//! Below saturation, where throughput need not rise: epochs alone and combined take turns as ever, but are added up, and the
//! two sums are weighed by core time, throughput and waiting.
//!
//! Epochs alone -> [`Weighing::watch`] (do enough requests meet?) -> pairs of epochs -> [`Weighing::pair`] -> callers combine ->
//! [`Weighing::on`] until the next control.
//!
//! Waiting has two judges, since a call ends where its thread goes on, and the queue before the cores may have moved: either calls take
//! no longer, or more bytes come through, for then threads that send the next request after the last one wait less all in all.

use super::Epoch;

/// Yields after which a caller runs what is there. Measured with 16 threads and two cores: with 16 yields calls take 1.2 to 1.6 times
/// as long as with one, and at 16 KiB core time rises instead of falling; 2 and 4 are like one.
pub(super) const FEW_YIELDS: u32 = 1;

/// How busy the process must be, in percent of its cores: below, core time is not scarce, and two requests hardly meet.
const SCARCE_PERCENT: u64 = 50;
/// Requests that must be in calls at once on average, in percent of the cores. Measured at 64 KiB: at 37 core time fell by 13 %, at 27 by 8.
const IN_CALLS_PERCENT: u64 = 33;
/// Epochs alone that are looked at together for that, and epochs on after which core time is looked at.
const WATCHED_EPOCHS: u32 = 8;

/// Pairs of a trial and of a control, a second: 10 % of noise in an epoch are 3 % in the ratio of so many.
const PAIRS: u32 = 24;
/// Pairs after which a hopeless trial ends.
const FIRST_PAIRS: u32 = 2;
/// Epochs on before a control, the first time and later. One trial in some hundred is won by noise, and is not to last; later, at 10 s,
/// the price of knowing is 5 % of the gain.
const CONTROL_AFTER: [u32; 2] = [96, 500];

/// What combining must bring.
const START: Demand = Demand { bytes: 98, core: 90, call: 100, more_bytes: 105 };
/// What it must keep: a wider gate, so that noise does not flip it.
const KEEP: Demand = Demand { bytes: 95, core: 95, call: 110, more_bytes: 103 };
/// Where a trial that was lost reached this, noise may have decided it.
const NEAR: Demand = Demand { bytes: 94, core: 93, call: 110, more_bytes: 102 };
/// Where it does not even reach this after a few pairs, the rest is not worth its price. Where other programs want the cores, a
/// yield loses one for milliseconds.
const HOPE: Demand = Demand { bytes: 60, core: 130, call: 1_000, more_bytes: 100 };

/// Epochs alone after a trial that was lost, least and most; doubled by each further one: 5 s to 82 s.
const BACK_OFF: [u32; 2] = [256, 4096];
/// The same where it was lost by little.
const NEAR_BACK_OFF: [u32; 2] = [64, 1024];
/// Epochs alone after callers combined for this long, as in [`super::PROVEN_EPOCHS`].
const PROVEN_EPOCHS: u32 = 100;
/// Epochs alone until it is tried again then.
const SOON_EPOCHS: u32 = 16;
/// Epochs alone after a trial that a pause ended. Assumed, not measured: 64, somewhat more than a trial takes.
const AGAIN_EPOCHS: u32 = 64;

/// What combined epochs must reach, in percent of those alone.
struct Demand {
    /// Bytes per time, at least.
    bytes: u64,
    /// Core time per byte, at most.
    core: u64,
    /// Time of a call, at most;
    call: u64,
    /// or else bytes per time, at least.
    more_bytes: u64,
}

/// What epochs brought together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    epochs: u32,
    span: u64,
    core: u64,
    bytes: u64,
    requests: u64,
    in_calls: u64,
}

/// What is known of working alone and of combining below saturation.
#[derive(Clone, Debug)]
pub(super) struct Weighing {
    cores: u64,
    /// The epochs alone since they were looked at last, or the epochs on.
    watched: Sums,
    /// Whether requests met in those before.
    is_met: bool,
    /// Epochs of the trial or control, or of the last: alone, and combined.
    sides: [Sums; 2],
    /// Epochs alone before a trial may begin, or epochs on before a control.
    left: u32,
    back_off: u32,
    /// Epochs for which callers have combined.
    lasted: u32,
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// Another epoch of the same kind, or the other side's turn.
    Goes,
    /// Callers combine.
    Pays,
    /// Everybody works for itself.
    Lost,
    /// Combining is to be compared with working alone again.
    Doubted,
    /// The cores are busy even so.
    Saturated,
}

impl Weighing {
    pub(super) fn new(cores: u32) -> Self {
        let (watched, sides) = (Sums::default(), <[Sums; 2]>::default());
        Self { cores: cores.into(), watched, is_met: false, sides, left: 0, back_off: 0, lasted: 0 }
    }

    /// An epoch in which everybody worked for itself.
    pub(super) fn watch(&mut self, epoch: &Epoch) {
        self.left = self.left.saturating_sub(1);
        self.watched.add(epoch);
        if self.watched.epochs == WATCHED_EPOCHS {
            let watched = std::mem::take(&mut self.watched);
            self.is_met = watched.is_busy(self.cores, SCARCE_PERCENT)
                && is_share(watched.in_calls, watched.span, self.cores * IN_CALLS_PERCENT);
        }
    }

    /// What was watched is no more what is.
    pub(super) fn forget(&mut self) {
        if std::mem::take(&mut self.lasted) >= PROVEN_EPOCHS {
            (self.left, self.back_off) = (0, 0);
        }
        (self.watched, self.is_met) = (Sums::default(), false);
    }

    /// Whether a trial is to begin, which it then does.
    pub(super) fn begins(&mut self) -> bool {
        let begins = self.is_met && self.left == 0;
        if begins {
            // Should it be interrupted: a program that often pauses is not to try without an end.
            self.left = AGAIN_EPOCHS;
            self.turn_to_pairs();
        }
        begins
    }

    fn turn_to_pairs(&mut self) {
        (self.watched, self.is_met, self.sides) = (Sums::default(), false, <[Sums; 2]>::default());
    }

    /// An epoch of a trial or control; the one alone ends a pair.
    pub(super) fn pair(&mut self, epoch: &Epoch, combines: bool) -> Finding {
        self.sides[usize::from(combines)].add(epoch);
        let pairs = self.sides[0].epochs;
        let demand = if self.lasted > 0 { KEEP } else { START };
        match pairs {
            _ if combines => Finding::Goes,
            PAIRS.. if self.reaches(&demand) => {
                let [first, later] = CONTROL_AFTER;
                self.left = if self.lasted > 0 { later } else { first };
                Finding::Pays
            }
            PAIRS.. => self.lose(),
            FIRST_PAIRS.. if !self.reaches(&HOPE) => self.lose(),
            _ => Finding::Goes,
        }
    }

    fn reaches(&self, demand: &Demand) -> bool {
        let [alone, combined] = &self.sides;
        combined.reaches(alone, demand)
    }

    /// An epoch in which callers combine.
    pub(super) fn on(&mut self, epoch: &Epoch) -> Finding {
        self.lasted += 1;
        self.left = self.left.saturating_sub(1);
        self.watched.add(epoch);
        if self.watched.epochs < WATCHED_EPOCHS {
            return Finding::Goes;
        }
        let watched = std::mem::take(&mut self.watched);
        if watched.is_busy(self.cores, super::BUSY_PERCENT) {
            return Finding::Saturated;
        }
        // Bytes come and go with what the program has to do, and the time of a call with them: only a control can judge them.
        if self.left == 0 || !watched.is_as_cheap(&self.sides[0], KEEP.core) {
            self.turn_to_pairs();
            return Finding::Doubted;
        }
        Finding::Goes
    }

    fn lose(&mut self) -> Finding {
        if std::mem::take(&mut self.lasted) >= PROVEN_EPOCHS {
            (self.back_off, self.left) = (0, SOON_EPOCHS);
        } else {
            let [least, most] = if self.reaches(&NEAR) { NEAR_BACK_OFF } else { BACK_OFF };
            self.left = self.back_off.clamp(least, most);
            self.back_off = self.left * 2;
        }
        Finding::Lost
    }
}

impl Sums {
    fn add(&mut self, epoch: &Epoch) {
        self.epochs += 1;
        self.span = self.span.saturating_add(epoch.span.0);
        self.core = self.core.saturating_add(epoch.core.0);
        self.bytes = self.bytes.saturating_add(epoch.bytes);
        self.requests = self.requests.saturating_add(epoch.requests);
        self.in_calls = self.in_calls.saturating_add(epoch.in_calls.0);
    }

    fn is_busy(&self, cores: u64, percent: u64) -> bool {
        is_share(self.core, self.span, cores * percent)
    }

    /// Whether core time per byte is at most so many percent of the other's.
    fn is_as_cheap(&self, alone: &Self, percent: u64) -> bool {
        at_most([self.core, self.bytes], [alone.core, alone.bytes], percent)
    }

    fn reaches(&self, alone: &Self, demand: &Demand) -> bool {
        let brings = |percent| at_least([self.bytes, self.span], [alone.bytes, alone.span], percent);
        let waits = at_most([self.in_calls, self.requests], [alone.in_calls, alone.requests], demand.call);
        brings(demand.bytes) && self.is_as_cheap(alone, demand.core) && (waits || brings(demand.more_bytes))
    }
}

/// Whether `value` is at least so many percent of `of`.
const fn is_share(value: u64, of: u64, percent: u64) -> bool {
    value as u128 * 100 >= of as u128 * percent as u128
}

/// Whether one quotient is at most so many percent of another; none is where something was not measured.
fn at_most(one: [u64; 2], other: [u64; 2], percent: u64) -> bool {
    let [one, other] = crossed(one, other, percent);
    0 < one && one <= other
}

/// Whether it is at least so many percent.
fn at_least(one: [u64; 2], other: [u64; 2], percent: u64) -> bool {
    let [one, other] = crossed(one, other, percent);
    0 < other && other <= one
}

/// A quotient and so many percent of another, both times what they are divided by, and a hundred.
fn crossed([over, under]: [u64; 2], [of_over, of_under]: [u64; 2], percent: u64) -> [u128; 2] {
    let product =
        |one: u64, other: u64, by: u64| (u128::from(one) * u128::from(other)).saturating_mul(by.into());
    [product(over, of_under, 100), product(of_over, under, percent)]
}
