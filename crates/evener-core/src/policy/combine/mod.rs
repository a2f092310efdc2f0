//! When callers of one program combine: where it beats the program's own throughput alone, in epochs that take turns.
//!
//! The path of an epoch: each caller counts itself and its bytes -> [`Controller::end_epoch`] -> how many callers wait for
//! each other in the next one, or none. No clock and no thread: epochs are arguments, so that every rule here can be
//! tested. `docs/design/combining.md` says why the rules are these.
//!
//! ```text
//! Alone ──(counted down)──> Compare ──(2 good)──> On ──(50 epochs, or 3 bad)──> Compare ──(1 good)──> On
//!   ^──(2 bad: longer each time)──┘                                                │
//!   └──────────────────────────────────(3 bad)─────────────────────────────────────┘
//! ```
//!
//! In `Compare` epochs alone and epochs combined take turns, and each pair is judged by itself: what the machine loses to
//! others for a while, it loses for both. One epoch that is far below working alone ends it at once, for then a
//! second would cost as much again.
//!
//! Below saturation two more phases do the same by other figures ([`weighing`]): `Alone -> Weigh -> Eased -> Weigh -> ..`.
//!
//! Judged by the whole process's bytes per time, because nothing else sees it all: a yield is cheap, and yet gives the
//! core away for milliseconds where another program wants it.

mod weighing;

use crate::units::Nanos;
use weighing::{Finding, Weighing};

/// Length of an epoch. Measured with 20 ms: long enough that two cores run some ten slices of the scheduler in it, short
/// enough that an epoch lost in a trial is under 2 % of the first back-off.
pub const EPOCH: Nanos = Nanos::from_millis(20);

/// Longest epoch that is judged: a longer one says that no thread called, not how fast calls are. Assumed, not
/// measured: 80 ms, four epochs.
pub const EPOCH_MAX: Nanos = Nanos::from_millis(80);

/// Callers that wait for each other at most: the SIMD lanes of AES-CBC encryption with AVX-512.
pub const TOGETHER_MAX: u32 = 16;

/// Yields after which a caller runs what is there, where throughput decides. From the prototype's measurements.
pub const YIELDS: u32 = 16;

/// Epochs alone before the first comparison, and after a pause. Assumed, not measured: 4, because the median needs three, and the first has the program's start in it.
const FIRST_EPOCHS: u32 = 4;
/// Epochs alone of which the median is what working alone is worth: one that was spoilt does not count.
const ALONE_EPOCHS: usize = 3;
/// Epochs between two comparisons while callers combine: the price of knowing is 2 % of the gain.
const CONTROL_EVERY: u32 = 50;

/// Good pairs that a comparison needs before callers combine, and bad ones that end it: the best of three.
const TRIAL: Match = Match { good: 2, bad: 2, is_near: true };
/// The same where callers combine already. With noise of 10 % and a gain of 1.2 one pair in five is bad: with fewer it would
/// end once in half a minute for nothing.
const CONTROL: Match = Match { good: 1, bad: 3, is_near: true };

/// Callers per core below which no caller waits for another: with fewer, waiting costs more than lanes bring (measured).
const GATE_PER_CORE: u32 = 2;

/// What a pair must reach, in percent of working alone: the noise of an epoch is about 10 %.
const ON_PERCENT: u64 = 110;
/// What combining must keep.
const KEEP_PERCENT: u64 = 105;
/// Where every bad pair reached this, the comparison is repeated soon: noise may have decided it, and another costs little.
const NEAR_PERCENT: u64 = 85;
/// Below this a comparison is over at once. Where other programs wanted all cores, combining fell to 5 to 26 percent; where one
/// ran for some 20 ms, to 60 (measured).
const HOPELESS_PERCENT: u64 = 50;
/// Bad epochs in a row after which callers that combine are compared again. A program that runs for 20 to 40 ms makes two.
const BAD_EPOCHS: u32 = 3;

/// Epochs alone after a comparison that was lost, least and most; doubled by each further one. 64 epochs are 1.3 s.
const BACK_OFF: [u32; 2] = [64, 1024];
/// The same where it was lost by little.
const NEAR_BACK_OFF: [u32; 2] = [16, 512];
/// Epochs after which combining has brought more than it takes to notice its end: where it stops then, it is tried again
/// soon. Assumed, not measured: 25, because at a gain of 1.1 so many epochs bring 2.5, about the [`BAD_EPOCHS`] that it takes to notice the end.
const PROVEN_EPOCHS: u32 = 25;
/// Epochs alone until then.
const SOON_EPOCHS: u32 = 8;

/// How busy the process must keep its cores in all epochs before a trial by throughput, in percent: below, that need not rise, and
/// with so many yields the slowest calls get slower (at 40 % measured: 1 call in 100 took up to three times as long). Only such
/// epochs say what working alone can do: in others a program that waits for its requests looks slow. At 75 % trials began
/// where half of what the cores can do was wanted (measured); a program that never waits reaches 97 %.
const BUSY_PERCENT: u64 = 90;
/// The same of the two epochs of a pair: callers that combine keep the cores busy whatever they have to do.
const PAIR_BUSY_PERCENT: u64 = 95;

