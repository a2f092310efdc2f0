//! When callers of one program combine: a trial against the program's own throughput, taken back as soon as it does not
//! pay.
//!
//! The way of an epoch: whoever calls counts itself and its bytes -> [`Controller::end_epoch`] -> how many callers wait for
//! each other in the next one, or none. No clock and no thread: the epochs are told, so that every rule here can be
//! tested. `docs/combining.md` says why the rules are these.
//!
//! ```text
//! Inline ──(counted down)──> Trial ──(2 good epochs)──> On ──(50 epochs)──> Control ──(> 1.1 x)──> On
//!    ^──────(too slow: twice as long)──┴──(3 bad in a row)──┴────────(else)────────┘
//! ```
//!
//! A single bad epoch ends nothing that may pay: any program that runs for some milliseconds makes one. One that is far
//! below working alone ends a trial at once, for then a second would cost as much again.
//!
//! Judged by the whole process's bytes per time, because nothing else sees it all: a yield is cheap, and yet gives the
//! core away for milliseconds where another program wants it.

use crate::units::Nanos;

/// Length of an epoch. Measured with 20 ms: long enough that two cores run some ten slices of the scheduler in it, short
/// enough that an epoch lost in a trial is under 2 % of the first back-off.
pub const EPOCH: Nanos = Nanos::from_millis(20);

/// Longest epoch that is judged: a longer one says that nobody called, not how fast calls are. A guess.
pub const EPOCH_MAX: Nanos = Nanos::from_millis(80);

/// Callers that wait for each other at most: the SIMD lanes of AES-CBC encryption with AVX-512.
pub const TOGETHER_MAX: u32 = 16;

/// Inline epochs before the first trial, and after a pause. A guess.
const FIRST_EPOCHS: u32 = 4;
/// Good epochs of a trial.
const TRIAL_EPOCHS: u32 = 2;
/// Epochs between two control epochs: the price of knowing is 2 % of the gain.
const CONTROL_EVERY: u32 = 50;
/// Inline epochs after a trial that failed; doubled by each further failure. 64 epochs are 1.3 s.
const BACK_OFF: u32 = 64;
/// Longest back-off, 20 s.
const BACK_OFF_MAX: u32 = 1024;

/// Callers per core below which nobody waits for anybody: with fewer, waiting costs more than lanes bring (measured).
const GATE_PER_CORE: u32 = 2;

/// What a trial must reach, in percent of inline throughput: the noise of an epoch is about 10 %.
const ON_PERCENT: u64 = 110;
/// What combining must keep.
const KEEP_PERCENT: u64 = 105;
/// Below this a trial is over at once. Where other programs wanted all cores, combining fell to 5 to 26 percent; where one ran
/// for some 20 ms, to 60 (measured).
const HOPELESS_PERCENT: u64 = 50;
/// Bad epochs that end combining: in a row, or in one trial. A program that runs for 20 to 40 ms makes two.
const BAD_EPOCHS: u32 = 3;
/// Epochs after which combining has brought more than it takes to notice its end: where it stops then, it is tried again
/// soon. A guess.
const PROVEN_EPOCHS: u32 = 25;
/// Inline epochs until then.
const SOON_EPOCHS: u32 = 8;

/// How busy the process must keep its cores in all epochs before a trial, in percent: below, throughput cannot rise, and a
/// trial would only make the slowest calls slower (at 40 % measured: 1 call in 100 took up to three times as long). Only such
/// epochs say what working alone can do: in others a program that waits for its requests looks slow. At 75 % trials began
/// where half of what the cores can do was asked for (measured); a program that never waits reaches 97 %.
const BUSY_PERCENT: u64 = 90;

/// What was seen in one epoch.
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
}

/// Decides, epoch by epoch, whether callers combine.
#[derive(Clone, Debug)]
pub struct Controller {
    cores: u32,
    gate: u32,
    phase: Phase,
    /// Inline throughput in bytes per millisecond, 0 where it is not known.
    inline_rate: u64,
    /// Throughput of the last epochs in which callers combined.
    combined_rate: u64,
    /// Inline epochs after the next failure.
    back_off: u32,
    /// Failures so far.
    failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Everybody works for itself, for so many epochs more.
    Inline { left: u32 },
    /// Callers combine, on trial: so many good epochs to go, so many bad ones seen.
    Trial { left: u32, bad: u32 },
    /// Callers combine: so many epochs until control, so many bad ones in a row, so many epochs in all.
    On { left: u32, bad: u32, lasted: u32 },
    /// Everybody works for itself, to see what that is worth now; callers had combined for so many epochs.
    Control { lasted: u32 },
}

impl Controller {
    /// A controller for a process that may use so many cores.
    #[must_use]
    pub fn new(cores: usize) -> Self {
        let cores = u32::try_from(cores).unwrap_or(u32::MAX);
        Self {
            cores,
            gate: cores.saturating_mul(GATE_PER_CORE),
            phase: Phase::Inline { left: FIRST_EPOCHS },
            inline_rate: 0,
            combined_rate: 0,
            back_off: BACK_OFF,
            failures: 0,
        }
    }

