//! What jobs cost, learned from samples while they run: `c` by method and burst width, `d` and `h` by module.
//!
//! A sample goes in ([`Estimator::saw_cpu`], [`Estimator::saw_module`]), a mean comes out for a size
//! ([`Estimator::c`], [`Estimator::on_module`]). Means are exponential with weight 1/8; a cost that is suddenly
//! another one (twice or half, twice in a row) replaces its mean at once, so that a module that was slowed down is
//! known after two jobs.
//!
//! What was learned outlives the process as [text].

mod alternation;
mod mean;
mod method;
pub mod text;

pub use mean::{LEAST_WIDTH, Learned, WIDTHS, width_class};

use std::collections::BTreeMap;

use self::method::OnCore;
use crate::cost::Line;
use crate::job::class::Class;
use crate::job::method::Method;
use crate::units::Nanos;

/// The burst width whose `c` plans count with, and against which modules are held: cores run what waits in full lanes, and AVX-512 has
/// sixteen (libipsec-mb).
pub const PLAN_WIDTH: usize = 16;

/// Jobs of a class that are sent to a module of which nothing is known.
pub const TRIES_MAX: u32 = 4;

/// Least time after which a class that does not pay on a module is tried there once more.
const RETRY_AFTER: Nanos = Nanos::from_millis(1_000);

/// Such a try takes the module for at most one in so many parts of its time.
const RETRY_PARTS: u64 = 100;

/// A try that is known to come last of all that waits is due only after so many times the usual time: what it keeps somebody waiting is one in
/// a thousand parts of that time. Assumed, not measured: 10.
const LATE_TRY_PAUSES: u64 = 10;

/// The same of a class of which something sudden is believed on few samples.
const RETRY_PARTS_SHAKEN: u64 = 10;

/// What no thread's clock shows of a request is at most this and this much for each byte: far above the 120 us that were
/// measured with a virtio-crypto module under emulation, and far above what copying a byte takes.
pub const OVERHEAD_MAX: Line = Line { fixed_ns: 10_000_000, per_byte_ps: 1_000_000 };

/// What is known of a class on a module.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OnModule {
    /// `d`: all core time of the module path.
    pub d: Learned,
    /// `h`: time in which the module works and the core is free.
    pub h: Learned,
    /// Jobs sent there while nothing, or nothing new, was known.
    pub tries: u32,
    /// When it was last sampled or tried.
    pub last: Nanos,
    /// It was tried since it was sampled.
    pub is_tried: bool,
    /// What `d + h` is of `c`, in millionths, where core and module took turns ([`Estimator::took_turns`]).
    pub in_turn: Learned,
}

impl OnModule {
    /// `d` and `h` of a job of `bytes`, or `None` before the first sample.
    #[must_use]
    pub fn at(&self, bytes: usize) -> Option<(Nanos, Nanos)> {
        self.d.at(bytes).zip(self.h.at(bytes))
    }

    /// Time from one try to the next.
    fn pause(&self) -> Nanos {
        let latency = nanos(self.d.ns + self.h.ns);
        let is_shaken = self.d.is_shaken() || self.h.is_shaken() && self.h.ns >= self.d.ns;
        match is_shaken {
            true => Nanos(latency.0.saturating_mul(RETRY_PARTS_SHAKEN)),
            false => RETRY_AFTER.max(Nanos(latency.0.saturating_mul(RETRY_PARTS))),
        }
    }

    /// Whether the last sample was so far below a mean that much of a request's time may not be there any more. One that took
    /// longer is no reason to look again: what did not pay before does not pay for that.
    fn may_be_less(&self) -> bool {
        self.d.may_be_less() || self.h.may_be_less() && self.h.ns >= self.d.ns
    }
}

/// Everything learned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimator {
    cpu: BTreeMap<Class, OnCore>,
    /// By module, then class.
    modules: Vec<BTreeMap<Class, OnModule>>,
    /// By module: core time of its path that thread clocks do not show, of one request; those not measured are missing.
    overhead: BTreeMap<usize, Line>,
    /// Means are not changed any more: for tests of what guards against wrong ones.
    is_frozen: bool,
}