/// Measurements of one epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// How long it was.
    pub span: Nanos,
    /// Core time that the whole process used in it.
    pub core: Nanos,
    /// Different threads that called in it.
    pub callers: u32,
    /// Bytes that they brought.
    pub bytes: u64,
    /// Calls for which those that were timed stand.
    pub requests: u64,
    /// Time that threads were in them: divided by `span` it is how many were at once, on average (Little's law).
    pub in_calls: Nanos,
}

/// How callers wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// For so many, 2 to [`TOGETHER_MAX`].
    pub together: u32,
    /// For so many yields; then a caller runs what is there.
    pub yields: u32,
}

impl Waiting {
    /// For so many, as long as where throughput decides.
    #[must_use]
    pub const fn for_others(together: u32) -> Self {
        Self { together, yields: YIELDS }
    }
}

/// Decides, epoch by epoch, whether callers combine.
#[derive(Clone, Debug)]
pub struct Controller {
    cores: u32,
    gate: u32,
    phase: Phase,
    /// Bytes per millisecond of the last epochs alone in which the process was busy, newest first; 0 where there was none.
    alone: [u64; ALONE_EPOCHS],
    /// The epoch before: where one is too short for all callers to get a core, two are not, and the system may count up to
    /// 10 ms of a core that runs one thread as the next epoch's (measured: 73 percent, and then 136).
    before: Epoch,
    /// Epochs for which callers have combined without an end.
    lasted: u32,
    /// Epochs alone after the next comparison that is lost.
    back_off: u32,
    /// Comparisons that were lost so far.
    failures: u32,
    /// What is known below saturation.
    weighing: Weighing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Everybody works for itself, for so many epochs more.
    Alone { left: u32 },
    /// Epochs alone and epochs combined take turns; whether this one is combined.
    Compare { combines: bool, rest: Match },
    /// Callers combine: so many epochs until the next comparison, so many bad ones in a row.
    On { left: u32, bad: u32 },
    /// Below saturation, epochs alone and epochs combined take turns; whether this one is combined.
    Weigh { combines: bool },
    /// Below saturation, callers combine.
    Eased,
}

/// What a comparison still waits for: so many good pairs or so many bad ones; whether the bad ones so far were bad by little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Match {
    good: u32,
    bad: u32,
    is_near: bool,
}

impl Controller {
    /// A controller for a process that may use so many cores.
    #[must_use]
    pub fn new(cores: usize) -> Self {
        let cores = u32::try_from(cores).unwrap_or(u32::MAX);
        Self {
            cores,
            gate: cores.saturating_mul(GATE_PER_CORE),
            phase: Phase::Alone { left: FIRST_EPOCHS },
            alone: [0; ALONE_EPOCHS],
            before: Epoch {
                span: Nanos::ZERO,
                core: Nanos::ZERO,
                callers: 0,
                bytes: 0,
                requests: 0,
                in_calls: Nanos::ZERO,
            },
            lasted: 0,
            back_off: 0,
            failures: 0,
            weighing: Weighing::new(cores),
        }
    }

    /// How often combining was given up so far because it did not pay.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Takes the measurements of an epoch and says how callers wait for each other in the next; nothing, where each works for
    /// itself.
    #[must_use]
    pub fn end_epoch(&mut self, epoch: &Epoch) -> Option<Waiting> {
        self.phase = match epoch.span {
            span if span > EPOCH_MAX => self.restarted(),
            _ if epoch.callers <= self.gate => self.restarted(),
            _ => self.judged(epoch),
        };
        let before = std::mem::replace(&mut self.before, *epoch);
        let callers = epoch.callers.max(before.callers);
        let yields = match self.phase {
            Phase::Compare { combines: true, .. } | Phase::On { .. } => YIELDS,
            Phase::Weigh { combines: true } | Phase::Eased => weighing::FEW_YIELDS,
            Phase::Alone { .. } | Phase::Compare { .. } | Phase::Weigh { .. } => return None,
        };
        Some(Waiting { together: callers.clamp(2, TOGETHER_MAX), yields })
    }

    /// Nothing was learned, and what was known may be old. A back-off is not shortened, so that callers that come and go do not
    /// bring comparisons on.
    fn restarted(&mut self) -> Phase {
        self.weighing.forget();
        self.unknown()
    }

    /// What is known of working alone at saturation is no more.
    fn unknown(&mut self) -> Phase {
        self.alone = [0; ALONE_EPOCHS];
        self.lasted = 0;
        match self.phase {
            Phase::Alone { left } => Phase::Alone { left: left.max(FIRST_EPOCHS) },
            _ => Phase::Alone { left: FIRST_EPOCHS },
        }
    }

    /// Whether this epoch and the one before together kept so many percent of the cores busy.
    fn is_busy(&self, epoch: &Epoch, percent: u64) -> bool {
        let [core, span] = [epoch.core + self.before.core, epoch.span + self.before.span];
        u128::from(core.0) * 100 >= u128::from(span.0) * u128::from(self.cores) * u128::from(percent)
    }

