//! Sampling: which bursts are timed, which samples wait to be recorded, and when it is time to check whether modules matter.
//!
//! One burst in [`SAMPLE_EVERY`] is sampled and stands for those before it. `burst -> `[`Sampling::turn`]` -> the clock, less what a look at
//! it costs -> `[`Sampling::push`]` -> recorded when it is worth it (`[`Sampling::flush`]`)`.

use evener_core::Nanos;
use evener_core::driver::Clock;

use crate::costs::CostSample;

/// One burst in so many is timed. That is two readings of a thread clock of 640 ns: 40 ns per burst.
const SAMPLE_EVERY: u64 = 32;

/// Which of those: not a worker's first, whose code and tables are not in the caches yet. Two workers' first bursts, one after the
/// other, look like a method that costs twice what it did.
const SAMPLED: u64 = 1;

/// Samples of short bursts that wait until they are recorded together, at most: each flush takes a lock and 50 ns, which are 1 % of 32
/// single jobs of 8 bytes.
pub(super) const SAMPLES_MAX: usize = 8;

/// Work that a sample stands for and that does not wait. Assumed, not measured: 50 us, a thousand times what a flush costs.
const WORK_MAX: Nanos = Nanos::from_micros(50);

/// Work between two looks at the clock where no worker queries the adaptive policy, at least, in jobs and units of 256 bytes: a look takes
/// 30 ns, so of single jobs of 8 bytes, which take 100 ns, only one in 64 looks.
const LOOK_WORK_MIN: u64 = 64;

/// What one burst adds to that at most: a quarter of it.
const LOOK_WORK_MAX: u64 = LOOK_WORK_MIN / 4;

/// What was sampled of one thread's bursts.
#[derive(Default)]
pub(super) struct Sampling {
    bursts: u64,
    /// Bursts at the last sample.
    sampled_at: u64,
    /// Work since the last look whether modules matter, in jobs and units of 256 bytes.
    unchecked_work: u64,
    /// What a look at the thread's clock costs; it is no cost of a burst. Measured with the first sample.
    look: Option<Nanos>,
    /// Samples for the adaptive policy; nothing is kept for other policies.
    samples: Option<Vec<CostSample>>,
    /// Whether these are worth a flush.
    is_flush_due: bool,
}

impl Sampling {
    /// From now on keeps samples for the adaptive policy.
    pub(super) fn keep(&mut self) {
        self.samples = Some(Vec::new());
    }

    /// A burst of so many jobs is to be run, of which the first has so many bytes.
    #[inline]
    pub(super) fn count_work(&mut self, jobs: usize, bytes: usize) {
        self.unchecked_work += LOOK_WORK_MAX.min((jobs + bytes / 256) as u64);
    }

    /// The next burst's turn: how many bursts its time is to stand for, where it is taken. The first burst of a worker stands for itself: it
    /// is no sample of what the worker did before.
    #[inline]
    pub(super) fn turn(&mut self, is_first: bool) -> Option<u64> {
        let is_sampled = self.bursts % SAMPLE_EVERY == SAMPLED || is_first;
        self.bursts += 1;
        let stands_for = if is_first { 1 } else { self.bursts - self.sampled_at };
        if is_sampled {
            self.sampled_at = self.bursts;
        }
        is_sampled.then_some(stands_for)
    }

    /// What a look at the thread's clock costs.
    pub(super) fn cost_of_look(&mut self, clock: &dyn Clock) -> Nanos {
        *self.look.get_or_insert_with(|| cost_of_look(clock))
    }

    /// Takes in a sample.
    pub(super) fn push(&mut self, sample: CostSample) {
        if let Some(samples) = &mut self.samples {
            let (core, stands_for) = (sample.took.core, sample.stands_for);
            samples.push(sample);
            let work = Nanos(core.0 * stands_for);
            self.is_flush_due |= stands_for == 1 || work >= WORK_MAX || samples.len() >= SAMPLES_MAX;
        }
    }

    /// Whether there are samples worth a flush, or it is time to look; called after each burst, and mostly `false`.
    #[inline]
    pub(super) fn has_news(&self) -> bool {
        self.is_flush_due || self.is_look_due()
    }

    #[inline]
    const fn is_look_due(&self) -> bool {
        self.unchecked_work >= LOOK_WORK_MIN
    }

    /// Whether some bursts have passed since this was last so.
    pub(super) fn take_look_due(&mut self) -> bool {
        let is_time = self.is_look_due();
        if is_time {
            self.unchecked_work = 0;
        }
        is_time
    }

    /// Records the samples since the last time: at once, or where they are worth it.
    pub(super) fn flush(&mut self, at_once: bool, record: impl FnOnce(&[CostSample])) {
        if let (true, Some(samples)) = (self.is_flush_due || at_once, &mut self.samples) {
            if !samples.is_empty() {
                record(samples);
                samples.clear();
            }
            self.is_flush_due = false;
        }
    }
}

/// The least of a few looks at the thread's clock.
fn cost_of_look(clock: &dyn Clock) -> Nanos {
    let looks = (0..4).map(|_| clock.thread_time());
    let times: Vec<Nanos> = looks.collect();
    times.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or_default()
}