impl Estimator {
    /// Nothing known of so many modules.
    #[must_use]
    pub fn new(modules: usize) -> Self {
        let is_frozen = cfg!(mutant = "estimator_frozen");
        Self { modules: vec![BTreeMap::new(); modules], is_frozen, ..Self::default() }
    }

    /// Knows of at least so many modules.
    pub fn make_room_for(&mut self, modules: usize) {
        if self.modules.len() < modules {
            self.modules.resize_with(modules, BTreeMap::new);
        }
    }

    /// Stops learning.
    pub fn freeze(&mut self) {
        self.is_frozen = true;
    }

    /// A burst of `jobs` of one class ran on a core by `method` in `core`.
    pub fn saw_cpu(&mut self, class: Class, method: Method, jobs: u64, bytes: u64, core: Nanos) {
        if !self.is_frozen {
            let jobs = usize::try_from(jobs).unwrap_or(usize::MAX);
            self.cpu.entry(class).or_default().record(method, jobs, bytes, core);
        }
    }

    /// `jobs` of one class ran on `module`: core time of the path, time of the module, all together.
    ///
    /// # Panics
    ///
    /// Where there is no such module.
    pub fn saw_module(&mut self, module: usize, class: Class, seen: &ModuleSample) {
        if !self.is_frozen {
            let known = self.modules[module].entry(class).or_default();
            known.is_tried = false;
            known.d.record(seen.jobs, seen.bytes, seen.d);
            known.h.record(seen.jobs, seen.bytes, seen.h);
            known.last = seen.now;
        }
    }

    /// Core time of a request on a module's path beside what threads' clocks show: the kernel's own threads and interrupts
    /// are on no such clock. `None` where nobody measured it, as of a module without a kernel's driver.
    #[must_use]
    pub fn overhead(&self, module: usize) -> Option<Line> {
        self.overhead.get(&module).copied()
    }

    /// Puts in what a calibration measured, at most [`OVERHEAD_MAX`].
    pub fn keep_overhead(&mut self, module: usize, overhead: Line) {
        let Line { fixed_ns, per_byte_ps } = overhead;
        let fixed_ns = fixed_ns.min(OVERHEAD_MAX.fixed_ns);
        self.overhead
            .insert(module, Line { fixed_ns, per_byte_ps: per_byte_ps.min(OVERHEAD_MAX.per_byte_ps) });
    }

    /// Counts a job that is about to be sent to a module to get to know it at `now`. `false`: there are enough, whatever a plan
    /// of before says.
    ///
    /// # Panics
    ///
    /// Where there is no such module.
    pub fn tries(&mut self, module: usize, class: Class, now: Nanos) -> bool {
        if self.tries_left(module, class, now) == 0 {
            return cfg!(mutant = "tries_of_old_plans");
        }
        let known = self.modules[module].entry(class).or_default();
        known.tries += 1;
        (known.last, known.is_tried) = (now, !cfg!(mutant = "tries_out_forgotten"));
        true
    }

    /// Jobs of a class that may be sent to a module at `now` although nothing says that they pay there: some while
    /// nothing is known, one to confirm the first sample, and one now and then, for a module may have recovered or those before
    /// failed; more often where many samples were thrown over by a few, until there are as many of the new kind.
    #[must_use]
    pub fn tries_left(&self, module: usize, class: Class, now: Nanos) -> u32 {
        let known = self.on_module(module, class);
        let at_once = match known.d.samples {
            0 => TRIES_MAX.saturating_sub(known.tries),
            1 => 2_u32.saturating_sub(known.tries),
            // One more tells. Left for later, a short run would forget it, and its heirs would never believe any.
            _ => u32::from(known.may_be_less() && !known.is_tried),
        };
        // Tries that failed have told nothing, and are no reason to leave it at that.
        let is_over = (known.d.samples < 2 || known.may_be_less()) && cfg!(mutant = "failed_tries_final");
        at_once.max(u32::from(now - known.last >= known.pause() && !is_over))
    }