    fn judged(&mut self, epoch: &Epoch) -> Phase {
        let (rate, alone) = (rate(epoch), median(self.alone));
        match self.phase {
            Phase::Alone { .. } if !self.is_busy(epoch, BUSY_PERCENT) => {
                self.weighing.watch(epoch);
                self.weigh()
            }
            Phase::Alone { left } => {
                self.weighing.watch(epoch);
                self.note_alone(rate);
                match left {
                    0 | 1 => Phase::Compare { combines: true, rest: TRIAL },
                    _ => Phase::Alone { left: left - 1 },
                }
            }
            Phase::Compare { combines: false, rest } => {
                self.note_alone(rate);
                Phase::Compare { combines: true, rest }
            }
            Phase::Compare { combines: true, rest } => {
                self.compare(rate, alone, rest, self.is_busy(epoch, PAIR_BUSY_PERCENT))
            }
            Phase::On { left, bad } => self.stay_on(rate, alone, left, bad),
            Phase::Weigh { combines } => {
                let finding = self.weighing.pair(epoch, combines);
                self.follow(finding, Phase::Weigh { combines: !combines })
            }
            Phase::Eased => {
                let finding = self.weighing.on(epoch);
                self.follow(finding, Phase::Eased)
            }
        }
    }

    /// Begins a trial below saturation where one is due.
    fn weigh(&mut self) -> Phase {
        let alone = self.unknown();
        if self.weighing.begins() { Phase::Weigh { combines: true } } else { alone }
    }

    fn follow(&mut self, finding: Finding, same: Phase) -> Phase {
        match finding {
            Finding::Goes => same,
            Finding::Pays => Phase::Eased,
            Finding::Doubted => Phase::Weigh { combines: true },
            Finding::Saturated => self.restarted(),
            Finding::Lost => {
                self.failures += 1;
                Phase::Alone { left: FIRST_EPOCHS }
            }
        }
    }

    fn note_alone(&mut self, rate: u64) {
        self.alone.rotate_right(1);
        self.alone[0] = rate;
    }

    /// The second half of a pair. A good one that was not busy says nothing by itself, but is weighed; a bad one is bad also where combining itself lost
    /// the cores, to a program that takes them only when they are given away.
    fn compare(&mut self, rate: u64, alone: u64, rest: Match, is_busy: bool) -> Phase {
        let good = rest.good - u32::from(reaches(rate, alone, ON_PERCENT));
        if good < rest.good && !is_busy {
            return self.weigh();
        }
        let bad = rest.bad - u32::from(good == rest.good);
        let is_near = rest.is_near && (bad == rest.bad || reaches(rate, alone, NEAR_PERCENT));
        match (good, bad) {
            (0, _) => Phase::On { left: CONTROL_EVERY, bad: 0 },
            (_, 0) => self.lose(is_near),
            _ if !reaches(rate, alone, HOPELESS_PERCENT) => self.lose(false),
            _ => Phase::Compare { combines: false, rest: Match { good, bad, is_near } },
        }
    }

    fn stay_on(&mut self, rate: u64, alone: u64, left: u32, bad: u32) -> Phase {
        self.lasted += 1;
        let bad = if reaches(rate, alone, KEEP_PERCENT) { 0 } else { bad + 1 };
        let is_doubted = bad == BAD_EPOCHS || !reaches(rate, alone, HOPELESS_PERCENT);
        if is_doubted || left <= 1 {
            // What working alone was worth is not believed any more: the machine may have more or less for all callers now.
            self.alone = [0; ALONE_EPOCHS];
            return Phase::Compare { combines: false, rest: CONTROL };
        }
        Phase::On { left: left - 1, bad }
    }

    fn lose(&mut self, is_near: bool) -> Phase {
        if std::mem::take(&mut self.lasted) >= PROVEN_EPOCHS {
            self.back_off = 0;
            return Phase::Alone { left: SOON_EPOCHS };
        }
        let [least, most] = if is_near { NEAR_BACK_OFF } else { BACK_OFF };
        let left = self.back_off.clamp(least, most);
        self.failures += 1;
        self.back_off = left * 2;
        Phase::Alone { left }
    }
}

/// Bytes per millisecond.
fn rate(epoch: &Epoch) -> u64 {
    let scaled = u128::from(epoch.bytes) * u128::from(Nanos::from_millis(1).0);
    u64::try_from(scaled / u128::from(epoch.span.0.max(1))).unwrap_or(u64::MAX)
}

/// The middle of those that are known: of two the lesser.
fn median(mut rates: [u64; ALONE_EPOCHS]) -> u64 {
    rates.sort_unstable();
    let first = rates.iter().position(|&rate| rate > 0).unwrap_or(0);
    let known = &rates[first..];
    known[(known.len() - 1) / 2]
}

/// Whether `rate` is at least `percent` of `of`. Work alone of 0 was never measured, and nothing reaches it.
const fn reaches(rate: u64, of: u64, percent: u64) -> bool {
    of > 0 && rate as u128 * 100 >= of as u128 * percent as u128
}