    /// How often combining was given up so far because it did not pay.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Takes what was seen in an epoch and says how many callers wait for each other in the next: 0, where everybody works
    /// for itself, or 2 to [`TOGETHER_MAX`].
    #[must_use]
    pub fn end_epoch(&mut self, epoch: &Epoch) -> u32 {
        self.phase = match epoch.span {
            span if span > EPOCH_MAX => self.after_pause(),
            _ if epoch.callers <= self.gate => self.closed(),
            _ => self.judged(rate(epoch), self.is_busy(epoch)),
        };
        match self.phase {
            Phase::Trial { .. } | Phase::On { .. } => epoch.callers.clamp(2, TOGETHER_MAX),
            Phase::Inline { .. } | Phase::Control { .. } => 0,
        }
    }

    /// Nothing was learned, and what was known of combining may be old.
    fn after_pause(&self) -> Phase {
        match self.phase {
            Phase::Inline { left } => Phase::Inline { left },
            _ => Phase::Inline { left: FIRST_EPOCHS },
        }
    }

    /// Too few callers. A back-off is not shortened, so that callers that come and go do not bring trials on.
    fn closed(&mut self) -> Phase {
        self.inline_rate = 0;
        self.after_pause()
    }

    fn is_busy(&self, epoch: &Epoch) -> bool {
        let whole = u128::from(epoch.span.0) * u128::from(self.cores);
        u128::from(epoch.core.0) * 100 >= whole * u128::from(BUSY_PERCENT)
    }

    fn judged(&mut self, rate: u64, is_busy: bool) -> Phase {
        match self.phase {
            Phase::Inline { left } if !is_busy => {
                self.inline_rate = 0;
                Phase::Inline { left: left.max(FIRST_EPOCHS) }
            }
            Phase::Inline { left } => {
                self.inline_rate = mean(self.inline_rate, rate);
                match left {
                    0 | 1 => Phase::Trial { left: TRIAL_EPOCHS, bad: 0 },
                    _ => Phase::Inline { left: left - 1 },
                }
            }
            Phase::Control { .. } if !is_busy => self.phase,
            Phase::Trial { left, bad } => self.tried(rate, left, bad),
            Phase::On { left, bad, lasted } => self.kept(rate, left, bad, lasted + 1),
            Phase::Control { lasted } => {
                self.inline_rate = rate;
                if !reaches(self.combined_rate, rate, ON_PERCENT) {
                    return self.failed();
                }
                self.back_off = BACK_OFF.max(self.back_off / 2);
                Phase::On { left: CONTROL_EVERY, bad: 0, lasted }
            }
        }
    }

    fn tried(&mut self, rate: u64, left: u32, bad: u32) -> Phase {
        let good = reaches(rate, self.inline_rate, ON_PERCENT);
        let hopeless = !reaches(rate, self.inline_rate, HOPELESS_PERCENT);
        match (good, bad + 1) {
            (false, bad) if hopeless || bad == BAD_EPOCHS => self.failed(),
            (false, bad) => Phase::Trial { left, bad },
            (true, _) => {
                self.combined_rate = mean(self.combined_rate, rate);
                match left {
                    0 | 1 => Phase::On { left: CONTROL_EVERY, bad: 0, lasted: 0 },
                    _ => Phase::Trial { left: left - 1, bad },
                }
            }
        }
    }

    fn kept(&mut self, rate: u64, left: u32, bad: u32, lasted: u32) -> Phase {
        // An eighth, so that two bad epochs before a control epoch do not decide it.
        self.combined_rate = self.combined_rate / 8 * 7 + rate / 8;
        let bad = if reaches(rate, self.inline_rate, KEEP_PERCENT) { 0 } else { bad + 1 };
        match left {
            _ if bad == BAD_EPOCHS && lasted >= PROVEN_EPOCHS => Phase::Inline { left: SOON_EPOCHS },
            _ if bad == BAD_EPOCHS => self.failed(),
            0 | 1 => Phase::Control { lasted },
            _ => Phase::On { left: left - 1, bad, lasted },
        }
    }

    fn failed(&mut self) -> Phase {
        let left = self.back_off;
        self.failures += 1;
        self.back_off = BACK_OFF_MAX.min(left * 2);
        self.combined_rate = 0;
        Phase::Inline { left }
    }
}

/// Bytes per millisecond.
fn rate(epoch: &Epoch) -> u64 {
    let scaled = u128::from(epoch.bytes) * u128::from(Nanos::from_millis(1).0);
    u64::try_from(scaled / u128::from(epoch.span.0.max(1))).unwrap_or(u64::MAX)
}

/// Old and new, half each: what was inline is judged by the last few epochs.
const fn mean(old: u64, new: u64) -> u64 {
    if old == 0 { new } else { old / 2 + new / 2 }
}

/// Whether `rate` is at least `percent` of `of`. An inline rate of 0 was never measured, and nothing reaches it.
const fn reaches(rate: u64, of: u64, percent: u64) -> bool {
    of > 0 && rate as u128 * 100 >= of as u128 * percent as u128
}