    /// Whether a class has been left untried on a module, since the run began at `begun` or later, for so many times the usual time that a try
    /// may cost what it likes.
    #[must_use]
    pub fn is_long_untried(&self, module: usize, class: Class, begun: Nanos, now: Nanos) -> bool {
        let known = self.on_module(module, class);
        let after = Nanos(known.pause().0.saturating_mul(LATE_TRY_PAUSES));
        known.d.samples > 0 && now - known.last.max(begun) >= after && !cfg!(mutant = "never_tried_late")
    }

    /// What is known of a class on a module.
    #[must_use]
    pub fn on_module(&self, module: usize, class: Class) -> OnModule {
        self.modules.get(module).and_then(|known| known.get(&class)).copied().unwrap_or_default()
    }

    /// Puts in what an earlier run or a calibration learned.
    pub fn keep_cpu(&mut self, class: Class, method: Method, width: usize, learned: Learned) {
        self.cpu.entry(class).or_default().keep(method, width.min(WIDTHS - 1), learned);
    }

    /// Puts in what an earlier run learned of a module.
    ///
    /// # Panics
    ///
    /// Where there is no such module.
    pub fn keep_module(&mut self, module: usize, class: Class, known: OnModule) {
        self.modules[module].insert(class, known);
    }

    /// All means of the CPU path: class, method, width class.
    pub fn all_cpu(&self) -> impl Iterator<Item = (Class, Method, usize, &Learned)> {
        fn of_class<'a>(
            (&class, known): (&'a Class, &'a OnCore),
        ) -> impl Iterator<Item = (Class, Method, usize, &'a Learned)> {
            known.all().map(move |(method, width, mean)| (class, method, width, mean))
        }
        self.cpu.iter().flat_map(of_class)
    }

    /// All that is known of a module.
    pub fn all_on_module(&self, module: usize) -> impl Iterator<Item = (Class, &OnModule)> {
        self.modules.get(module).into_iter().flatten().map(|(&class, known)| (class, known))
    }
}

/// What jobs on a module took, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModuleSample {
    /// Jobs.
    pub jobs: u64,
    /// Their input in bytes.
    pub bytes: u64,
    /// `d`: core time of the path.
    pub d: Nanos,
    /// `h`: time in which the module worked and the core was free.
    pub h: Nanos,
    /// When the last of them ended.
    pub now: Nanos,
}

#[expect(clippy::cast_precision_loss, reason = "a mean needs no more than 53 bits")]
const fn float(whole: u64) -> f64 {
    whole as f64
}

/// `as` saturates: what is below zero, or no number, is nothing.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as the text says")]
fn nanos(ns: f64) -> Nanos {
    Nanos(ns.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::algorithm::{Algorithm, Direction};

    fn class(bytes: usize) -> Class {
        Class::of(Algorithm::Aes128Cbc, Direction::Encrypt, bytes, false)
    }

    #[test]
    fn nothing_is_known_before_the_first_sample_and_its_mean_is_the_first_sample() {
        let mut estimator = Estimator::new(1);
        assert_eq!(estimator.c(class(1024), 1024, 1), None);
        assert_eq!(estimator.on_module(0, class(1024)).d.at(1024), None);
        estimator.saw_cpu(class(1024), Method::Plain, 4, 4 * 1024, Nanos(4_000));
        assert_eq!(estimator.c(class(1024), 1024, 4), Some(Nanos(1_000)));
        assert_eq!(estimator.c(class(1024), 1024, 64), Some(Nanos(1_000)), "the next width that is known");
    }

    #[test]
    fn the_better_method_at_the_width_asked_for_is_what_a_job_costs() {
        let mut estimator = Estimator::new(0);
        for (method, jobs, ns) in [
            (Method::Plain, 1, 100),
            (Method::MultiBuffer, 1, 150),
            (Method::Plain, 16, 95),
            (Method::MultiBuffer, 16, 20),
        ] {
            estimator.saw_cpu(class(64), method, jobs, 64 * jobs, Nanos(ns * jobs));
        }
        assert_eq!(estimator.c(class(64), 64, 1), Some(Nanos(100)));
        assert_eq!(estimator.c(class(64), 64, 40), Some(Nanos(20)));
    }

    #[test]
    fn the_mean_follows_slowly_a_single_surprise_is_left_out_and_two_are_believed() {
        let mut learned = Learned::default();
        learned.record(1, 100, Nanos(1_000));
        learned.record(1, 100, Nanos(1_080));
        assert_eq!(learned.at(100), Some(Nanos(1_010)));
        learned.record(1, 100, Nanos(10_000));
        assert_eq!(learned.at(100), Some(Nanos(1_010)));
        learned.record(1, 100, Nanos(10_100));
        assert_eq!(learned.at(100), Some(Nanos(10_100)));
    }

    #[test]
    fn a_mean_that_was_kept_from_a_bad_moment_goes_with_the_second_try_and_not_with_the_second_run() {
        let at = |us: u64| Nanos::from_micros(us);
        let kept = |us| Learned::kept(us * 1_000.0, 1_024.0, 12);
        let sample = |now| ModuleSample { jobs: 1, bytes: 1_024, d: at(165), h: at(28), now: at(now) };
        let mut estimator = Estimator::new(1);
        let known = OnModule { d: kept(165.0), h: kept(3_570.0), ..OnModule::default() };
        estimator.keep_module(0, class(1_024), known);
        let later = 60_000_000;
        assert_eq!(estimator.tries_left(0, class(1_024), at(later)), 1);
        estimator.saw_module(0, class(1_024), &sample(later));
        assert_eq!(estimator.tries_left(0, class(1_024), at(later + 1)), 1, "at once");
        estimator.saw_module(0, class(1_024), &sample(later + 1));
        assert_eq!(estimator.on_module(0, class(1_024)).h.at(1_024), Some(at(28)));
        assert_eq!(estimator.tries_left(0, class(1_024), at(later + 2)), 0);
    }

    #[test]
    fn a_module_that_does_not_pay_is_not_tried_again_because_a_try_took_longer_still() {
        let at = |us: u64| Nanos::from_micros(us);
        let seen = |d, h| ModuleSample { jobs: 1, bytes: 64, d: at(d), h: at(h), now: at(1) };
        let left = |samples: &[(u64, u64)]| {
            let mut estimator = Estimator::new(1);
            let all = samples.iter().map(|&(d, h)| seen(d, h));
            all.for_each(|sample| estimator.saw_module(0, class(64), &sample));
            estimator.tries_left(0, class(64), at(2))
        };
        assert_eq!(left(&[(400, 1), (400, 1), (900, 1)]), 0, "longer on the core");
        assert_eq!(left(&[(400, 1), (400, 1), (400, 700)]), 0, "longer on the module");
        assert_eq!(left(&[(400, 4), (400, 4), (400, 1)]), 0, "less by nothing beside the whole");
        assert_eq!(left(&[(400, 1), (400, 1), (150, 1)]), 1);
        assert_eq!(left(&[(400, 700), (400, 700), (400, 100)]), 1);
    }

    #[test]
    fn who_asks_by_an_old_plan_gets_no_try_more_than_there_are_and_one_that_is_out_is_no_reason_for_another()
    {
        let at = |us: u64| Nanos::from_micros(us);
        let mut estimator = Estimator::new(1);
        let tries = |estimator: &mut Estimator, now| {
            (0..10).filter(|_| estimator.tries(0, class(64), at(now))).count()
        };
        assert_eq!(tries(&mut estimator, 1), TRIES_MAX as usize);
        let sample = |d, now| ModuleSample { jobs: 1, bytes: 64, d: at(d), h: at(1), now: at(now) };
        (2..=5).for_each(|now| estimator.saw_module(0, class(64), &sample(400, now)));
        assert_eq!(tries(&mut estimator, 6), 0);
        estimator.saw_module(0, class(64), &sample(100, 7));
        assert_eq!(tries(&mut estimator, 8), 1, "to confirm what it took now");
        estimator.saw_module(0, class(64), &sample(400, 9));
        assert_eq!([900_000, 1_000_009].map(|now| tries(&mut estimator, now)), [0, 1], "after a second");
    }

    /// A virtual machine that stood still for a moment, as one of many: two requests of 2 ms after many of 250 us.
    #[test]
    fn what_a_few_samples_threw_over_is_tried_again_soon_and_what_was_always_so_is_not() {
        let at = |us: u64| Nanos::from_micros(us);
        let seen = |d, h, now| ModuleSample { jobs: 1, bytes: 16_384, d: at(d), h: at(h), now: at(now) };
        let mut estimator = Estimator::new(1);
        let kept = Learned::kept(240_000.0, 16_384.0, 16);
        estimator.keep_module(0, class(16_384), OnModule { d: kept, h: kept, ..OnModule::default() });
        (1..=2).for_each(|now| estimator.saw_module(0, class(16_384), &seen(2_000, 3_000, now)));
        assert_eq!(estimator.on_module(0, class(16_384)).d.at(16_384), Some(at(2_000)));
        // After ten times what it takes, and not after a second; twice, and it is known again.
        let tries = |estimator: &Estimator, now| estimator.tries_left(0, class(16_384), at(now));
        assert_eq!([2, 50_001, 50_002].map(|now| tries(&estimator, now)), [0, 0, 1]);
        [50_002, 100_002]
            .into_iter()
            .for_each(|now| estimator.saw_module(0, class(16_384), &seen(250, 250, now)));
        assert_eq!(estimator.on_module(0, class(16_384)).d.at(16_384), Some(at(250)));
        // What stays as it became is believed in the end.
        (1..=8).for_each(|_| estimator.saw_module(0, class(16_384), &seen(250, 250, 200_000)));
        assert_eq!([1_199_999, 1_200_000].map(|now| tries(&estimator, now)), [0, 1]);
    }

    #[test]
    fn tries_that_fail_are_tried_again_once_in_a_while_and_after_long_at_any_price() {
        let at = |us: u64| Nanos::from_micros(us);
        let mut estimator = Estimator::new(1);
        let tries = |estimator: &mut Estimator, now| {
            (0..10).filter(|_| estimator.tries(0, class(64), at(now))).count()
        };
        // The first ones fail, and nothing is known.
        assert_eq!([1, 1_000_000, 1_000_001, 1_500_000].map(|now| tries(&mut estimator, now)), [4, 0, 1, 0]);
        let seen = |d, now| ModuleSample { jobs: 1, bytes: 64, d: at(d), h: at(1), now: at(now) };
        // The one that is to confirm the first sample fails.
        estimator.saw_module(0, class(64), &seen(400, 1_600_000));
        assert_eq!([1_600_001, 2_600_000].map(|now| tries(&mut estimator, now)), [0, 1]);
        // It was faster, and the next one fails.
        (0..8).for_each(|_| estimator.saw_module(0, class(64), &seen(400, 3_000_000)));
        estimator.saw_module(0, class(64), &seen(100, 3_000_000));
        assert_eq!([3_000_001, 4_000_000, 4_000_001].map(|now| tries(&mut estimator, now)), [1, 0, 1]);
        let long = |begun, now| estimator.is_long_untried(0, class(64), at(begun), at(now));
        assert_eq!([14_000_000, 14_000_001].map(|now| long(0, now)), [false, true]);
        assert!(!long(4_500_000, 14_000_001), "what was before the run is no reason");
    }

    #[test]
    fn what_takes_no_time_has_a_mean_that_is_sure() {
        let mut learned = Learned::default();
        (0..100).for_each(|_| learned.record(1, 100, Nanos::ZERO));
        assert_eq!(learned.at(100), Some(Nanos::ZERO));
        assert!(learned.error() < 0.01, "{}", learned.error());
    }

    #[test]
    fn a_frozen_estimator_learns_nothing() {
        let mut estimator = Estimator::new(1);
        estimator.freeze();
        estimator.saw_cpu(class(64), Method::Plain, 1, 64, Nanos(5));
        estimator.saw_module(0, class(64), &ModuleSample { jobs: 1, bytes: 64, ..ModuleSample::default() });
        assert_eq!((estimator.all_cpu().count(), estimator.all_on_module(0).count()), (0, 0));
    }
}
